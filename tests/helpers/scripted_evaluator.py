"""An evaluator that stands for a device: what each candidate does on it is written in the candidate itself.

A candidate of `candidate_source` carries a line `SCRIPT = {...}`; see Script for its keys. Requests are recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cutesmith_agent.recipes.contract import Draft, Proposal, Target
from cutesmith_evaluator.client import WorkerDied, WorkerTimeout
from cutesmith_evaluator.types import (
    Arm,
    Claim,
    Compilation,
    Confirmation,
    Environment,
    ErrorFigures,
    ErrorPair,
    Finding,
    Graph,
    Inspection,
    KernelMeasures,
    Profile,
    Ratio,
    Resources,
    Task,
    Timing,
    Validation,
)

H200 = Environment("3.11.7", "2.13.0", "4.8.1", "0.1.15", "NVIDIA H200", "sm_90a", "580.1")
NO_DEVICE = Environment("3.11.7", "2.13.0", "4.8.1", "0.1.15", "none", None)
COPY_GBPS = 4200.0
BYTES = 4_200_000_000  # moved in 1 ms at COPY_GBPS: a candidate's fraction of the roofline is 1 / ms
FIGURES = ErrorFigures(2e-7, 2e-7, 1.0, "rms", ErrorPair(2e-7, 4e-7), ErrorPair(2e-7, 5e-7), True)
MEASURES = KernelMeasures(
    "kernel", 1, 2000.0, 66, 256, 4.2e9, 0.4, 0.3, 0.3, 0.2, 0.3, "registers", 128, 0, 4.0, 4.0, 0.0, 0.0,
    (("global memory", 9.0),),
)  # fmt: skip
GRAPH = Graph((), (), (), False, (), (((0, 0),),), "pointwise", 0, BYTES)


@dataclass(frozen=True)
class Script:
    """What a candidate does. Outcomes: "ok", "fails" (a finding), "dies", "hangs"; "lowered" (a validation)."""

    ms: float = 2.0
    compile: str = "ok"
    quick: str = "ok"
    full: str = "ok"
    patched: str = "ok"
    confirmed: str = "ok"  # or "fails", "unknown"
    timing: str = "ok"  # quick and full timing alike
    baselines: str = "ok"  # the other arms of a full timing
    eager_ms: float = 4.0
    compile_ms: float = 2.2


def candidate_source(script: Script, note: str = "") -> str:
    functions = "".join(f"def {name}(module, x):\n    return None\n\n\n" for name in ("supports", "explain", "forward"))
    marks = f"# {note}\nSCRIPT = {json.dumps(asdict(script))}\n\n\n"
    return f'"""Evidence:\nnone\n"""\n{marks}{functions}def warm_up(module, x):\n    return None\n'


def with_header(source: str, lines: tuple[str, ...]) -> str:
    evidence = '"""Evidence:\n' + "\n".join(lines) + '\n"""'
    return re.sub(r'"""Evidence:\n.*?\n"""', lambda _: evidence, source, count=1, flags=re.DOTALL)


def draft(script: Script, **schedule: int) -> Draft:
    return Draft(candidate_source(script, str(schedule)), schedule, "a draft")


def proposing(*drafts: Draft, findings: tuple[Finding, ...] = ()) -> Callable[[Inspection, Target], Proposal]:
    return lambda inspection, target: Proposal(drafts, findings)


def ratios(arms: Sequence[Arm]) -> tuple[Ratio, ...]:
    """Of each arm over the candidate, with intervals a thousandth to either side."""
    ms = next(arm.median_ms for arm in arms if arm.name == "candidate")
    over = {arm.name: arm.median_ms / ms for arm in arms if arm.name != "candidate"}
    return tuple(Ratio(name, "candidate", ratio, ratio * 0.999, ratio * 1.001) for name, ratio in over.items())


@dataclass(frozen=True)
class Request:
    """`tag` is the candidate's schedule as its source names it; `text` is of the task's file at that moment."""

    method: str
    tag: str = ""
    fresh: bool = False  # the first of a process
    kwargs: dict[str, object] = field(default_factory=dict)
    patched_text: str = ""
    kernel_text: str = ""
    text: str = ""


@dataclass
class ScriptedEvaluator:
    environment: Environment = H200
    inspection: Inspection | None = None
    interrupt: Callable[[Request], None] = lambda request: None  # called with each request; may raise
    requests: list[Request] = field(default_factory=list)
    captured: dict[str, Validation] = field(default_factory=dict)  # what a candidate gives on captured inputs
    said: str = ""  # the message of a compilation whose outcome is "says"
    lacks_inputs: bool = False  # the module's file does
    _is_fresh: bool = True

    def hello(self) -> Environment:
        return self.environment

    def inspect(self, task: Task, *, on_progress: object = None) -> Inspection:
        self._record(Request("inspect", text=Path(task.file).read_bytes().decode()))
        if self.lacks_inputs and task.captured is None:
            return Inspection(self.environment, None, ("x",), (Finding("no-inputs", "No inputs.", None, task.file),))
        return self.inspection or Inspection(self.environment, GRAPH, ("x",))

    def compile(self, task: Task, candidate: Path, archs: Sequence[str], *, on_progress: object = None) -> Compilation:
        script = self._begin("compile", candidate, archs=tuple(archs))
        if not self._passes(script.compile, "compiling"):
            message = self.said if script.compile == "says" else "It does not compile."
            return Compilation(False, 0.2, (), (Finding("compile-error", message, 7, str(candidate)),))
        return Compilation(True, 0.2, tuple(Resources("kernel", arch, 32, 0, 0) for arch in archs))

    def validate(
        self,
        task: Task,
        candidate: Path,
        *,
        patched: Path | None = None,
        quick: bool = False,
        device: str = "auto",
        arch: str | None = None,
        time_s: float | None = None,
        dynamic_dims: Sequence[object] = (),
        deadline_s: float = 600.0,
        on_progress: object = None,
    ) -> Validation:
        if task.captured in self.captured:
            self._begin("validate", candidate, captured=task.captured, quick=quick)
            return self.captured[task.captured]
        if device == "emulated" and self.environment.device != "none":  # for counts: these are not scripted
            return Validation(None, "emulated")
        script = self._begin(
            "validate", candidate, patched, quick=quick, device=device, arch=arch, dynamic_dims=tuple(dynamic_dims)
        )
        name = "emulated" if device == "emulated" else self.environment.device
        if name == "none" or device == "none":
            return Validation(None, "none", findings=(Finding("no-device", "Not run.", severity="information"),))
        outcome = script.patched if patched is not None else script.quick if quick else script.full
        if outcome == "lowered":
            lowered = Finding("lowered-precision", "Precision is lowered.", None, str(candidate))
            return Validation(False, name, "lowered", FIGURES, (), (lowered,))
        if not self._passes(outcome, "validating"):
            where = patched or candidate
            message = f"{where} gives other values."
            return Validation(False, name, findings=(Finding("wrong-values", message, 3, str(where)),))
        return Validation(True, name, "kept", FIGURES, ("normal inputs, seed 0",))

    def time(
        self,
        task: Task,
        candidate: Path,
        *,
        arms: Sequence[str] = ("candidate", "eager", "compile"),
        patched: Path | None = None,
        quick: bool = False,
        deadline_s: float = 600.0,
        on_progress: object = None,
    ) -> Timing:
        script = self._begin("time", candidate, patched, arms=tuple(arms), quick=quick)
        if len(arms) > 1:
            self._passes(script.baselines, "timing the baselines")
        if not self._passes(script.timing, "timing"):
            void = Finding("output-drifts", "The output changed; the timing is void.", None, str(candidate))
            return Timing("NVIDIA H200", (), COPY_GBPS, BYTES, 0.0, 0.0, (void,))
        times = {"candidate": script.ms, "eager": script.eager_ms, "compile": script.compile_ms, "max-autotune": 2.1}
        timed = tuple(Arm(name, times[name], times[name] * 0.999, times[name] * 1.001, 50) for name in arms)
        return Timing("NVIDIA H200", timed, COPY_GBPS, BYTES, 1 / script.ms, 0.01, (), ratios(timed))

    def confirm(
        self,
        task: Task,
        candidate: Path,
        claim: Claim,
        *,
        device: str,
        arch: str | None = None,
        dynamic_dims: Sequence[object] = (),
        deadline_s: float = 600.0,
        on_progress: object = None,
    ) -> Confirmation:
        script = self._begin("confirm", candidate, claim=claim, device=device)
        if script.confirmed == "ok":
            return Confirmation(True, ("fresh inputs",))
        message = f"{candidate} is not confirmed."
        if script.confirmed == "unknown":
            return Confirmation(None, (), (Finding("not-confirmed", message, None, str(candidate), "information"),))
        return Confirmation(False, (), (Finding("not-confirmed", message, None, str(candidate)),))

    def profile(self, task: Task, candidate: Path, *, deadline_s: float = 120.0, on_progress: object = None) -> Profile:
        self._begin("profile", candidate)
        return Profile("sm_90a", 0, (), (MEASURES,))

    def expect_confirmation(self) -> None:
        pass

    def renew(self) -> None:
        self._is_fresh = True

    def close(self) -> None:
        self.renew()

    def asked(self, method: str, **kwargs: object) -> list[str]:
        """The tags of the recorded requests of a method whose arguments are these."""
        wanted = kwargs.items()
        return [one.tag for one in self.requests if one.method == method and wanted <= one.kwargs.items()]

    def _begin(self, method: str, candidate: Path, patched: Path | None = None, **kwargs: object) -> Script:
        source = candidate.read_text()
        tag = re.search(r"^# (.*)$", source, re.MULTILINE)
        script = re.search(r"^SCRIPT = (.*)$", source, re.MULTILINE)
        assert tag is not None
        assert script is not None
        beside = patched.with_name(candidate.name).read_text() if patched else ""
        text = patched.read_bytes().decode() if patched else ""
        self._record(Request(method, tag[1], self._is_fresh, kwargs, text, beside))
        return Script(**json.loads(script[1]))

    def _record(self, request: Request) -> None:
        self.requests.append(request)
        self._is_fresh = False
        self.interrupt(request)

    def _passes(self, outcome: str, doing: str) -> bool:
        if outcome == "dies":
            self.close()
            raise WorkerDied(f"The worker process ended (SIGSEGV) while {doing}.")
        if outcome == "hangs":
            self.close()
            raise WorkerTimeout(f"Stopped after 600 s while {doing}.")
        return outcome == "ok"
