"""The folder of a benchmark's results: a line per task as it ends, and what all shards' lines come to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutesmith_server.bench.running import Ended
from cutesmith_server.bench.tables import markdown, page
from cutesmith_server.bench.tasks import BenchTask
from cutesmith_server.bench.totals import BASELINES, totals
from cutesmith_server.errors import RefusedError

Record = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """`lines` is this shard's file; the others' are beside it."""

    folder: Path
    shard: str  # "1-of-3"

    @property
    def lines(self) -> Path:
        return self.folder / f"results-{self.shard}.jsonl"

    @property
    def tasks(self) -> Path:
        """Where copies of the tasks' files are, each in a folder of its own, and their kernels."""
        return self.folder / "tasks"

    def append(self, ended: Ended) -> None:
        """The record, and the kernel beside the copy of its task's file. Raises RefusedError."""
        try:
            if ended.kernel is not None:
                place = self.tasks / ended.task.place
                (place / Path(ended.kernel.path).name).write_bytes(ended.kernel.source.encode())
            with self.lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(ended.record, ensure_ascii=False) + "\n")
        except OSError as error:
            why = f"{error.filename or self.folder} cannot be written ({error.strerror})"
            raise RefusedError(f"{why}: see to it, and run the command again to go on.") from None

    def known(self) -> dict[str, Record]:
        """Every task's last record, of all shards, by the task's key. A line that a kill cut short is left out."""
        found: dict[str, Record] = {}
        for file in sorted(self.folder.glob("results-*.jsonl")):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                record = _record(line)
                if record is not None:
                    found[record["key"]] = record
        return found


def open_results(folder: Path, shard: str) -> Results:
    """Raises RefusedError (exit 2) where nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        results = Results(folder, shard)
        with results.lines.open("a", encoding="utf-8") as file:
            if results.lines.stat().st_size and not results.lines.read_bytes().endswith(b"\n"):
                file.write("\n")  # after a line that a kill cut short
    except OSError as error:
        raise RefusedError(f"{folder} cannot be written ({error.strerror}): name another --out.", exit=2) from None
    return results


def _record(line: str) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.keys() >= _REQUIRED else None


_REQUIRED = {"key", "level", "id", "name", "outcome", "ok", "precision", "error_ratio", "speedup", "times_ms"}


def summary(tasks: Sequence[BenchTask], known: Mapping[str, Record], date: str, command: str) -> dict[str, Any]:
    """What bench.json holds. `device`: where most tasks' verdicts come from."""
    records = [known[task.key] for task in tasks if task.key in known]
    devices = [record["device"] for record in records if record.get("device") not in (None, "none")]
    return {
        "device": max(set(devices), key=devices.count) if devices else "none",
        "date": date,
        "command": command,
        "missing": len(tasks) - len(records),
        "totals": [totals(records, baseline).to_json() for baseline in BASELINES],
        "tasks": records,
    }


def write_summary(folder: Path, result: dict[str, Any]) -> tuple[Path, ...]:
    """bench.json, bench.md and bench.html. Raises RefusedError."""
    texts = {"json": json.dumps(result, indent=1, ensure_ascii=False) + "\n"}
    texts |= {"md": markdown(result), "html": page(result)}
    written = []
    try:
        for suffix, text in texts.items():
            written.append(folder / f"bench.{suffix}")
            written[-1].write_text(text, encoding="utf-8")
    except OSError as error:
        raise RefusedError(f"{folder} cannot be written ({error.strerror}): name another --out.") from None
    return tuple(written)
