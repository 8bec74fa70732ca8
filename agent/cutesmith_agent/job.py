"""The job an agent process is given, as it comes over stdin (`docs/contracts.md`, Agent process)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cattrs import BaseValidationError

from cutesmith_agent.archs import ARCHS
from cutesmith_agent.llm.settings import Provider, Wish
from cutesmith_evaluator.types import Task
from cutesmith_evaluator.wire import converter


class JobError(ValueError):
    """The job cannot be read. `str()` is one sentence for a person."""


@dataclass(frozen=True)
class Job:
    """One class to make a kernel for, kernels to check against their class, or ("revalidate") a kernel of an earlier
    job to prove against the class as it is now and to offer again."""

    kind: Literal["optimize", "check", "revalidate"]
    task: Task
    workspace: str
    interpreter: str
    source: str | None = None  # the editor's unsaved text of task.file
    candidates: tuple[str, ...] = ()  # check: the kernels' paths; revalidate: the one kernel's
    archs: tuple[str, ...] = ()  # besides the device's; () without a device: the usual three
    device: Literal["auto", "cuda", "emulated", "none"] = "auto"
    resume: bool = False
    allow_lowered: bool = False  # a precision below the module's own is no failure
    again: bool = False  # with resume: go on with a job that came to its end, too
    proposer: Literal["recipes", "auto", "llm"] = "auto"
    model: Wish = field(default_factory=Wish)
    provider: Provider = "anthropic"  # of the model
    max_autotune: bool = False  # time torch.compile in that mode, too: its search takes minutes

    @property
    def file(self) -> Path:
        return Path(self.task.file)


def read_job(data: bytes) -> Job:
    """Raises JobError."""
    try:
        job = converter().structure(json.loads(data), Job)
    except (ValueError, BaseValidationError, TypeError) as error:
        raise JobError(f"The job on stdin cannot be read ({type(error).__name__}); see docs/contracts.md.") from error
    if (job.kind == "optimize") == bool(job.candidates) or (job.kind == "revalidate" and len(job.candidates) > 1):
        raise JobError("A check needs paths of kernels as its candidates, a revalidation one, and nothing else any.")
    if unknown := [arch for arch in job.archs if arch not in ARCHS]:
        raise JobError(f"{unknown[0]!r} is no arch that the CuTe DSL knows; choose from {', '.join(ARCHS)}.")
    return job
