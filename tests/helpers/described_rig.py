"""A project with a class that is only described, a real worker that outlives jobs, and a scripted model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cutesmith_agent.job import Job
from cutesmith_agent.llm.access import Granted, Models
from cutesmith_agent.llm.anthropic_model import AnthropicModel
from cutesmith_agent.llm.settings import Wish
from cutesmith_agent.loop import Makers
from cutesmith_agent.recipes import propose, with_header
from cutesmith_agent.running import run_job
from cutesmith_agent.store.opening import open_store
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from model_kernels import MODULE, TURNED
from model_rig import DEFAULT
from scripted_messages import Act, Request, Say, ScriptedMessages

STUB = '"""x in reverse order along its first dimension."""\n        ...'
DESCRIBED = MODULE.replace(f"return {TURNED}", STUB)
REFERENCE = "def forward(self, x: torch.Tensor) -> torch.Tensor:\n    return x.flip(0)\n"
CHECKS = """import torch


def check_shape(build, inputs):
    for shape in ((5,), (3, 2)):
        assert build()(torch.ones(shape)).shape == shape


def check_worked_values(build, inputs):
    x = torch.tensor([1.0, 2.0, 4.0])
    torch.testing.assert_close(build()(x), torch.tensor([4.0, 2.0, 1.0]))
"""


def reference(source: str = REFERENCE) -> Say:
    return Say("submit_reference", {"summary": "reversed", "source": source})


def checks(source: str = CHECKS) -> Say:
    return Say("submit_checks", {"source": source})


class Lasting(Worker):
    """A worker that jobs do not end."""

    def renew(self) -> None:
        if self._process is not None and not self._process.alive:
            super().renew()

    def end(self) -> None:
        super().renew()
        self.close()


@dataclass
class DescribedRig:
    """Jobs on one file. `requests`: what the model was asked last."""

    root: Path
    worker: Lasting
    text: str = DESCRIBED
    qualname: str = "Flip"
    events: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.root / ".git").mkdir(parents=True, exist_ok=True)
        self.file.write_text(self.text)

    @property
    def file(self) -> Path:
        return self.root / "flip.py"

    def job(self, **wish: Any) -> Job:
        task = Task(str(self.file), self.qualname)
        model = Wish(model=DEFAULT, **wish)
        return Job("optimize", task, str(self.root), sys.executable, device="none", archs=("sm_90a",), resume=True,
                   proposer="llm", model=model)  # fmt: skip

    def run(self, acts: Sequence[Act], job: Job | None = None) -> dict[str, Any]:
        """The "done" event of a job on the file as it is."""
        self.events.clear()
        with ScriptedMessages(acts) as endpoint:
            with open_store(self.root).store as store:
                store.set_consent(endpoint.url.removeprefix("http://"), granted=True)
            made = job or self.job()
            at = Wish(**{**vars(made.model), "base_url": endpoint.url})
            try:
                self._run(Job(**{**vars(made), "model": at}))
            finally:
                self.requests = endpoint.requests
        return self.events[-1]

    def _run(self, job: Job) -> None:
        models = Models(_connect, lambda: DEFAULT)
        run_job(job, lambda: self.worker, Makers(propose, with_header), self.events.append, models)


def _connect(granted: Granted) -> AnthropicModel:
    return AnthropicModel(granted.settings, granted.key)
