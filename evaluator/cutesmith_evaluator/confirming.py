"""A verdict from two processes that each lack what the other could abuse.

One has the candidate: it runs calls and hands over what they give. The other, the judge, never sees the candidate:
once the first is gone, it draws the same inputs, computes what they should give, and says what it thinks. The client
stands between them: it chooses what is asked for when the candidate has long been imported, and holds the clock.
"""

from __future__ import annotations

import ast
import random
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from cutesmith_evaluator import confirmation as steps
from cutesmith_evaluator.confirmation import BIG, KIND, Answer, Call
from cutesmith_evaluator.confirming_pair import Pair
from cutesmith_evaluator.confirming_peers import Peer, RefusedError, Runner, seed
from cutesmith_evaluator.confirming_race import Race
from cutesmith_evaluator.errors import WorkerDied, WorkerError, WorkerUnavailable
from cutesmith_evaluator.temporary import TemporaryFolder
from cutesmith_evaluator.types import Claim, Confirmation, Finding
from cutesmith_evaluator.wire import converter

_PINGS = 4
_SHARE = 0.2  # of the device's free memory, for the inputs of a round; their outputs take as much
_NO_VERDICT = {"not-emulated", "out-of-time"}  # of the emulated device
_ANEW = (
    "the module or its inputs are other in each process; draw them with torch's, random's or numpy's own generators, "
    "which are seeded."
)
_random = random.SystemRandom()
Result = TypeVar("Result")


@dataclass(frozen=True)
class Matter:
    """What is to be confirmed. `site`: what both processes are told of the task and the device."""

    site: dict[str, Any]
    candidate: Path
    claim: Claim


@dataclass
class Session:
    """A confirmation while the process with the candidate lives."""

    runner: Runner
    folder: Path
    bytes: int  # of the inputs
    room: int  # bytes that the inputs of a round may take
    redraws: bool  # whether the module runs with other parameters and buffers
    answers: list[Answer] = field(default_factory=list)
    raced: Race | None = None

    def call_in_turns(self) -> None:
        """New tensors, the same ones changed in place, new ones again; then the results, in any order."""
        state = seed() if self.redraws else None
        words = ", with other parameters and buffers" if self.redraws else ""
        first = Call("first", "fresh inputs", seed())
        same = Call("same", f"the same tensors changed in place{words}", seed(), into="first", state_seed=state)
        other = Call("other", f"new tensors{words}", seed())
        calls = [first, same, other]
        given = {call.name: self._run(call) for call in calls}
        handed = {
            name: self.runner.hand_over(name, given[name], self.folder) for name in _random.sample(list(given), 3)
        }
        self.answers += [Answer(call, handed[call.name]) for call in calls]
        self.runner.forget(list(given))

    def call_one_by_one(self) -> None:
        """For inputs that are too big to be there twice, and results that are memory of the inputs."""
        for name, state in (("first", None), ("other", seed() if self.redraws else None)):
            call = Call(name, "fresh inputs" if state is None else "other parameters", seed(), state_seed=state)
            self.answers.append(Answer(call, self.runner.hand_over(name, self._run(call), self.folder)))
            self.runner.forget([name])

    def race(self, claimed_ms: float, idle_ms: Callable[[], float], device_ms: Callable[[], float]) -> None:
        """Calls on inputs of their own, against the client's clock."""
        self.raced = Race(self.runner, self.folder, claimed_ms, self.bytes, self.room, idle_ms, device_ms)
        self.raced.run()
        self.answers += self.raced.answers

    def _run(self, call: Call) -> Any:
        self.runner.draw(call)
        return self.runner.run(call)


