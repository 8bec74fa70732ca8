"""Answers `probe`: how a class is built and called, and whether checks of its forward hold, and tell anything.

A check is `def check_...(build, inputs)`: `build(*arguments)` gives the module in eval mode on the CPU (without
arguments, as the task builds it), `inputs(seed)` the task's example arguments of forward; it raises where the module is
wrong. Its worth is shown by wrong modules: those of `planting` have to fail some check, and each check has to fail one.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from cutesmith_evaluator.probing import CheckResult, Probing
from cutesmith_evaluator.types import Finding, Task
from cutesmith_evaluator.worker.failures import TaskError, summary, user_code
from cutesmith_evaluator.worker.planting import WRONGS, Recorder, Wrong, distinct, planted
from cutesmith_evaluator.worker.project import load_source
from cutesmith_evaluator.worker.reference import Reference, load_reference, seed_everything
from cutesmith_evaluator.worker.tracing import prepare

Progress = Callable[[str], None]
Check = Callable[..., object]
_PREFIX = "check_"
_LONGEST = 800  # characters of what a check said


def probe(params: dict[str, Any], progress: Progress) -> Probing:
    """`params`: {"task", "checks": path of a Python file or None}. Problems of the task are findings of the result."""
    try:
        progress("importing the module's file")
        reference = load_reference(Task(**params["task"]))
        if params["checks"] is None:
            return _interface(reference)
        return _probed(reference, Path(params["checks"]), progress)
    except TaskError as error:
        return Probing(findings=(error.finding,))


def _interface(reference: Reference) -> Probing:
    """On fake tensors: nothing is drawn, however large the example inputs are."""
    subject = prepare(reference)
    names = list(_parameter_names(reference))
    given = [
        f"{names[place] if place < len(names) else f'argument {place}'}{_described(value)}"
        for place, value in enumerate(subject.arguments)
    ]
    return Probing(tuple(given), tuple(f"{name}{_described(value)}" for name, value in _state(subject.module)))


def _state(module: nn.Module) -> list[tuple[str, Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _parameter_names(reference: Reference) -> tuple[str, ...]:
    code = reference.cls.forward.__code__
    return code.co_varnames[1 : code.co_argcount]


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f": {str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, value.shape))}]"
    return f" = {value!r}"


@dataclass(frozen=True)
class _Bench:
    """What checks are run with. `wrong`: what is done to every module that they build."""

    reference: Reference
    recorder: Recorder
    wrong: Wrong | None = None

    def build(self, *args: object, **kwargs: object) -> nn.Module:
        cls = self.reference.cls
        if args or kwargs:
            seed_everything(0)
            module = cls(*args, **kwargs)
        else:
            module = self.reference.construct(cls)
        module = module.cpu().eval()
        return self.recorder.watched(module) if self.wrong is None else planted(module, self.wrong)

    def inputs(self, seed: int = 0) -> list[object]:
        return list(self.reference.inputs(seed, torch.device("cpu")))


def _probed(reference: Reference, checks: Path, progress: Progress) -> Probing:
    found = _checks_of(_loaded(checks))
    if not found:
        message = f"The checks define no function {_PREFIX}...(build, inputs)."
        raise TaskError(Finding("no-checks", message, None, str(checks)))
    progress(f"running {len(found)} checks")
    bench = _Bench(reference, Recorder())
    results = {name: _result(name, check, bench, checks) for name, check in found.items()}
    if any(result.outcome != "agrees" for result in results.values()):
        return Probing(checks=tuple(results.values()))
    progress("running the checks on wrong modules")
    return _weighed(found, bench)


def _weighed(found: dict[str, Check], bench: _Bench) -> Probing:
    """What checks that hold are worth."""
    wrongs = [wrong for wrong in WRONGS if distinct(bench.recorder, wrong)]
    caught = {
        name: tuple(wrong.name for wrong in wrongs if _fails(check, _Bench(bench.reference, bench.recorder, wrong)))
        for name, check in found.items()
    }
    missed = tuple(wrong.name for wrong in wrongs if not any(wrong.name in each for each in caught.values()))
    if not wrongs:
        missed = ("any module: no check calls it",)
    return Probing(
        checks=tuple(CheckResult(name, "agrees", caught=caught[name]) for name in found),
        uncaught=missed,
    )


def _loaded(checks: Path) -> ModuleType:
    with user_code("broken-checks", "running the checks' file", checks):
        return load_source(checks, f"_checks_{checks.stem}")


def _checks_of(module: ModuleType) -> dict[str, Check]:
    return {
        name: value
        for name, value in vars(module).items()
        if name.startswith(_PREFIX) and callable(value) and getattr(value, "__module__", "") == module.__name__
    }


def _fails(check: Check, bench: _Bench) -> bool:
    try:
        _run(check, bench)
    except (Exception, SystemExit):  # noqa: BLE001 - a model's code: whatever it raises
        return True
    return False


def _run(check: Check, bench: _Bench) -> None:
    seed_everything(0)
    with torch.no_grad():
        check(bench.build, bench.inputs)


def _result(name: str, check: Check, bench: _Bench, checks: Path) -> CheckResult:
    try:
        _run(check, bench)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a model's code: whatever it raises
        return CheckResult(name, _blamed(error, bench.reference.file), _said(error, checks))
    return CheckResult(name, "agrees")


def _blamed(error: BaseException, module: Path) -> Any:
    """Whose fault it was: forward's, the check's own code's, or nobody's: they differ."""
    frames = traceback.extract_tb(error.__traceback__)
    if any(frame.name == "forward" and Path(frame.filename) == module for frame in frames):
        return "raised"
    return "disagrees" if isinstance(error, AssertionError) else "broken"


def _said(error: BaseException, checks: Path) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename) == checks]
    place = f"line {frames[-1].lineno} of the checks: " if frames else ""
    text = " ".join(str(error).split())[:_LONGEST]
    return place + (f"{type(error).__name__}: {text}" if text else summary(error))
