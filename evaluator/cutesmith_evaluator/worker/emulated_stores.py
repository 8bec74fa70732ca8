"""From an element of an emulated output to the line of the candidate that stored it, or should have."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from torch import Tensor

from cutesmith_evaluator.emulator.faults import FaultError, Place
from cutesmith_evaluator.emulator.memory import Allocation, GlobalMemory
from cutesmith_evaluator.emulator.stores import Stores
from cutesmith_evaluator.worker.checks_case import WrongElement, bits_of
from cutesmith_evaluator.worker.emulated_tensor import EmulatedTensor
from cutesmith_evaluator.worker.inputs import tensors

_ATOMIC = re.compile(r"\batomic_\w+\(")
Answer = TypeVar("Answer")


class UnwrittenOutputError(FaultError):
    """Bytes of output number `output` hold no value."""

    def __init__(self, message: str, output: int, place: Place | None = None) -> None:
        super().__init__("unwritten-output", message, place=place)
        self.output = output

    def with_reason(self, words: str, place: Place | None) -> UnwrittenOutputError:
        return UnwrittenOutputError(f"{self.message}; {words}", self.output, place)


class NotedStores:
    """Inside the context, the stores to `memory` are noted."""

    def __init__(self, memory: GlobalMemory) -> None:
        self._memory = memory
        self._stores = Stores()

    def __enter__(self) -> None:
        self._memory.stores = self._stores

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._memory.stores = None

    def place_of(self, result: object, wrong: WrongElement) -> Place | None:
        """The line that stored the element; None where it is another value this time, or no kernel stored it."""
        found = self._allocation(result, wrong.output)
        if found is None or len(wrong.index) != found[0].dim():
            return None
        host, allocation = found
        if any(place >= size for place, size in zip(wrong.index, host.shape, strict=True)):
            return None
        if bits_of(host, wrong.index) != wrong.bits:
            return None
        return self._stores.place_of(allocation, host[wrong.index].data_ptr())

    def why_unwritten(self, result: object, output: int) -> tuple[str, Place | None] | None:
        """In words, and the line that should have stored the first byte that was not written."""
        found = self._allocation(result, output)
        holds = found[1].holds_value() if found else None
        if found is None or holds is None or holds.all():
            return None
        allocation = found[1]
        place = int(holds.argmin())
        where = f"the first is byte {place}"
        if kept_out := self._stores.kept_out(allocation, allocation.start + place):
            return f"{where}, which the condition of the store at {_lines(kept_out)} leaves out", _one(kept_out)
        if nearest := self._stores.nearest(allocation, allocation.start + place):
            return f"{where}, and the nearest bytes are stored at {_lines(nearest)}", _one(nearest)
        return f"{where}, and no kernel stores to this output at all", None

    def _allocation(self, result: object, output: int) -> tuple[Tensor, Allocation] | None:
        """The output in the CPU's memory, and where it lies."""
        outputs = tensors(result)
        tensor = outputs[output] if output < len(outputs) else None
        if not isinstance(tensor, EmulatedTensor):
            return None
        allocation = self._memory.at(tensor.host.untyped_storage().data_ptr())
        return (tensor.host, allocation) if allocation is not None else None


def own_line(place: Place | None, candidate: Path) -> int | None:
    """The line of the candidate's file. Where the compiler knows none: that of its only atomic, for an atomic."""
    if place is None or Path(place.file).name != candidate.name:
        return None
    if place.line or place.opcode not in ("atom", "red"):
        return place.line or None
    lines = candidate.read_text(errors="replace").split("\n")
    calls = [number for number, line in enumerate(lines, 1) if _ATOMIC.search(line)]
    return calls[0] if len(calls) == 1 else None


def _lines(places: set[Place]) -> str:
    numbers = sorted({place.line for place in places})
    return f"line {numbers[0]}" if len(numbers) == 1 else f"lines {', '.join(map(str, numbers))}"


def _one(places: set[Place]) -> Place | None:
    """Where it is one line alone."""
    return next(iter(places)) if len(places) == 1 else None
