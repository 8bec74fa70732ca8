"""Results as JSON lines, one per case, each carrying where and when it was measured."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cutesmith_evaluator.client import Worker

RESULTS = Path(__file__).parent / "results"


def environment_fields() -> dict[str, Any]:
    """`date` (UTC) and `environment` (types.Environment) of this run."""
    with Worker(Path(sys.executable)) as worker:
        return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "environment": asdict(worker.hello())}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a results file, oldest first; none when there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def append_line(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
