"""Whether a time that a candidate's own process measured can be true, seen by the clock of another process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutesmith_evaluator.types import Finding

FACTOR = 1.5  # of the time that the claim allows, which is too long
DIGEST_FACTOR = 1.2  # of that of the digests in a CUDA graph, which the judge measures in one, too
LAUNCH_MS = 0.2  # a call of some launches and its digests, as the host makes them: beside a short kernel they are all
NODE_MS = 0.005  # a call in a CUDA graph: from one kernel to the next, and clocks that are lower than when it was timed
BUSY = 4  # calls of nothing but digests that such a call may take where the host is slow, or others keep it busy
ROUND_MS = 0.5  # a request and its answer
ANSWERS = 2  # such answers as another process gave at that time, which one may take instead
SLOWEST_ANSWER_MS = 4.0  # that counts: a candidate could keep all cores busy


@dataclass(frozen=True)
class Round:
    """Calls back to back, each on inputs of its own, with a digest of all that it gave: from request to answer.

    `answer_ms`: what the judge took at that time to answer a request for nothing.
    """

    calls: int
    seconds: float
    answer_ms: float

    @property
    def call_ms(self) -> float:
        """At least; 0 where the request and its answer may have been all that took time."""
        asking_ms = max(ROUND_MS, ANSWERS * min(self.answer_ms, SLOWEST_ANSWER_MS))
        return max(0.0, self.most_ms - asking_ms / self.calls)

    @property
    def most_ms(self) -> float:
        """A call's time, with its share of the request and the answer."""
        return self.seconds * 1e3 / self.calls


@dataclass(frozen=True)
class ReplayPace:
    """This machine's, for rounds that replay a CUDA graph, as the judge measured it: of graphs of digests alone.

    `digest_ms`: of a call's, in a graph of as many calls; `least_ms`: of the smallest graph there is, once."""

    digest_ms: float
    least_ms: float


@dataclass(frozen=True)
class Pace:
    """This machine's, as the judge measured it. `digest_ms`: of a call's outputs; `launch_ms`: of next to nothing."""

    digest_ms: float
    launch_ms: float


def time_finding(claimed_ms: float, pace: Pace, rounds: Sequence[Round], file: str) -> Finding | None:
    """One where even the fastest round took far longer than the claim has it."""
    if not rounds:
        return None
    best = min(each.call_ms for each in rounds)
    if best <= FACTOR * (claimed_ms + pace.digest_ms) + max(LAUNCH_MS, BUSY * pace.launch_ms):
        return None
    return _finding(best - pace.digest_ms, claimed_ms, file)


def replay_finding(claimed_ms: float, pace: ReplayPace, rounds: Sequence[Round], file: str) -> Finding | None:
    """The same of rounds in which the device runs all calls by itself, so that the host counts once for them all."""
    if not rounds:
        return None
    fastest = min(rounds, key=lambda each: each.call_ms)
    host_ms = BUSY * pace.least_ms / fastest.calls
    if fastest.call_ms <= FACTOR * claimed_ms + DIGEST_FACTOR * pace.digest_ms + NODE_MS + host_ms:
        return None
    return _finding(fastest.call_ms - pace.digest_ms, claimed_ms, file)


def replay_words(rounds: Sequence[Round]) -> str:
    """What the fastest of such rounds has shown, no more: a busy host leaves little."""
    fastest = min(rounds, key=lambda each: each.most_ms)
    span = f"{fastest.call_ms:.4f} to {fastest.most_ms:.4f} ms each"
    return f"{fastest.calls} calls in a CUDA graph: {span}, with a digest of it"


def _finding(seen_ms: float, claimed_ms: float, file: str) -> Finding:
    message = (
        f"A call took {seen_ms:.4g} ms by the clock of another process, but {claimed_ms:.4g} ms by the events "
        "in the candidate's own: work is done that these do not see, or the machine is busy; the timing is void."
    )
    return Finding("time-not-confirmed", message, None, file)
