"""A kernel is tried as its users may call it, and for other numbers in the module: right, or refused by `supports`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task, Validation
from judged_candidates import ROWS

PLAIN = (Path(__file__).parent / "honest" / "plain.py").read_text()
TASK = """
import torch
from torch import nn

class Floored(nn.Module):
    def __init__(self):
        super().__init__()
        self.floor, self.unread = 0.0, 7
        self.weight = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        return torch.clamp(x, min=self.floor) * self.weight

def get_inputs():
    return [torch.randn(6, 64)]
"""
LAUNCH = "_launcher()(x, module.weight, y)"
ZEROS = f"weight = x.new_zeros(64) if CONDITION else module.weight\n    {LAUNCH.replace('module.weight', 'weight')}"
OTHERWISE = "torch.is_inference_mode_enabled() or torch.is_grad_enabled() or x.storage_offset() > 0"
GUARD = '    if module.floor != 0:\n        return "module.floor is not 0"\n    return None\n'


def validated(worker: Worker, folder: Path, source: str) -> Validation:
    (folder / "task.py").write_text(TASK)
    (folder / "a_cute.py").write_text(source)
    task = Task(str(folder / "task.py"), "Floored")
    return worker.validate(task, folder / "a_cute.py", device="emulated", dynamic_dims=ROWS)


def errors(verdict: Validation) -> list[tuple[str, str]]:
    return [(finding.kind, finding.message) for finding in verdict.findings if finding.severity == "error"]


def test_a_result_that_depends_on_the_caller_is_wrong(worker: Worker, tmp_path: Path):
    source = PLAIN.replace(LAUNCH, ZEROS.replace("CONDITION", OTHERWISE)).replace("    return None\n", GUARD)
    found = errors(validated(worker, tmp_path, source))
    where = ("inference_mode", "every parameter frozen", "another multiple of 16 bytes", "no multiple of 16 bytes")
    assert [kind for kind, _ in found] == ["wrong-values"] * 4
    assert all(words in message for words, (_, message) in zip(where, found, strict=True))


def test_a_kernel_of_aligned_tensors_is_to_refuse_others(worker: Worker, tmp_path: Path):
    aligned = PLAIN.replace("assumed_align=4", "assumed_align=16").replace("    return None\n", GUARD)
    assert [kind for kind, _ in errors(validated(worker, tmp_path, aligned))] == ["wrong-arguments"]
    refusing = aligned.replace("x.is_contiguous())", "x.is_contiguous() and x.data_ptr() % 16 == 0)")
    assert validated(worker, tmp_path, refusing).ok is True


@pytest.mark.parametrize("guarded", [False, True])
def test_a_number_of_the_modules_is_asked_for(worker: Worker, tmp_path: Path, guarded: bool):
    verdict = validated(worker, tmp_path, PLAIN.replace("    return None\n", GUARD) if guarded else PLAIN)
    assert verdict.ok is guarded
    for kind, message in errors(verdict):
        assert (kind, "floor = 0.5 instead of 0.0" in message) == ("supports-too-much", True)
