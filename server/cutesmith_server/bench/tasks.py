"""The files that a benchmark runs: KernelBench's as published, or any file with inputs and one module class."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cutesmith_server.cli.target import read_file
from cutesmith_server.errors import RefusedError

KERNELBENCH_CLASS = "Model"
_NUMBERED = re.compile(r"^(\d+)[_-]?(.*)$")
_LEVEL = re.compile(r"^level[_-]?(\d+)$", re.IGNORECASE)


@dataclass(frozen=True)
class BenchTask:
    """A file and its class. `level` and `number` as KernelBench numbers them, where names say so."""

    file: Path
    qualname: str
    name: str
    level: int | None
    number: int | None
    digest: str  # of the file's bytes

    @property
    def key(self) -> str:
        """The same in every run, and for every shard; a changed file is another task."""
        return f"{self.place}@{self.digest}"

    @property
    def place(self) -> str:
        """A folder's name."""
        level = f"level{self.level}_" if self.level is not None else ""
        number = f"{self.number}_" if self.number is not None else ""
        return f"{level}{number}{self.name}"

    def copy_to(self, folder: Path) -> Path:
        """A copy that a job may keep its store beside: a checkout stays as it is."""
        target = folder / self.place / self.file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.file, target)
        return target


@dataclass(frozen=True)
class Skipped:
    """A Python file that is no task, and why."""

    file: Path
    reason: str


def find_tasks(paths: Sequence[Path]) -> tuple[tuple[BenchTask, ...], tuple[Skipped, ...]]:
    """Those of the files, and of the folders' own files, in KernelBench's order. Raises RefusedError (exit 2)."""
    tasks: dict[Path, BenchTask] = {}
    skipped: list[Skipped] = []
    for file in _files(paths):
        found = _task(file)
        if isinstance(found, BenchTask):
            tasks.setdefault(file.resolve(), found)
        else:
            skipped.append(found)
    if not tasks:
        why = f" ({skipped[0].file.name}: {skipped[0].reason.rstrip('.')})" if skipped else ""
        raise RefusedError(f"No benchmark task there{why}: name files with a class Model and get_inputs().", exit=2)
    ordered = sorted(tasks.values(), key=lambda task: (task.level or 0, task.number or 0, task.place, str(task.file)))
    return _distinct(ordered), tuple(skipped)


def _files(paths: Iterable[Path]) -> Iterable[Path]:
    for path in paths:
        if not path.exists():
            raise RefusedError(f"{path} does not exist: name a file, or a folder of files.", exit=2)
        try:
            yield from sorted(path.glob("*.py")) if path.is_dir() else (path,)
        except OSError as error:
            raise RefusedError(f"{path} cannot be listed ({error.strerror}): name another folder.", exit=2) from None


def _task(file: Path) -> BenchTask | Skipped:
    try:
        data, outline = read_file(file)
    except RefusedError as refusal:
        return Skipped(file, str(refusal))
    names = list(dict.fromkeys(found.qualname for found in outline.classes if found.forward is not None))
    chosen = KERNELBENCH_CLASS if KERNELBENCH_CLASS in names else names[0] if len(names) == 1 else None
    if chosen is None:
        several = f"it has several modules ({', '.join(names[:4])}) and none is called Model"
        return Skipped(file, several if names else "it has no nn.Module with a forward")
    number = _NUMBERED.match(file.stem)
    level = _LEVEL.match(file.parent.name)
    name = re.sub(r"\W+", "_", number[2] if number and number[2] else file.stem).strip("_") or "task"
    digest = hashlib.sha256(data).hexdigest()[:12]
    return BenchTask(file, chosen, name, int(level[1]) if level else None, int(number[1]) if number else None, digest)


def _distinct(tasks: list[BenchTask]) -> tuple[BenchTask, ...]:
    """Two files of one name in two folders get places of their own."""
    taken: dict[str, int] = {}
    found = []
    for task in tasks:
        count = taken[task.place] = taken.get(task.place, 0) + 1
        name = task.name if count == 1 else f"{task.name}_{count}"
        found.append(BenchTask(task.file, task.qualname, name, task.level, task.number, task.digest))
    return tuple(found)


def shard_of(tasks: Sequence[BenchTask], number: int, count: int) -> tuple[BenchTask, ...]:
    """Every `count`-th task from the `number`-th (from 1) on: shards are disjoint and make up the whole."""
    return tuple(tasks[number - 1 :: count])
