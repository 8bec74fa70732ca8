"""The two processes of a confirmation, as the client speaks to them. Nothing that the one with the candidate says is
taken for more than its word."""

from __future__ import annotations

import os
import random
import secrets
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from math import prod
from pathlib import Path
from typing import Any

from cutesmith_evaluator import confirmation as steps
from cutesmith_evaluator.confirmation import PART, Call, Given, word_of
from cutesmith_evaluator.errors import WorkerError
from cutesmith_evaluator.process import WorkerProcess
from cutesmith_evaluator.types import Finding

WHOLE = 1 << 22  # elements up to which an output is handed over whole
BLOCKS = 16  # else so many of its parts: a few MB, where a whole one may take a second to copy
_DOING = "confirming it in processes of their own"
_random = random.SystemRandom()


class RefusedError(Exception):
    """The process with the candidate did not do what it was asked to; `finding` is what it says of that."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Peer:
    """A process of a confirmation, which is up; it is not replaced when it ends."""

    def __init__(
        self, process: WorkerProcess, deadline: float, on_progress: Callable[[str], None] | None = None
    ) -> None:
        """`deadline`: of all requests, by the monotonic clock."""
        self.process = process
        self._deadline = deadline
        self._on_progress = on_progress
        self._number = secrets.randbits(48)

    def ask(self, method: str, **params: Any) -> Any:
        """The result as JSON values. Raises WorkerError."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        left = max(1.0, self._deadline - time.monotonic())
        reply = self.process.request(message, _DOING, left, self._on_progress)
        if "error" in reply:
            raise WorkerError(f"The worker failed while {_DOING}: {_text(reply['error'])}")
        return reply["result"]


class Runner(Peer):
    """The one that has the candidate. Everything raises RefusedError where its answer is none."""

    def told(self, method: str, **params: Any) -> dict[str, Any]:
        result = self.ask(method, **params)
        if not isinstance(result, dict):
            raise nonsense()
        if result.get("finding") is not None:
            raise RefusedError(_finding(result["finding"]))
        return result

    def take(self, site: dict[str, Any], candidate: Path) -> list[bool]:
        """Which of the sizes that it was asked about the candidate takes."""
        answers = self.told(steps.TAKE, **site, candidate=str(candidate)).get("answers")
        return [bool(each) for each in answers] if isinstance(answers, list) else []

    def draw(self, call: Call) -> None:
        self.told(steps.DRAW, call=asdict(call))

    def run(self, call: Call) -> list[Given]:
        """What it gives, not handed over yet."""
        return outputs_of(self.told(steps.RUN, call=asdict(call)).get("outputs"))

    def repeat(self, names: Sequence[str]) -> tuple[float, list[list[Given]]]:
        """Seconds from the request to the answer, and what the calls give, with a word for each."""
        begin = time.monotonic()
        result = self.told(steps.REPEAT, names=list(names))
        seconds = time.monotonic() - begin
        outputs, words = result.get("outputs"), result.get("words")
        try:
            return seconds, [
                [replace(given, word=each) for given, each in zip(outputs_of(one), _numbers(said), strict=True)]
                for one, said in zip(outputs, words, strict=True)  # type: ignore[arg-type]
            ]
        except (TypeError, ValueError) as error:
            raise nonsense() from error

    def capture(self, names: Sequence[str]) -> tuple[list[Given], list[str] | None] | None:
        """What each of the calls gives as one CUDA graph, and the kernels of one; None where it can be none."""
        result = self.told(steps.CAPTURE, names=list(names))
        if result.get("outputs") is None:
            return None
        kernels = result.get("kernels")
        if kernels is not None and not (isinstance(kernels, list) and all(isinstance(each, str) for each in kernels)):
            raise nonsense()
        return outputs_of(result["outputs"]), kernels

    def replay(self, names: Sequence[str]) -> tuple[float, list[list[int]] | None]:
        """Seconds from the request to the answer, and a word for each output of each call; None: it read other
        inputs."""
        begin = time.monotonic()
        words = self.told(steps.REPLAY, names=list(names)).get("words")
        seconds = time.monotonic() - begin
        try:
            return seconds, None if words is None else [list(_numbers(each)) for each in words]
        except (TypeError, ValueError) as error:
            raise nonsense() from error

    def hand_over(self, name: str, outputs: Sequence[Given], folder: Path) -> tuple[Given, ...]:
        """The outputs of a call as files in the folder; of large ones blocks that are chosen now."""
        return tuple(self._handed(name, place, given, folder) for place, given in enumerate(outputs))

    def forget(self, names: Sequence[str]) -> None:
        self.told(steps.FORGET, names=list(names))

    def _handed(self, name: str, place: int, given: Given, folder: Path) -> Given:
        file, blocks = secrets.token_hex(8), blocks_of(prod(given.shape))
        params = {"name": name, "output": place, "blocks": blocks, "file": file, "digests": given.word is not None}
        said = self.told(steps.HAND_OVER, **params)
        mask = str(self._taken(f"{file}.mask", folder)) if said.get("masked") else None
        digests = None if given.word is None else _digests(said.get("digests"), given.word)
        return replace(given, path=str(self._taken(file, folder)), blocks=blocks, mask=mask, digests=digests)

    def _taken(self, file: str, folder: Path) -> Path:
        """The file out of the process's reach."""
        try:
            (self.process.scratch / file).rename(folder / file)
            if stat.S_ISREG(os.lstat(folder / file).st_mode):
                return folder / file
        except OSError:
            pass
        raise RefusedError(Finding("nothing-handed-over", "It handed over no output."))


def blocks_of(elements: int) -> tuple[tuple[int, int], ...] | None:
    """(first, count) of random parts of the output in order, with the first and the last; None: all of it."""
    if elements <= WHOLE:
        return None
    last = (elements - 1) // PART
    chosen = [0, *sorted(_random.sample(range(1, last), BLOCKS - 2)), last]
    return tuple((part * PART, min(PART, elements - part * PART)) for part in chosen)


def seed() -> int:
    """One that nobody knows before."""
    return secrets.randbits(31)


def outputs_of(values: Any) -> list[Given]:
    """Raises RefusedError unless each says a shape, a dtype and strides."""
    try:
        return [Given(_sizes(each["shape"]), str(each["dtype"]), _sizes(each["strides"]), "") for each in values]
    except (KeyError, TypeError, ValueError) as error:
        raise nonsense() from error


def _sizes(values: Any) -> tuple[int, ...]:
    if any(type(each) is not int or each < 0 for each in values):
        raise ValueError("sizes and strides are no negative numbers")
    return tuple(values)


def _digests(values: Any, word: int) -> tuple[int, ...]:
    """Raises RefusedError unless they are those of the output that the word was said of."""
    try:
        digests = _numbers(values)
    except (TypeError, ValueError) as error:
        raise nonsense() from error
    if word_of(digests) != word:
        message = "the output is another than the one that was made while the clock ran."
        raise RefusedError(Finding("nothing-handed-over", message))
    return digests


def _numbers(values: Any) -> tuple[int, ...]:
    if any(type(each) is not int for each in values):
        raise ValueError("digests are no numbers")
    return tuple(values)


def _finding(values: Any) -> Finding:
    if not isinstance(values, dict):
        raise nonsense()
    return Finding(str(values.get("kind")), _text(values))


def _text(values: Any) -> str:
    return str(values.get("message", ""))[:1000] if isinstance(values, dict) else str(values)[:1000]


def nonsense() -> RefusedError:
    """To be raised for an answer that cannot be one."""
    return RefusedError(Finding("no-answer", "What it answered makes no sense."))
