"""The client of a worker: typed requests, deadlines, respawning.

Standard library and cattrs; no torch. A Worker belongs to one thread: the process dies with the thread that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from cattrs import BaseValidationError

from cutesmith_evaluator.confirming import Confirming, Matter
from cutesmith_evaluator.confirming_pair import Pair
from cutesmith_evaluator.errors import WorkerDied, WorkerError, WorkerTimeout, WorkerUnavailable
from cutesmith_evaluator.probing import Probing
from cutesmith_evaluator.process import Limits, WorkerProcess
from cutesmith_evaluator.text import printable
from cutesmith_evaluator.turns import busy_finding, turn
from cutesmith_evaluator.types import (
    Claim,
    Compilation,
    Confirmation,
    Environment,
    Inspection,
    Profile,
    Task,
    Timing,
    Validation,
)
from cutesmith_evaluator.wire import converter

__all__ = ["Limits", "Worker", "WorkerDied", "WorkerError", "WorkerTimeout", "WorkerUnavailable"]

_OF_REQUEST = 0.7
_RUN_CANDIDATES = ("compile", "validate", "time", "profile")
OnProgress = Callable[[str], None]
Result = TypeVar("Result")


class Worker:
    """One worker process in `interpreter`, started by the first request and again after it ended.

    Every request raises WorkerTimeout, WorkerDied or WorkerUnavailable; problems of the task itself are findings in
    the result.
    """

    def __init__(self, interpreter: Path, *, limits: Limits | None = None) -> None:
        self._interpreter = interpreter
        self._limits = limits or Limits()
        self._process: WorkerProcess | None = None
        self._spare: WorkerProcess | None = None  # once one was lost: that it comes up takes seconds
        self._loses_workers = False
        self._pair: Pair | None = None  # for the next confirmation
        self._last_id = 0
        self._compiles = 0

    def hello(self, *, deadline_s: float = 60.0, on_progress: OnProgress | None = None) -> Environment:
        """What the worker runs on."""
        return self._call("hello", {}, "starting", Environment, deadline_s, on_progress)

    def inspect(self, task: Task, *, deadline_s: float = 60.0, on_progress: OnProgress | None = None) -> Inspection:
        """Builds and traces the module; without a GPU too."""
        params = {"task": converter().unstructure(task)}
        return self._call("inspect", params, f"inspecting {task.qualname}", Inspection, deadline_s, on_progress)

    def probe(
        self,
        task: Task,
        checks: Path | None = None,
        *,
        deadline_s: float = 60.0,
        on_progress: OnProgress | None = None,
    ) -> Probing:
        """How the class is built and called; with `checks`, a Python file, whether its forward agrees with them (on the
        CPU), and whether they tell it from wrong ones."""
        params = {"task": converter().unstructure(task), "checks": str(checks) if checks else None}
        return self._call("probe", params, f"checking {task.qualname}", Probing, deadline_s, on_progress)

    def compile(
        self,
        task: Task,
        candidate: Path,
        archs: Sequence[str],
        *,
        deadline_s: float = 120.0,
        on_progress: OnProgress | None = None,
    ) -> Compilation:
        """Compiles a candidate for each arch ("sm_90a"); without a GPU too."""
        self._compiles += len(archs)
        params = {"task": converter().unstructure(task), "candidate": str(candidate), "archs": list(archs)}
        return self._call("compile", params, f"compiling {candidate.name}", Compilation, deadline_s, on_progress)

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
        dynamic_dims: Sequence[tuple[tuple[int, int], ...]] = (),
        deadline_s: float = 600.0,
        on_progress: OnProgress | None = None,
    ) -> Validation:
        """Compares a candidate with its reference on the device; "auto" is the emulated one where there is no other.

        `patched`: a scratch copy of the user's file with both hunks in, whose class is then compared too.
        `device`: "none" runs nothing on one. `dynamic_dims`: the graph's; these sizes are varied. Of the emulated
        device: `arch` ("sm_90a") and `time_s`, after which a kernel is stopped.
        """
        self._compiles += 1
        params = {
            "task": converter().unstructure(task),
            "candidate": str(candidate),
            "patched": str(patched) if patched else None,
            "quick": quick,
            "device": device,
            "arch": arch,
            "time_s": self._kernel_s() if time_s is None else time_s,
            "dynamic_dims": [[list(place) for place in group] for group in dynamic_dims],
        }
        doing = f"validating {candidate.name}"
        with turn(alone=False, on_progress=on_progress) if device in ("auto", "cuda") else nullcontext(True) as is_ours:
            result = self._call("validate", params, doing, Validation, deadline_s, on_progress)
        return result if is_ours else replace(result, findings=(*result.findings, busy_finding()))

    def time(
        self,
        task: Task,
        candidate: Path,
        *,
        arms: Sequence[str] = ("candidate", "eager", "compile"),
        patched: Path | None = None,
        quick: bool = False,
        deadline_s: float = 600.0,
        on_progress: OnProgress | None = None,
    ) -> Timing:
        """Times a candidate against the other arms on the device, and the class of `patched` when there is one."""
        self._compiles += 1
        params = {
            "task": converter().unstructure(task),
            "candidate": str(candidate),
            "arms": list(arms),
            "patched": str(patched) if patched else None,
            "quick": quick,
        }
        with turn(alone=True, on_progress=on_progress) as is_ours:
            result = self._call("time", params, f"timing {candidate.name}", Timing, deadline_s, on_progress)
        return result if is_ours else replace(result, findings=(*result.findings, busy_finding()))

    def profile(
        self,
        task: Task,
        candidate: Path,
        *,
        deadline_s: float = 120.0,
        on_progress: OnProgress | None = None,
    ) -> Profile:
        """What Nsight Compute measures of a candidate's kernels on the device; findings say why where it does not."""
        params = {
            "task": converter().unstructure(task),
            "candidate": str(candidate),
            "timeout_s": 0.8 * deadline_s,  # ends first, so that a slow profiler costs no worker
        }
        return self._call("profile", params, f"profiling {candidate.name}", Profile, deadline_s, on_progress)

    def confirm(
        self,
        task: Task,
        candidate: Path,
        claim: Claim,
        *,
        device: str,
        arch: str | None = None,
        time_s: float | None = None,
        dynamic_dims: Sequence[tuple[tuple[int, int], ...]] = (),
        deadline_s: float = 600.0,
        on_progress: OnProgress = lambda message: None,
    ) -> Confirmation:
        """What two fresh processes say of a candidate that this one found right: one with it, one that judges.

        `device`: "cuda" or "emulated". `arch`, `time_s`, `dynamic_dims`: as in `validate`.
        """
        site = {
            "task": converter().unstructure(task),
            "device": device,
            "arch": arch,
            "time_s": time_s,
            "dynamic_dims": [[list(place) for place in group] for group in dynamic_dims],
        }
        confirming = Confirming(self._fresh_pair(), Matter(site, candidate, claim), deadline_s)
        try:
            return confirming.verdict(on_progress)
        finally:
            confirming.close()

    def expect_confirmation(self) -> None:
        """Starts its two processes beforehand, if they can be: they come up while the candidate is judged."""
        with suppress(WorkerUnavailable):  # told by the request that needs them
            self._pair = self._pair or Pair(self._interpreter, self._limits)

    def _fresh_pair(self) -> Pair:
        """Raises WorkerUnavailable."""
        pair, self._pair = self._pair, None
        if pair is not None and pair.alive:
            return pair
        if pair is not None:
            pair.close()
        return Pair(self._interpreter, self._limits)

    def _kernel_s(self) -> float | None:
        """Where a request has little time: after which a kernel on the emulated device is stopped, so that it is told
        before the worker is killed."""
        return None if self._limits.request_s is None else self._limits.request_s * _OF_REQUEST

    def close(self) -> None:
        """Ends all processes and all they started, at once; the next request starts another."""
        self.renew()
        if self._spare:
            self._spare.kill()
        if self._pair:
            self._pair.close()
        self._spare = self._pair = None

    def renew(self) -> None:
        """Ends the process that had candidates, and all it started; the next request gets another."""
        if self._process:
            self._process.kill()
        self._process = None
        self._compiles = 0

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return self._process.pid if self._process else None

    def log(self) -> str:
        """The end of what the running worker and the user's code in it have printed."""
        return self._process.log() if self._process else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(
        self,
        method: str,
        params: dict[str, Any],
        doing: str,
        result: type[Result],
        deadline_s: float,
        on_progress: OnProgress | None,
    ) -> Result:
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": params}
        if method in _RUN_CANDIDATES and self._limits.request_s is not None:
            deadline_s = min(deadline_s, self._limits.request_s)
        process = self._started(on_progress, loaded=method in _RUN_CANDIDATES)
        try:
            reply = process.request(message, doing, deadline_s, on_progress)
        except (WorkerDied, WorkerTimeout):
            self._loses_workers = True
            raise
        if reply.get("last") or self._compiles >= self._limits.recycle_after or self._is_littered(method):
            self.renew()
        try:
            if "error" in reply:
                why = printable(str(reply["error"]["message"]))
                raise WorkerError(f"The worker failed while {doing}: {why}")
            return converter().structure(reply["result"], result)
        except (BaseValidationError, KeyError, TypeError, ValueError):
            self.renew()
            raise WorkerDied(f"The worker gave no answer that can be read while {doing}.") from None

    def _is_littered(self, method: str) -> bool:
        """Whether a candidate, or torch.compile for it, has left processes: they would disturb the next one."""
        return method in _RUN_CANDIDATES and self._process is not None and self._process.has_left_processes

    def _started(self, on_progress: OnProgress | None, *, loaded: bool) -> WorkerProcess:
        """`loaded`: with what candidates import, so that this is not counted among the time they take."""
        if self._process and not self._process.alive:
            self.renew()
        if self._process is None:
            self._process, self._spare = self._spare, None
        if self._process is None or not self._process.alive:
            self.renew()
            self._process = WorkerProcess(self._interpreter, self._limits)
        self._process.come_up()
        if loaded:
            self._process.load(on_progress)
        if self._loses_workers and self._spare is None:
            self._spare = WorkerProcess(self._interpreter, self._limits, spare=True)
        return self._process
