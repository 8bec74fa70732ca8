"""What runs under Nsight Compute: a candidate, warm, called once while the profiler looks."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.inputs import draw
from cutesmith_evaluator.worker.reference import load_reference


def run(task: str, candidate: str) -> None:
    """`task`: as JSON; `candidate`: its path. Raises whatever goes wrong; ncu's caller reads it off the output."""
    device = torch.device("cuda", 0)
    reference = load_reference(Task(**json.loads(task)))
    loaded = load_candidate(Path(candidate), reference)
    module, inputs = reference.build(device), draw(reference, 0, device)
    with torch.no_grad():
        loaded.warm_up(module, *inputs)
        loaded.forward(module, *inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        loaded.forward(module, *inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
