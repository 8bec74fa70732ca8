"""The agent's own job on a file, and the accepted copy it leads to. Imports no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

from cutesmith_agent.evaluator import Evaluator
from cutesmith_agent.job import Job
from cutesmith_agent.loop import Makers
from cutesmith_agent.recipes import propose, with_header
from cutesmith_agent.running import run_job
from cutesmith_agent.source.adoption import adopt
from cutesmith_agent.source.edits import apply_edits
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task


@dataclass(frozen=True)
class AcceptedCopy:
    """A copy of the user's file with the kernel taken in."""

    file: Path
    kernel: str  # the kernel's module name


class KeptWorker:
    """A worker that outlives a job: a job's `close` leaves the process as it is, until the `with` block ends."""

    def __init__(self) -> None:
        self._worker = Worker(Path(sys.executable))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._worker, name)

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()


def optimize(worker: KeptWorker, file: Path, qualname: str) -> dict[str, Any]:
    """The report of the agent's own job, run in this process with a worker that is already warm."""
    job = Job(kind="optimize", task=Task(str(file), qualname), workspace=str(file.parent), interpreter=sys.executable)
    makers = Makers(propose, with_header)
    return run_job(job, lambda: cast(Evaluator, worker), makers, lambda event: None).to_json()


def best_of(report: dict[str, Any]) -> dict[str, Any]:
    """The best candidate. Raises RuntimeError with the reasons when there is none."""
    for candidate in report["candidates"]:
        if candidate["id"] == report["best"]:
            return candidate
    reasons = [finding["message"] for source in (report, *report["candidates"]) for finding in source["findings"]]
    raise RuntimeError(f"no kernel for {report['task']['class']}: {report['stopped']} {' '.join(reasons)}")


def accept(file: Path, qualname: str, report: dict[str, Any], folder: Path) -> AcceptedCopy:
    """Writes to `folder` what accepting the report's kernel would write beside `file`."""
    kernel = report["kernel"]
    return write_accepted(file, qualname, Path(kernel["path"]).stem, kernel["source"], folder)


def write_accepted(file: Path, qualname: str, kernel: str, source: str, folder: Path) -> AcceptedCopy:
    """A copy of `file` in `folder` with the kernel's module of that name and source taken in."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{kernel}.py").write_text(source)
    text = file.read_text()
    patched = folder / file.name
    patched.write_text(apply_edits(text, adopt(text, qualname, kernel, relative=False)))
    return AcceptedCopy(patched, kernel)


def measure_calls(copy: AcceptedCopy, qualname: str) -> dict[str, float]:
    """What accepted.py measures, in a process of its own. Raises RuntimeError when that fails."""
    script = Path(__file__).with_name("accepted.py")
    command = [sys.executable, str(script), str(copy.file), qualname, copy.kernel]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        raise RuntimeError(f"the accepted {qualname} failed: {run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])
