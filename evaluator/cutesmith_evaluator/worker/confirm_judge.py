"""The process of a confirmation that judges: it never imports a candidate, and draws and computes all by itself.

It computes once the process that has the candidate is gone. What that one left are files of elements.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from cutesmith_evaluator.confirmation import KIND, Answer, Given, answer_of
from cutesmith_evaluator.types import Confirmation, Finding
from cutesmith_evaluator.worker.checks_call import guarded, synchronize
from cutesmith_evaluator.worker.checks_case import Case, Outputs, Result
from cutesmith_evaluator.worker.checks_compare import Comparer
from cutesmith_evaluator.worker.checks_layout import layout_findings, name_of
from cutesmith_evaluator.worker.checks_state import without_tf32
from cutesmith_evaluator.worker.confirm_handed import HandedError, received, shell
from cutesmith_evaluator.worker.confirm_launches import launch_check
from cutesmith_evaluator.worker.confirm_replay import Replay
from cutesmith_evaluator.worker.confirm_site import Site, digests, open_site, replayed, word
from cutesmith_evaluator.worker.confirm_time import Pace, ReplayPace, Round, replay_finding, replay_words, time_finding
from cutesmith_evaluator.worker.cuda_scans import like_cuda
from cutesmith_evaluator.worker.emulated_validation import DEVICE
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import tensors
from cutesmith_evaluator.worker.memory import free_memory
from cutesmith_evaluator.worker.methods import Params, Progress
from cutesmith_evaluator.worker.numerics import Measured, limit

_LITTLE = 4  # elements
_COPIES = 4


def ping(params: Params, progress: Progress) -> dict[str, object]:
    """Params: device. On a CUDA device the answer takes a kernel, so that it tells who else is at work there."""
    if params["device"] == "cuda":
        int(torch.zeros(_LITTLE, dtype=torch.int64, device="cuda").sum())
    return {}


SLACK = 2.0  # of a precision's bound: other inputs kept to it, and one draw is not as another
LEAST = 2048  # elements of an output that must have been computed where blocks were left out
_SHARE = 0.5  # of the free memory, for a float64 run on the CPU
_DIGESTS = 5  # that are timed
_LAUNCHES = 32  # in each of these, where they are of next to nothing


@torch.no_grad()
def judge(params: Params, progress: Progress) -> Confirmation:
    """Params: a site's, answers (of the runner, to the sizes it was asked about), candidate, precision, calls (as
    Answers), claimed_ms (or None), rounds and replays (as Rounds), kernels (of a call, or None)."""
    file = params["candidate"]
    try:
        judging = Judging(open_site(params, replayed(params["answers"])), file, params["precision"])
        for values in params["calls"]:
            answer = answer_of(values)
            progress(f"confirming {answer.call.label}")
            judging.examine(answer)
    except TaskError as error:
        return Confirmation(None, findings=(_unknown(file, error.finding.message),))
    if params["claimed_ms"] is not None and not judging.findings:
        judging.examine_times(
            params["claimed_ms"], *([Round(**each) for each in params[x]] for x in ("rounds", "replays"))
        )
    if params["kernels"] is not None and not judging.findings:
        words, finding = launch_check(params["kernels"], file)
        judging.checks.append(words)
        judging.findings += [finding] if finding else []
    if params["device"] != DEVICE:
        judging.last = []
        torch.cuda.empty_cache()
    return Confirmation(not judging.findings, tuple(judging.checks), tuple(judging.findings))


@dataclass
class Judging:
    """Answers are examined in the order in which their calls were made. `last`: eager's outputs of the last one."""

    site: Site
    file: str
    precision: str
    checks: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    last: list[Tensor] = field(default_factory=list)
    comparer: Comparer = field(init=False)

    def __post_init__(self) -> None:
        memory = int(free_memory() * _SHARE) if self.site.device.type == "cpu" else None
        self.comparer = Comparer(self.site.module, self.site.device, memory, self.file)

    def examine(self, answer: Answer) -> None:
        """Raises TaskError where the module itself fails."""
        self.last = []
        case = Case(answer.call.label, self.site.drawn(answer.call), strict=True)
        if answer.call.state_seed is not None:
            self.comparer.state_changed()
        self.last = self._eager(case)
        try:
            self._compare(case, answer.outputs, self.last)
        except HandedError as error:
            self._add(f"On {case.label}, {error}")

    def examine_times(self, claimed_ms: float, rounds: Sequence[Round], replays: Sequence[Round]) -> None:
        """Against what calls took by the clock of the process that asked for them."""
        late = time_finding(claimed_ms, self.pace(), rounds, self.file)
        if replays and late is None and self.site.device.type == "cuda":
            late = replay_finding(claimed_ms, self.replay_pace(replays[0].calls), replays, self.file)
            self.checks.append(replay_words(replays))
        self.findings += [late] if late else []

    def replay_pace(self, calls: int) -> ReplayPace:
        """The fastest of some graphs of digests, of all outputs of so many calls and of next to nothing."""
        little = torch.zeros(1, device=self.site.device)
        copies = [[output.clone() for output in self.last] for _ in range(_COPIES)]  # no cache holds them all
        whole = Replay([partial(copies.__getitem__, turn % _COPIES) for turn in range(calls)])
        least = Replay([lambda: [little]])
        digest_s = min(self._seconds(whole.words) for _ in range(_DIGESTS)) / calls
        return ReplayPace(digest_s * 1e3, min(self._seconds(least.words) for _ in range(_DIGESTS)) * 1e3)

    def pace(self) -> Pace:
        """The fastest of some digests, of all outputs of a call and of next to nothing."""
        next_to_nothing = [torch.zeros(1, device=self.site.device)] * _LAUNCHES
        launch_s = min(self._digest_s(next_to_nothing) for _ in range(_DIGESTS)) / _LAUNCHES
        return Pace(min(self._digest_s(self.last) for _ in range(_DIGESTS)) * 1e3, launch_s * 1e3)

    def _digest_s(self, outputs: list[Tensor]) -> float:
        return self._seconds(lambda: list(map(int, [word(digests(output)) for output in outputs])))

    def _seconds(self, call: Callable[[], object]) -> float:
        synchronize(self.site.device)
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    def _eager(self, case: Case) -> list[Tensor]:
        reference = self.site.reference
        call = lambda: self.site.module(*case.inputs)  # noqa: E731
        with without_tf32(), like_cuda(self.site.device):
            doing = f"running the module itself on {case.label}"
            return tensors(guarded(call, "reference-raises", doing, reference.file, self.site.device))

    def _compare(self, case: Case, outputs: Sequence[Given], eager: list[Tensor]) -> None:
        """Raises HandedError."""
        differing = layout_findings(list(map(shell, outputs)), list(map(_shell_of, eager)), (), self.file)
        if differing:
            self._add(f"On {case.label}, {differing[0].message[0].lower()}{differing[0].message[1:]}")
            return
        pairs = [received(given, wanted) for given, wanted in zip(outputs, eager, strict=True)]
        for place, (_, judged) in enumerate(pairs):
            self._count(case, place, judged, eager)
        result = Result()
        got, judged = [one for one, _ in pairs], [flags for _, flags in pairs]
        self.comparer.compare(Outputs(case, got, eager, judged), result)
        for finding in result.findings:
            self._add(finding.message)
        for measured in result.measured if not result.findings else ():
            if usage(measured, self.precision) > SLACK:
                self._add(f"On {case.label}, its precision is not what was claimed ({self.precision})")

    def _count(self, case: Case, place: int, judged: Tensor | None, eager: list[Tensor]) -> None:
        total = eager[place].numel()
        counted = total if judged is None else int(judged.sum())
        self.checks.append(f"{case.label}: {counted} of {total} elements of output {place}")
        if counted < min(total, LEAST):
            name = name_of(place, len(eager)).lower()
            raise HandedError(f"only {counted} of {total} elements of {name} were computed")

    def _add(self, what: str) -> None:
        message = (
            f"{Path(self.file).name} was right beside its judge, and is not in a process of its own. "
            f"{what.removesuffix('.')}; a kernel must compute the same wherever it runs."
        )
        self.findings.append(Finding(KIND, message, None, self.file))


def usage(measured: Measured, precision: str) -> float:
    """The share of the precision's bound that the errors take."""
    bound = limit(measured.eager if precision == "kept" else measured.default, measured.step)
    return max(measured.candidate.rms / bound.rms, measured.candidate.max / bound.max)


def _shell_of(tensor: Tensor) -> Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _unknown(file: str, why: str) -> Finding:
    message = f"{Path(file).name} could not be confirmed in processes of their own: {why}"
    return Finding(KIND, message, None, file, "information")
