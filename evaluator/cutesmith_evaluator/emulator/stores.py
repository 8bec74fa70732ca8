"""Which line of source stored each byte of memory, and which stores were left out by a condition: kept on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from cutesmith_evaluator.emulator.faults import Place

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.memory import Allocation

Array = np.ndarray[Any, np.dtype[Any]]
_LEFT_OUT = 1 << 24  # addresses of stores left out that are kept at most


class Stores:
    """Notes the stores of the launches that run while it is the memory's. `place_now`: of the step that runs."""

    def __init__(self) -> None:
        self.place_now: Callable[[], Place | None] = lambda: None
        self._numbers: dict[Place | None, int] = {}
        self._marks: WeakKeyDictionary[Allocation, Array] = WeakKeyDictionary()
        self._left_out: WeakKeyDictionary[Allocation, list[tuple[Place, Array, int]]] = WeakKeyDictionary()
        self._room = _LEFT_OUT

    def note(self, allocation: Allocation, index: Array, unit: int) -> None:
        """The step that runs stores items of `unit` bytes; `index`: of each in the allocation's view."""
        self._marked(allocation).reshape(-1, unit)[index] = self._number()

    def note_region(
        self, allocation: Allocation, address: int, shape: tuple[int, ...], strides: tuple[int, ...], size: int
    ) -> None:
        marks = self._marked(allocation)
        steps = (*(2 * stride for stride in strides), 2)
        offset = 2 * (address - allocation.base)
        np.ndarray((*shape, size), "u2", marks, offset, steps)[...] = self._number()  # pyright: ignore[reportArgumentType]

    def forget(self, allocation: Allocation) -> None:
        """Something else than a kernel has stored there."""
        self._marks.pop(allocation, None)

    def leave_out(self, place: Place, allocation: Allocation, addresses: Array, unit: int) -> None:
        """A store whose condition does not hold, by where it would have gone."""
        if addresses.size <= self._room:
            self._room -= addresses.size
            self._left_out.setdefault(allocation, []).append((place, addresses, unit))

    def place_of(self, allocation: Allocation, address: int) -> Place | None:
        """The line that stored a byte last; None where no kernel did, or its line is not known."""
        marks = self._marks.get(allocation)
        return None if marks is None else self._place(int(marks[address - allocation.base]))

    def nearest(self, allocation: Allocation, address: int) -> set[Place]:
        """The lines that stored what lies nearest to a byte on either side."""
        marks = self._marks.get(allocation)
        stored = np.flatnonzero(marks) + allocation.base if marks is not None else np.empty(0, np.int64)
        if marks is None or not stored.size:
            return set()
        distances = np.abs(stored - address)
        found = {int(marks[place - allocation.base]) for place in stored[distances == distances.min()]}
        return _known(map(self._place, found))

    def kept_out(self, allocation: Allocation, address: int) -> set[Place]:
        """The lines whose condition kept a byte from being stored, that nothing has written.

        A store that would have gone beyond the allocation, or over what another one has stored, is none of them: a
        vector that does not fit, beside a loop over single elements.
        """
        holds = allocation.holds_value()
        if holds is None:
            return set()
        found: set[Place] = set()
        for place, addresses, unit in self._left_out.get(allocation, ()):
            reaching = addresses[(addresses <= np.uint64(address)) & (addresses + np.uint64(unit) > np.uint64(address))]
            for start in np.unique(reaching).astype(np.int64) - allocation.start:
                fits = start >= 0 and start + unit <= holds.size
                if fits and not holds[start : start + unit].any():
                    found.add(place)
        return _known(found)

    def _marked(self, allocation: Allocation) -> Array:
        """The number of a line for each byte from the allocation's base on, 0 for none."""
        if allocation not in self._marks:
            self._marks[allocation] = np.zeros(allocation.length, np.uint16)
        return self._marks[allocation]

    def _number(self) -> int:
        return self._numbers.setdefault(self.place_now(), min(len(self._numbers) + 1, 0xFFFF))

    def _place(self, number: int) -> Place | None:
        return next((place for place, each in self._numbers.items() if each == number), None)


def _known(places: Iterable[Place | None]) -> set[Place]:
    return {place for place in places if place is not None and place.line}
