"""cp.async: copies from global to shared memory that nobody may look at before the thread has waited for them.

Here a copy reads its source at once and reaches shared memory at the last wait that allows it: what reads or writes the
place before that is a race, and what other threads read after it needs a barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator.access import Location, shared_rows
from cutesmith_evaluator.emulator.blame import blamed
from cutesmith_evaluator.emulator.faults import Place
from cutesmith_evaluator.emulator.kinds import BOOL, U32, Words, unsupported
from cutesmith_evaluator.emulator.memory import UNITS, AccessFaultError
from cutesmith_evaluator.emulator.program import Step
from cutesmith_evaluator.emulator.ptx import Immediate, Operand, Register
from cutesmith_evaluator.emulator.steps import typed

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch
    from cutesmith_evaluator.emulator.lowering import Lowering

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class _Pending:
    """Copies of one instruction that are under way: one for each thread. `group`: which of the thread's groups."""

    threads: Array
    rows: Array
    addresses: Array
    items: Array
    group: Array

    def of(self, chosen: Array) -> _Pending:
        parts = {name: getattr(self, name)[chosen] for name in ("threads", "rows", "addresses", "items", "group")}
        return replace(self, **parts)


class AsyncCopies:
    """The copies of a batch's threads that are under way."""

    def __init__(self, threads: int) -> None:
        self._pending: list[_Pending] = []
        self._committed = np.zeros(threads, np.int64)  # groups of each thread

    def start(self, batch: Batch, threads: Array, addresses: Array, items: Array) -> None:
        """To `addresses` in shared memory, an item for each thread."""
        rows, addresses = shared_rows(batch, threads, addresses)
        batch.shared.reserve(rows, addresses, items.itemsize, threads, items)
        self._pending.append(_Pending(threads, rows, addresses, items, self._committed[threads]))

    def commit(self, threads: Array | slice) -> None:
        self._committed[threads] += 1

    def wait(self, batch: Batch, threads: Array, keep: int) -> None:
        """All but the last `keep` committed groups of these threads are there now."""
        waiting = np.zeros(batch.size, bool)
        waiting[threads] = True
        left = []
        for pending in self._pending:
            done = waiting[pending.threads] & (pending.group < self._committed[pending.threads] - keep)
            if done.any():
                with blamed(np.searchsorted(threads, pending.threads[done])):
                    _deliver(batch, pending.of(done))
                pending = pending.of(~done)
            if pending.threads.size:
                left.append(pending)
        self._pending = left


def _deliver(batch: Batch, done: _Pending) -> None:
    batch.shared.release(done.rows, done.addresses, done.items.itemsize)
    batch.shared.store(done.rows, done.addresses, done.items.itemsize, done.threads, done.items)


@dataclass
class Copy:
    """cp.async of `size` bytes. `given`: the slot of how many of them are read, the rest being zero; `ignored`: of the
    predicate under which none is.
    """

    target: Location
    source: Location
    size: int
    given: int | None
    ignored: int | None
    place: Place | None
    family: str = "async copy"

    def run(self, batch: Batch) -> None:
        active = batch.active()
        threads = batch.numbers[active]
        _, sources = self.source.addresses(batch, active)
        _, targets = self.target.addresses(batch, active)
        items = self._fetched(batch, sources, self._sizes(batch, active), threads)
        batch.async_copies.start(batch, threads, targets, items)
        batch.counts.add_shared("shared store", targets, threads, self.size, self.place)

    def _sizes(self, batch: Batch, active: Array | slice) -> Array:
        """Bytes that each thread reads."""
        if self.given is not None:
            sizes = batch.spread(typed(batch.values[self.given], U32))[active]
            _check_sizes(sizes, self.size)
            return sizes
        sizes = np.full(batch.size, self.size, np.uint32)
        if self.ignored is not None:
            sizes[batch.spread(batch.values[self.ignored])] = 0
        return sizes[active]

    def _fetched(self, batch: Batch, addresses: Array, sizes: Array, threads: Array) -> Array:
        items = np.zeros(addresses.size, UNITS[self.size])
        whole = np.flatnonzero(sizes == self.size)
        if whole.size:
            with blamed(whole):
                items[whole] = batch.memory.load(addresses[whole], self.size)
            batch.counts.add_global("global load", addresses[whole], threads[whole], self.size, self.place)
        for byte in range(int(sizes[sizes < self.size].max(initial=0))):
            some = np.flatnonzero((sizes > byte) & (sizes < self.size))
            with blamed(some):
                read = batch.memory.load(addresses[some] + np.uint64(byte), 1)
            items.view(np.uint8).reshape(-1, self.size)[some, byte] = read
        return items