class Confirming:
    """One confirmation, by a pair of processes that was asked nothing before; `close` ends them."""

    def __init__(self, pair: Pair, matter: Matter, deadline_s: float) -> None:
        self._pair, self._matter = pair, matter
        self._deadline = time.monotonic() + deadline_s
        self._seed = seed()
        self._folder = TemporaryFolder()
        self._judge = self._beside(lambda: Peer(pair.judge(), self._deadline))

    def verdict(self, on_progress: Callable[[str], None] = lambda message: None) -> Confirmation:
        """Raises WorkerUnavailable."""
        rehearsal = self._beside(self._rehearsed)
        try:
            taken, session = self._run(rehearsal, on_progress)
        except RefusedError as error:
            return self._refused(error.finding)
        except WorkerDied as error:
            return self._refused(error.finding)
        except WorkerUnavailable:
            raise
        except (WorkerError, _UnknownError) as error:
            return self._unknown(str(error))
        on_progress("confirming by a process without the candidate")
        try:
            return self._beside(lambda: self._judged(taken, session)).result()
        except WorkerUnavailable:
            raise
        except WorkerError as error:
            return self._unknown(str(error))

    def close(self) -> None:
        """Ends all that is left, at once."""
        self._pair.close()
        self._folder.close()

    def _beside(self, call: Callable[[], Result]) -> Future[Result]:
        """In the thread that speaks to the judge."""
        return self._pair.beside.submit(call)

    def _run(self, rehearsal: Future[dict[str, Any]], on_progress: Callable[[str], None]) -> tuple[list[bool], Session]:
        """All that needs the candidate. Its process is gone when this returns or raises."""
        runner = Runner(self._pair.runner(), self._deadline, on_progress)
        try:
            mine = runner.told(steps.REHEARSE, **self._matter.site, seed=self._seed)
            taken = runner.take(self._matter.site, self._matter.candidate)
            wanted = rehearsal.result()
            if mine.get("drawn") != wanted["drawn"]:
                raise _UnknownError(_ANEW)
            redraws = wanted["redraws"] and not _is_model(self._matter.candidate)
            in_turns = wanted["bytes"] <= BIG and not wanted["aliases"]
            room = BIG if wanted["free"] is None else int(wanted["free"] * _SHARE)
            session = Session(runner, self._folder.path, wanted["bytes"], room, redraws)
            on_progress("confirming in a process of its own")
            session.call_in_turns() if in_turns else session.call_one_by_one()
            if self._matter.claim.call_ms is not None:
                site = {"device": self._matter.site["device"]}
                session.race(self._matter.claim.call_ms, self._answer_ms, lambda: self._answer_ms(**site))
            return taken, session
        finally:
            runner.process.kill()

    def _answer_ms(self, device: str = "cpu") -> float:
        """What the judge, which has nothing else to do, takes to answer: the longest of some."""
        return self._beside(lambda: max(self._ping_ms(device) for _ in range(_PINGS))).result()

    def _ping_ms(self, device: str) -> float:
        judge = self._judge.result()
        begin = time.monotonic()
        judge.ask(steps.PING, device=device)
        return (time.monotonic() - begin) * 1e3

    def _rehearsed(self) -> dict[str, Any]:
        """Raises _UnknownError where the module itself fails."""
        drawn = self._judge.result().ask(steps.REHEARSE, **self._matter.site, seed=self._seed, tries=True)
        if "finding" in drawn:
            raise _UnknownError(drawn["finding"]["message"])
        return drawn

    def _judged(self, taken: list[bool], session: Session) -> Confirmation:
        raced = session.raced
        reply = self._judge.result().ask(
            steps.JUDGE,
            **self._matter.site,
            answers=taken,
            candidate=str(self._matter.candidate),
            precision=self._matter.claim.precision,
            calls=[asdict(answer) for answer in session.answers],
            claimed_ms=self._matter.claim.call_ms,
            rounds=raced.rounds if raced else [],
            replays=raced.replays if raced else [],
            kernels=raced.kernels if raced else None,
        )
        return converter().structure(reply, Confirmation)

    def _refused(self, finding: Finding) -> Confirmation:
        """What the process with the candidate says is no verdict; that it gives no results is one."""
        if finding.kind in _NO_VERDICT:
            return self._unknown(finding.message)
        words = f"was right beside its judge, and gives no result in a process of its own: {finding.message}"
        return Confirmation(False, findings=(self._finding(words, "error"),))

    def _unknown(self, why: str) -> Confirmation:
        words = f"could not be confirmed in processes of their own: {why}"
        return Confirmation(None, findings=(self._finding(words, "information"),))

    def _finding(self, words: str, severity: Literal["error", "information"]) -> Finding:
        candidate = self._matter.candidate
        return Finding(KIND, f"{candidate.name} {words}", None, str(candidate), severity)


class _UnknownError(Exception):
    """Nothing can be said of the candidate; `str()` says why."""


def _is_model(candidate: Path) -> bool:
    """Whether it keeps KernelBench's contract, whose state need not be the module's."""
    tree = ast.parse(candidate.read_bytes())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return "ModelNew" in names and "forward" not in names
