"""What a node of a Ray cluster does with a task: its file's text comes along, for nodes may share no disk."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from cutesmith_server.bench.running import Ended, Orders, run_task
from cutesmith_server.bench.tasks import BenchTask
from cutesmith_server.errors import RefusedError
from cutesmith_server.version import VERSION


@dataclass(frozen=True)
class Parcel:
    """A task as it travels. `folder`: of its copy where the results are; findings name that, not the node's."""

    task: BenchTask
    data: bytes
    folder: str
    orders: Orders
    version: str = VERSION


def run_parcel(parcel: Parcel) -> Ended | str:
    """What came of the task, or the sentence that says why this node cannot run it."""
    if parcel.version != VERSION:
        return (
            f"{os.uname().nodename} has CuteSmith {VERSION}, and this is {parcel.version}: install one version on both."
        )
    os.environ.pop("OMP_NUM_THREADS", None)  # Ray's; a job on a machine alone has all its processors
    with tempfile.TemporaryDirectory(prefix="cutesmith-bench-") as work:
        folder = Path(work).resolve() / parcel.task.place
        try:
            ended = run_task(parcel.task, lambda: _written(parcel, folder), parcel.orders, lambda stage: None)
        except RefusedError as busy:
            return f"{os.uname().nodename}: {busy}"
        remark = ended.record["remark"].replace(str(folder), parcel.folder)
        return replace(ended, record=ended.record | {"remark": remark})


def _written(parcel: Parcel, folder: Path) -> Path:
    folder.mkdir()
    file = folder / parcel.task.file.name
    file.write_bytes(parcel.data)
    return file
