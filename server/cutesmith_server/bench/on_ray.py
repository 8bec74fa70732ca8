"""The tasks of a benchmark on a Ray cluster: one at a time on each GPU, in processes of ours on the GPU's node.

Ray places tasks, and runs those of workers and nodes that died again. All else is as on one machine: a task's record
comes back and is written here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cutesmith_server.bench.on_node import Parcel, run_parcel
from cutesmith_server.bench.outcome import failure
from cutesmith_server.bench.ray_cluster import LOCAL, connected, room
from cutesmith_server.bench.running import Ended, Orders, Shown
from cutesmith_server.bench.tasks import BenchTask
from cutesmith_server.errors import RefusedError
from cutesmith_server.version import VERSION

RETRIES = 2  # of a task whose worker or node died
_LOOK_S = 1.0
_WITHOUT_NODES_S = 40.0  # they may come back; without its head Ray ends this process after 60
_STOP_S = 3.0


def on_cluster(
    waiting: Sequence[BenchTask], folder: Path, orders: Orders, end: float, shown: Shown, address: str
) -> Iterator[Ended]:
    """The tasks as they end; none is begun after `end` (of time.monotonic). Raises RefusedError."""
    with connected(address) as ray:
        needs = _needs(orders.device)
        if not room(ray, needs):
            advice = "add a node with one, or give --device emulated to do without"
            raise RefusedError(f"{_words(address)} has no GPU: {advice}.", exit=2)
        submit = ray.remote(run_parcel).options(**needs, max_retries=RETRIES).remote
        yield from _Run(ray, submit, needs, folder, orders, shown).ended(list(waiting), end)


class _Run:
    """Tasks on their way. No more of them than there is room for: what is not begun can still be left."""

    def __init__(
        self,
        ray: Any,
        submit: Callable[[Parcel], Any],
        needs: dict[str, int],
        folder: Path,
        orders: Orders,
        shown: Shown,
    ) -> None:
        self._ray, self._submit, self._needs = ray, submit, needs
        self._folder, self._orders, self._shown = folder, orders, shown
        self._running: dict[Any, tuple[BenchTask, float]] = {}
        self._had_room = time.monotonic()

    def ended(self, waiting: list[BenchTask], end: float) -> Iterator[Ended]:
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self._room() and time.monotonic() < end:
                    yield from self._begin(waiting.pop(0))
                if not self._running and time.monotonic() >= end:
                    return
                yield from self._look()
        finally:
            self._cancel()

    def _room(self) -> int:
        """Raises RefusedError where there has been none for a while."""
        free, now = room(self._ray, self._needs), time.monotonic()
        if free:
            self._had_room = now
        elif now - self._had_room > _WITHOUT_NODES_S:
            raise RefusedError("The Ray cluster has lost its nodes or its head: run the command again to go on there.")
        return free

    def _begin(self, task: BenchTask) -> Iterator[Ended]:
        """Sends it off; a file that cannot be read any more is its end."""
        try:
            copy = task.copy_to(self._folder)
            parcel = Parcel(task, copy.read_bytes(), str(copy.parent), self._orders)
        except OSError as error:
            yield Ended(task, failure(task, str(error), 0.0))
            return
        self._running[self._submit(parcel)] = task, time.monotonic()

    def _look(self) -> Iterator[Ended]:
        """Those that have ended, after a second at most."""
        self._room()
        self._shown(f"{len(self._running)} tasks on Ray")
        if not self._running:
            time.sleep(_LOOK_S)
            return
        ready, _ = self._ray.wait(list(self._running), timeout=_LOOK_S)
        for reference in ready:
            task, begun = self._running.pop(reference)
            yield self._result(reference, task, begun)

    def _result(self, reference: Any, task: BenchTask, begun: float) -> Ended:
        errors = self._ray.exceptions
        try:
            result = self._ray.get(reference)
        except errors.RayTaskError as error:
            raise RefusedError(_unfit(error)) from None
        except errors.RayError as error:
            why = f"Ray lost the worker {RETRIES + 1} times over this task ({type(error).__name__})."
            return Ended(task, failure(task, why, time.monotonic() - begun))
        if isinstance(result, str):
            raise RefusedError(result)
        return result

    def _cancel(self) -> None:
        """Their agents get to end what they started."""
        for reference in self._running:
            self._ray.cancel(reference)
        if self._running:
            self._ray.wait(list(self._running), num_returns=len(self._running), timeout=_STOP_S)


def _words(address: str) -> str:
    return "This machine" if address == LOCAL else f"The Ray cluster at {address}"


def _needs(device: str) -> dict[str, int]:
    """What a task takes of a node."""
    return {"num_cpus": 1} if device in ("emulated", "none") else {"num_gpus": 1, "num_cpus": 0}


def _unfit(error: Exception) -> str:
    """Of what a node raised before our code there could answer."""
    last = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__).strip()
    return (
        f"A node of the Ray cluster cannot run CuteSmith ({last}): install cutesmith {VERSION} for Ray's Python there."
    )
