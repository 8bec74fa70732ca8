"""Calls against the clock of the process that asks for them, each on inputs of its own; some results are judged."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cutesmith_evaluator.confirmation import Answer, Call, Given
from cutesmith_evaluator.confirming_peers import Runner, nonsense, seed

ROUNDS = 3  # of calls against the clock
MORE_ROUNDS = 6  # while none is as fast as the claim has it: others may keep the machine busy
_UNLIKELY, _UNLIKELY_MS = 3.0, 0.2  # times the claim, and more, that a call with its digests takes on a quiet one
CALLS = 32  # of a round; fewer, where their inputs would take more room than there is
_SHORT_MS = 0.5  # claims beside which what the host takes to launch a call is much
REPLAYED = 64  # calls in a CUDA graph
_UNLIKELY_REPLAY_MS = 0.01
_CHECKED, _CHECKED_REPLAYED = 2, 1  # calls of each round whose results are looked at
_random = random.SystemRandom()


@dataclass
class Race:
    """`bytes`: of the inputs of a call; `room`: what those of a round may take. `idle_ms`, `device_ms`: what the judge
    takes to answer a request for nothing, and for a kernel. `kernels`: symbols of those that a call launches."""

    runner: Runner
    folder: Path
    claimed_ms: float
    bytes: int
    room: int
    idle_ms: Callable[[], float]
    device_ms: Callable[[], float]
    answers: list[Answer] = field(default_factory=list)
    rounds: list[dict[str, float]] = field(default_factory=list)
    replays: list[dict[str, float]] = field(default_factory=list)
    kernels: list[str] | None = None

    def run(self) -> None:
        for number in range(ROUNDS + MORE_ROUNDS):
            if number >= ROUNDS and self._is_as_fast(self.rounds, _UNLIKELY_MS):
                break
            self._round(number)
        if self.claimed_ms <= _SHORT_MS:
            self._replay()

    def _round(self, number: int) -> None:
        """Launched by the host, one after the other."""
        calls = self._drawn(f"{number}", CALLS)
        idle_ms = self.idle_ms()
        seconds, outputs = self.runner.repeat(_names(calls))
        self.rounds.append(_timed(calls, seconds, min(idle_ms, self.idle_ms())))
        for place in _chosen(calls, _CHECKED):
            self._judge_later(calls[place], calls[place].name, outputs[place])
        self.runner.forget(_names(calls))

    def _replay(self) -> None:
        """As one CUDA graph, launched at once; each time on what was written into its inputs just before."""
        calls = self._drawn("graph", REPLAYED)
        captured = self.runner.capture(_names(calls))
        if captured is None:
            return
        outputs, self.kernels = captured
        for number in range(ROUNDS + MORE_ROUNDS):
            if number >= ROUNDS and self._is_as_fast(self.replays, _UNLIKELY_REPLAY_MS):
                break
            anew = [replace(call, name=f"{number}.{call.name}", seed=seed(), into=call.name) for call in calls]
            if not self._replayed(calls, anew, outputs):
                break
        self.runner.forget(_names(calls))

    def _replayed(self, calls: Sequence[Call], anew: Sequence[Call], outputs: Sequence[Given]) -> bool:
        """Whether the graph read the new inputs."""
        for call in anew:
            self.runner.draw(call)
        seconds, words = self.runner.replay(_names(anew))
        if words is None:
            return False
        if len(words) != len(anew) or any(len(each) != len(outputs) for each in words):
            raise nonsense()
        self.replays.append(_timed(calls, seconds, self.device_ms()))
        for place in _chosen(calls, _CHECKED_REPLAYED):
            given = [replace(one, word=said) for one, said in zip(outputs, words[place], strict=True)]
            self._judge_later(anew[place], calls[place].name, given)
        self.runner.forget(_names(anew))
        return True

    def _drawn(self, name: str, most: int) -> list[Call]:
        count = max(1, min(most, self.room // max(self.bytes, 1)))
        calls = [Call(f"{name}.{place}", "inputs of a timed call", seed()) for place in range(count)]
        for call in calls:
            self.runner.draw(call)
        return calls

    def _judge_later(self, call: Call, name: str, outputs: Sequence[Given]) -> None:
        self.answers.append(Answer(call, self.runner.hand_over(name, outputs, self.folder)))

    def _is_as_fast(self, rounds: Sequence[dict[str, float]], more_ms: float) -> bool:
        fastest = min(each["seconds"] / each["calls"] for each in rounds)
        return fastest * 1e3 <= _UNLIKELY * self.claimed_ms + more_ms


def _chosen(calls: Sequence[Call], most: int) -> list[int]:
    return _random.sample(range(len(calls)), min(most, len(calls)))


def _names(calls: Sequence[Call]) -> list[str]:
    return [call.name for call in calls]


def _timed(calls: Sequence[Call], seconds: float, answer_ms: float) -> dict[str, float]:
    return {"calls": len(calls), "seconds": seconds, "answer_ms": answer_ms}
