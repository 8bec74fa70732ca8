"""A wrong element is named with the line that stored it: the last one to do so, and none where it was no kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_evaluator.worker.validate import validate
from emulated_kernels import Planted

TASK = """
import torch
from torch import nn


class Doubled(nn.Module):
    def forward(self, x):
        return x + x


def get_inputs():
    return [torch.linspace(1, 2, 1000)]
"""
BRANCHES = """
if i < cute.size(gX):
    v = gX[i]
    if i % 5 == 3:
        gY[i] = v * {odd}  # ODD
    else:
        gY[i] = v * {even}  # EVEN
"""
OVERWRITTEN = """
if i < cute.size(gX):
    v = gX[i]
    gY[i] = v * {odd}  # ODD
    cute.arch.fence_acq_rel_gpu()
    if i % 5 == 3:
        gY[i] = v * {even}  # EVEN
"""
ADDED = """
if i < cute.size(gX):
    gY[i] = gX[i]
    cute.arch.atomic_add((gY.iterator + i).llvm_ptr, gX[i] * 1.5, sem="relaxed", scope="gpu")  # ODD
"""
WORKED_OVER = "    _compiled(x)(x, y)\n    y.mul_(1.5)  # TORCH\n"


def blamed(source: str, folder: Path) -> set[tuple[str, int | None]]:
    """Kinds and lines of what is found."""
    (folder / "doubled.py").write_text(TASK)
    (folder / "planted_cute.py").write_text(source)
    task = {"file": str(folder / "doubled.py"), "qualname": "Doubled"}
    params = {"task": task, "candidate": str(folder / "planted_cute.py"), "device": "emulated", "quick": True}
    return {(finding.kind, finding.line) for finding in validate(params, lambda _: None).findings}


def marked(source: str, mark: str) -> int:
    return next(number for number, line in enumerate(source.split("\n"), 1) if line.endswith(f"# {mark}"))


@pytest.mark.parametrize(
    ("body", "odd", "even", "mark"),
    [(BRANCHES, 3, 2, "ODD"), (BRANCHES, 2, 3, "EVEN"), (OVERWRITTEN, 2, 3, "EVEN"), (OVERWRITTEN, 3, 2, "ODD")],
)
def test_the_last_store_to_a_wrong_element(body: str, odd: int, even: int, mark: str, tmp_path: Path) -> None:
    source = Planted("", body.format(odd=f"{odd}.0", even=f"{even}.0")).source
    assert blamed(source, tmp_path) == {("wrong-values", marked(source, mark))}


def test_an_atomic_update_is_a_store(tmp_path: Path) -> None:
    source = Planted("", ADDED).source
    assert blamed(source, tmp_path) == {("wrong-values", marked(source, "ODD"))}


def test_what_torch_changed_afterwards_has_no_line(tmp_path: Path) -> None:
    right = Planted("", "if i < cute.size(gX):\n    gY[i] = gX[i] + gX[i]").source
    source = right.replace("    _compiled(x)(x, y)\n", WORKED_OVER)
    assert source != right, "the line of its own after the launch"
    assert blamed(source, tmp_path) - {("torch-compute", marked(source, "TORCH"))} == {("wrong-values", None)}
