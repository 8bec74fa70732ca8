"""Whether a candidate minds the numbers that the module holds: where one is another, it refuses or is right."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.checks_callers import few_of, fresh
from cutesmith_evaluator.worker.checks_case import OUT_OF_TIME, Case
from cutesmith_evaluator.worker.checks_run import Examiner
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Group, Inputs, redraw, tensors, total_bytes
from cutesmith_evaluator.worker.numerics_bits import equal_bits

_MOST, _BYTES = 16, 4 << 20  # numbers that are tried, and the most that the inputs may take
_SAYS_NOTHING = {OUT_OF_TIME, "not-emulated", "out-of-memory"}  # about the candidate


@dataclass(frozen=True)
class _Changed:
    """`what`: "factor = 2.375 instead of 1.5"."""

    module: nn.Module
    what: str


def value_findings(examiner: Examiner, own: Inputs, groups: tuple[Group, ...]) -> list[Finding]:
    """A finding for each number of the module that the candidate neither asks for nor computes with.

    `own`: inputs of the task's shapes, of any values. `groups`: dimensions that may change; empty: not known.
    """
    few = few_of(examiner, own, groups)
    if few is None or total_bytes(few) > _BYTES:
        return []
    inputs = fresh(few)
    redraw(inputs, "normal", seed=211)
    found: list[Finding] = []
    for changed in _telling(examiner.module, inputs, examiner.device):
        why = _why_wrong(examiner, changed, inputs)
        if why is not None:
            message = (
                f"supports is true for the module with {changed.what}, and forward is wrong for it ({why}); refuse "
                "values other than those that the kernel was made for."
            )
            found.append(Finding("supports-too-much", message, None, str(examiner.candidate.path)))
    return found


def _telling(module: nn.Module, inputs: Inputs, device: torch.device) -> Iterator[_Changed]:
    """The changed modules that run on these inputs, leave them as they are, and give another result.

    All is tried on the CPU: there a refused value is an exception, on a GPU it ends the process.
    """
    host = module if device.type == "cpu" else copy.deepcopy(module).cpu()
    given = tree_map(lambda value: value.cpu() if isinstance(value, Tensor) else value, inputs)
    wanted = _results(host, fresh(given))
    for ours, theirs in (
        zip(_changed_modules(module), _changed_modules(host), strict=False) if wanted is not None else ()
    ):
        used = fresh(given)
        results = _results(theirs.module, used)
        if results is not None and not _differ(tensors(used), tensors(given)) and _differ(results, wanted or []):
            yield ours


def _changed_modules(module: nn.Module) -> Iterator[_Changed]:
    """Copies with the same parameters and buffers, and one number changed in each."""
    numbers = [
        (f"{name}.{key}" if name else key, name, key, value)
        for name, part in module.named_modules()
        for key, value in vars(part).items()
        if type(value) in (bool, int, float) and key != "training"
    ]
    for path, name, key, value in numbers[:_MOST]:
        shared = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
        try:
            made = copy.deepcopy(module, shared)
        except Exception:  # noqa: BLE001 - the user's class need not allow copies
            return
        new = _another(value)
        vars(made.get_submodule(name))[key] = new
        yield _Changed(made, f"{path} = {new!r} instead of {value!r}")


def _another(value: bool | float) -> bool | float:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value * 1.25 + 0.5


@torch.no_grad()
def _results(module: nn.Module, inputs: Inputs) -> list[Tensor] | None:
    try:
        return tensors(module(*inputs))
    except Exception:  # noqa: BLE001 - the user's code, perhaps with a number that nobody meant
        return None


def _differ(one: list[Tensor], other: list[Tensor]) -> bool:
    return len(one) != len(other) or not all(map(equal_bits, one, other))


def _why_wrong(examiner: Examiner, changed: _Changed, inputs: Inputs) -> str | None:
    """The kind of what is wrong where the candidate takes the changed module; None where it refuses or is right."""
    comparer = examiner.comparer.of(changed.module)
    its_own = Examiner(changed.module, examiner.source, examiner.candidate, examiner.device, comparer, examiner.conduct)
    try:
        findings = its_own.examine(Case(f"the module with {changed.what}", inputs)).findings
    except TaskError as error:
        findings = [error.finding]
    return next((finding.kind for finding in findings if finding.kind not in _SAYS_NOTHING), None)
