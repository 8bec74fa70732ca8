"""One candidate through its stages: guards, compile, validate, time. What fails stops there with its findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cutesmith_agent.evaluator import Evaluator
from cutesmith_agent.guards import static_findings
from cutesmith_agent.journal import Journal
from cutesmith_agent.profiling.analysis import analysed
from cutesmith_agent.scratch import Mirror
from cutesmith_agent.store.captures import CapturedCall
from cutesmith_agent.verdicts import compiled, confirmed, failed, median_ms, timed, validated
from cutesmith_evaluator.errors import WorkerError, WorkerUnavailable
from cutesmith_evaluator.types import Candidate, Claim, Environment, Graph, Profile, Stage, Task

EMULATED = "emulated"  # the device of a verdict that the emulated device gave
NO_VERDICT = (
    "not-emulated",
    "out-of-time",
    "too-big-to-emulate",
    "not-confirmed",
)  # findings that say why it gave none
_QUICK_S, _FULL_S = 180.0, 900.0  # deadlines
_COUNTING_S = 5.0  # of emulation, for counts alone
_ALONE = ("candidate",)
ALL_ARMS = ("candidate", "eager", "compile")
Step = Callable[[Candidate], Candidate]


@dataclass(frozen=True)
class Bench:
    """Where candidates of one task are tried. `device`: what was asked for; "none" runs nothing, and "auto" takes the
    emulated device where there is no other."""

    evaluator: Evaluator
    journal: Journal
    environment: Environment
    task: Task
    mirror: Mirror
    archs: tuple[str, ...]
    device: str
    arms: tuple[str, ...] = ALL_ARMS  # of the winner's timing
    graph: Graph | None = None
    lowered_is_fine: bool = False  # the user takes a lower precision than the module's
    captured: tuple[CapturedCall, ...] = ()  # of real runs, the task's own aside
    ieee: bool = False  # the user wants fp32 products in fp32 arithmetic

    @property
    def has_device(self) -> bool:
        """Whether there is a CUDA device to validate and time on."""
        return self.device not in ("none", "emulated") and self.environment.device != "none"

    @property
    def emulates(self) -> bool:
        """Whether kernels are validated, and not timed, on the emulated device."""
        return self.device == "emulated" or (self.device == "auto" and self.environment.device == "none")

    def run(self, candidate: Candidate, *steps: Step) -> Candidate:
        """The candidate after the steps, or after the first that it fails."""
        for step in steps:
            candidate = step(candidate)
            if candidate.ok is False:
                break
        candidate = self._analysed(candidate)
        return replace(candidate, findings=tuple(map(self.mirror.in_users_tree, candidate.findings)))

    def _analysed(self, candidate: Candidate) -> Candidate:
        """What its profile says, as soon as there is something to say of a candidate that is not wrong."""
        if self.graph is None or candidate.ok is False or candidate.stage in ("propose", "guards"):
            return candidate
        source = _path(candidate).read_text(encoding="utf-8", errors="replace")
        return analysed(candidate, self.graph, self.archs[0], source)

    def profile(self, candidate: Candidate) -> Candidate:
        """With what Nsight Compute measures of it, and with the emulated device's counts by line. Neither can fail a
        candidate that has been timed."""
        self.journal.stage("time", "profiling", candidate.id)
        known = candidate.profile or Profile(self.archs[0], self.graph.bytes if self.graph else 0, ())
        counted = self._counted(candidate) or known
        try:
            measured = self.evaluator.profile(self.task, _path(candidate), on_progress=self.journal.progress)
        except WorkerUnavailable:
            raise
        except WorkerError as error:
            measured = Profile(known.arch, 0, (), findings=(replace(error.finding, severity="warning"),))
        told = replace(counted, measured=measured.measured, findings=measured.findings)
        return self._analysed(replace(candidate, profile=told))

    def _counted(self, candidate: Candidate) -> Profile | None:
        """The emulated device's counts, within seconds; None where it cannot tell."""
        try:
            return self.evaluator.validate(
                self.task,
                _path(candidate),
                quick=True,
                device=EMULATED,
                arch=self.archs[0],
                time_s=_COUNTING_S,
                dynamic_dims=self.graph.dynamic_dims if self.graph else (),
                deadline_s=_QUICK_S,
                on_progress=self.journal.progress,
            ).profile
        except WorkerUnavailable:
            raise
        except WorkerError:
            return None

    def guards(self, candidate: Candidate) -> Candidate:
        """What is seen of its source, before anything of it runs. Findings that are no errors are labels."""
        self.journal.stage("guards", "static guards", candidate.id)
        path = _path(candidate)
        findings = static_findings(path.read_text(encoding="utf-8", errors="replace"), path, self.graph)
        if any(finding.severity == "error" for finding in findings):
            return failed(candidate, "guards", *findings)
        kinds = {finding.kind for finding in findings}  # labels of an earlier source of it are replaced
        kept = tuple(finding for finding in candidate.findings if finding.kind not in kinds)
        return replace(candidate, stage="guards", findings=(*kept, *findings))

    def compile(self, candidate: Candidate) -> Candidate:
        self.journal.stage("compile", f"compiling for {', '.join(self.archs)}", candidate.id)

        def request() -> Candidate:
            path, progress = _path(candidate), self.journal.progress
            return compiled(candidate, self.evaluator.compile(self.task, path, self.archs, on_progress=progress))

        return self._ask(candidate, "compile", request)

    def validate(self, candidate: Candidate, *, patched: Path | None = None, quick: bool = False) -> Candidate:
        self.journal.stage("validate", self._validating(patched, quick), candidate.id)

        def request() -> Candidate:
            result = self.evaluator.validate(
                self.task,
                _path(candidate),
                patched=patched,
                quick=quick,
                device=EMULATED if self.emulates else self.device,
                arch=self.archs[0],
                dynamic_dims=self.graph.dynamic_dims if self.graph else (),
                deadline_s=_QUICK_S if quick else _FULL_S,
                on_progress=self.journal.progress,
            )
            return validated(candidate, result, lowered_is_fine=self.lowered_is_fine)

        return self._ask(candidate, "validate", request)

    def _validating(self, patched: Path | None, quick: bool) -> str:
        if self.emulates:
            return "validating on the emulated device" + (", and the patched file" if patched else "")
        if not self.has_device:
            return "not validating: no device" if patched is None else "running the patched file on the CPU"
        return "validating " + ("quickly" if quick else "fully" if patched is None else "fully, and the patched file")

    def confirm(self, candidate: Candidate) -> Candidate:
        """A candidate that the worker found right is so once a process that never has it says so, too."""
        if not candidate.ok or candidate.precision is None:
            return candidate
        self.journal.stage("validate", "confirming in processes of their own", candidate.id)
        self.evaluator.renew()  # the worker had the candidate, and may hold the device's memory
        claim = Claim(candidate.precision, median_ms(candidate.timing) if candidate.timing else None)

        def request() -> Candidate:
            result = self.evaluator.confirm(
                self.task,
                _path(candidate),
                claim,
                device=EMULATED if self.emulates else "cuda",
                arch=self.archs[0],
                dynamic_dims=self.graph.dynamic_dims if self.graph else (),
                deadline_s=_FULL_S,
                on_progress=self.journal.progress,
            )
            return confirmed(candidate, result)

        return self._ask(candidate, "validate", request)

    def validate_quickly(self, candidate: Candidate) -> Candidate:
        return self.validate(candidate, quick=True)

    def time_quickly(self, candidate: Candidate) -> Candidate:
        """Time alone and briefly: enough to compare schedules."""
        return self._ask(candidate, "time", lambda: self._time(candidate, _ALONE, quick=True))

    def measure(self, candidate: Candidate, *, patched: Path | None = None) -> Candidate:
        """Time against all arms in a fresh process; where that breaks down, alone, to see whose fault it was."""
        self.evaluator.renew()
        try:
            return self._time(candidate, self.arms, patched=patched)
        except WorkerUnavailable:
            raise
        except WorkerError as error:
            warned = replace(candidate, findings=(*candidate.findings, replace(error.finding, severity="warning")))
            return self._ask(warned, "time", lambda: self._time(warned, _ALONE))

    def _time(
        self, candidate: Candidate, arms: tuple[str, ...], *, patched: Path | None = None, quick: bool = False
    ) -> Candidate:
        self.journal.stage("time", f"timing {', '.join(arms)}", candidate.id)
        timing = self.evaluator.time(
            self.task,
            _path(candidate),
            arms=arms,
            patched=patched,
            quick=quick,
            deadline_s=_QUICK_S if quick else _FULL_S,
            on_progress=self.journal.progress,
        )
        return timed(candidate, timing)

    def _ask(self, candidate: Candidate, stage: Stage, request: Callable[[], Candidate]) -> Candidate:
        """The candidate after a request; a worker that died or hung over it is its fault, and the job goes on."""
        try:
            return request()
        except WorkerUnavailable:
            raise
        except WorkerError as error:
            return failed(candidate, stage, replace(error.finding, file=candidate.path))


def _path(candidate: Candidate) -> Path:
    assert candidate.path is not None
    return Path(candidate.path)