def _check_sizes(sizes: Array, size: int) -> None:
    if (sizes > size).any():
        thread = int(np.flatnonzero(sizes > size)[0])
        words = f"copies {int(sizes[thread])} bytes with a cp.async of {size}"
        raise AccessFaultError("out-of-bounds", words, thread, 0)


@dataclass
class Commit:
    """cp.async.commit_group"""

    place: Place | None
    family: str = "async copy"

    def run(self, batch: Batch) -> None:
        batch.async_copies.commit(batch.active())


@dataclass
class Wait:
    """cp.async.wait_group for all but the last `keep` groups. `uncommitted`: wait_all, which commits first."""

    keep: int
    uncommitted: bool
    place: Place | None
    family: str = "async copy"

    def run(self, batch: Batch) -> None:
        threads = batch.numbers[batch.active()]
        if self.uncommitted:
            batch.async_copies.commit(threads)
        batch.async_copies.wait(batch, threads, self.keep)


def _copy(lowering: Lowering, words: Words) -> Step:
    """cp.async.cache.shared.global{.hint} [to], [from], size{, bytes read or predicate of none}{, cache policy}"""
    instruction = words.instruction
    cache = words.one_of(("ca", "cg"))
    words.one_of(("shared", "shared::cta"))
    words.one_of(("global",))
    hint = words.flag("L2::cache_hint")
    words.one_of(("L2::64B", "L2::128B", "L2::256B"), "")
    words.done()
    target, source, size, *rest = instruction.operands[: len(instruction.operands) - hint]
    if not isinstance(size, Immediate) or size.bits not in ((16,) if cache == "cg" else (4, 8, 16)) or len(rest) > 1:
        raise unsupported(instruction)
    lowering.note_access("shared", size.bits)
    given, ignored = _limits(lowering, words, rest[0]) if rest else (None, None)
    to, where = lowering.location(target, "shared", instruction), lowering.location(source, "global", instruction)
    return Copy(to, where, size.bits, given, ignored, instruction.place)


def _limits(lowering: Lowering, words: Words, operand: Operand) -> tuple[int | None, int | None]:
    """The slot of the bytes that are read, or of the predicate under which none is."""
    instruction = words.instruction
    if isinstance(operand, Register) and lowering.slots.dtype(lowering.slots.register(operand)) == BOOL:
        return None, lowering.slots.source(operand, BOOL, instruction)
    return lowering.slots.source(operand, U32, instruction), None


def _commit(lowering: Lowering, words: Words) -> Step:
    words.done()
    return Commit(words.instruction.place)


def _wait_group(lowering: Lowering, words: Words) -> Step:
    words.done()
    count = words.instruction.operands[0]
    if not isinstance(count, Immediate):
        raise unsupported(words.instruction)
    return Wait(count.bits, False, words.instruction.place)


def _wait_all(lowering: Lowering, words: Words) -> Step:
    words.done()
    return Wait(0, True, words.instruction.place)


MAKERS: dict[str, Callable[[Lowering, Words], Step]] = {
    "cp.async": _copy,
    "cp.async.commit_group": _commit,
    "cp.async.wait_group": _wait_group,
    "cp.async.wait_all": _wait_all,
}
