"""A Ray cluster on this machine, whose nodes say that they have a GPU: the emulated device stands in for it."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cutesmith_evaluator.processes import descendants

_SMALL = {"object_store_memory": 100 * 2**20, "num_cpus": 1}
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_memory_monitor_refresh_ms": "0",  # what else runs on this machine is no reason to kill a task
    "RAY_ENABLE_METRICS_COLLECTION": "0",
}


class LocalCluster:
    """A head without a GPU, and nodes that each have one."""

    def __init__(self, folder: str) -> None:
        from ray.cluster_utils import Cluster

        head = _SMALL | {"num_gpus": 0, "include_dashboard": False, "temp_dir": folder}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address: str = self._cluster.address

    def add_node(self) -> Any:
        return self._cluster.add_node(num_gpus=1, **_SMALL)

    def kill(self, node: Any) -> None:
        """Its processes die at once."""
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()


@contextmanager
def local_cluster() -> Iterator[LocalCluster]:
    before = {name: os.environ.get(name) for name in _SETTINGS}
    os.environ.update(_SETTINGS)
    try:
        with tempfile.TemporaryDirectory(
            prefix="ray-", ignore_cleanup_errors=True
        ) as folder:  # its sockets want a short path
            cluster = LocalCluster(folder)
            try:
                yield cluster
            finally:
                cluster.close()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def agents_on(node: Any) -> list[int]:
    """The pids of our agents that the node's workers run."""
    (raylet,) = (each.process.pid for each in node.all_processes["raylet"])
    return [pid for pid in descendants(raylet) if b"cutesmith_agent" in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def until(happens: Callable[[], Any], seconds: float = 120.0) -> Any:
    """What it gives as soon as that is true."""
    end = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return found
