"""Groups of bulk stores: which of a thread's are done with the shared memory that they read."""

from __future__ import annotations

from collections import defaultdict

from cutesmith_evaluator.emulator.order import Agent, Order


class BulkGroups:
    """Of all threads of a batch. Every store has a number within its warp."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._issued: dict[int, int] = defaultdict(int)  # stores of a warp so far
        self._open: dict[int, int] = {}  # thread → its last store that is in no group yet
        self._groups: dict[int, list[int]] = defaultdict(list)  # thread → the last store of each group

    def issue(self, thread: int, warp: int) -> Agent:
        self._issued[warp] += 1
        self._open[thread] = self._issued[warp]
        return self._order.bulk_store(warp, self._issued[warp])

    def commit(self, thread: int) -> None:
        groups = self._groups[thread]
        last = groups[-1] if groups else 0
        groups.append(self._open.pop(thread, last))

    def wait(self, thread: int, warp: int, left: int) -> None:
        """All groups of the thread but the last `left` are done."""
        groups = self._groups[thread]
        done = groups[: len(groups) - left] if left else groups
        if done:
            self._order.complete(self._order.bulk_store(warp, done[-1]))
