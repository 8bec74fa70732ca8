"""`profile`: what limits a candidate, as far as the tools of this machine tell."""

from __future__ import annotations

from pathlib import Path

from cutesmith_evaluator.types import Profile, Task
from cutesmith_evaluator.worker import ncu
from cutesmith_evaluator.worker.environment import environment
from cutesmith_evaluator.worker.methods import Params, Progress


def profile(params: Params, progress: Progress) -> Profile:
    """Params: task, candidate, timeout_s. Only kernels of one call of the candidate's forward are measured."""
    progress("profiling with Nsight Compute")
    measured = ncu.measure(Task(**params["task"]), Path(params["candidate"]), params["timeout_s"])
    return Profile(environment().arch or "none", 0, (), measured.kernels, measured.findings)
