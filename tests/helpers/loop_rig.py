"""A project with one module, and jobs in it on a scripted evaluator."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutesmith_agent.job import Job
from cutesmith_agent.loop import Makers
from cutesmith_agent.recipes.contract import Draft
from cutesmith_agent.running import run_job
from cutesmith_evaluator.types import Finding, Task
from scripted_evaluator import ScriptedEvaluator, proposing, with_header

MODULE = (
    "import torch\nfrom torch import nn\n\n\nclass NewGELU(nn.Module):\n    def forward(self, x):\n        return x\n"
)


@dataclass
class Rig:
    """A project in a folder with one module, an evaluator, and what a job in it said."""

    root: Path
    evaluator: ScriptedEvaluator = field(default_factory=ScriptedEvaluator)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.root / "pkg" / "gelu.py"

    @property
    def job(self) -> Job:
        return Job("optimize", Task(str(self.file), "NewGELU"), str(self.root), "python")

    def run(self, *drafts: Draft, job: Job | None = None, findings: tuple[Finding, ...] = ()) -> dict[str, Any]:
        """The "done" event."""
        makers = Makers(proposing(*drafts, findings=findings), with_header)
        run_job(job or self.job, lambda: self.evaluator, makers, self.events.append)
        json.dumps(self.events)
        assert self.events[-1]["event"] == "done"
        return self.events[-1]

    def tree(self) -> dict[str, bytes]:
        files = [path for path in self.root.rglob("*") if path.is_file() and ".cutesmith" not in path.parts]
        return {str(path): path.read_bytes() for path in files}


def make_rig(folder: Path) -> Rig:
    root = folder / "project"
    (root / "pkg").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "pkg" / "__init__.py").write_text("")
    (root / "pkg" / "blocks.py").write_text("X = 1\n")
    (root / "pkg" / "gelu.py").write_text(MODULE)
    return Rig(root)


def best(report: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in report["candidates"] if one["id"] == report["best"]]
    return found
