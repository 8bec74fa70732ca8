"""Averages of a convolution on the emulated device: as precise as eager, and Inf and NaN where they are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from averaged_graphs import Geometry, averaged_over, computed, made
from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.types import Inspection, Node, Ref
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from scripted_evaluator import NO_DEVICE

PLANE = Geometry((9, 12), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1), transposed=True, groups=2, channels=3, outer=4)
LINE = Geometry((96,), (5,), (2,), (2,), (1,), (0,), channels=8, outer=6)
POOLED = Geometry((6, 7), (3, 3), (2, 2), (1, 1), (1, 1), (0, 0), transposed=True, channels=3)


@dataclass(frozen=True)
class Case:
    geometry: Geometry
    tail: tuple[Node, ...]
    kernels: int
    dtype: str = "float32"
    arch: str = "sm_90a"


def scaled(geometry: Geometry, after: Node) -> tuple[Node, ...]:
    return (made("s", "mul", (Ref("c"), Ref("scale")), geometry.result), after)


HALVES = (*POOLED.result[:2], *(n // 2 for n in POOLED.result[2:]))
OF_A_PLANE = Case(PLANE, scaled(PLANE, averaged_over("s", (2, 3), PLANE.result)), 3)
CASES = (
    OF_A_PLANE,
    Case(LINE, (averaged_over("c", (2,), LINE.result, "sum"),), 2, "float16"),
    Case(POOLED, scaled(POOLED, made("p", "avg_pool2d", (Ref("s"), (2, 2)), HALVES)), 2, arch="sm_80"),
)


def candidate(case: Case, folder: Path) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The first draft on an emulated device; what the graph says, in a type of choice."""
    graph = case.geometry.graph(*case.tail, dtype=case.dtype)
    proposal = propose(Inspection(NO_DEVICE, graph, ("x",)), Target("Task", folder / "task.py", case.arch))
    (folder / "task_cute.py").write_text(proposal.drafts[0].source)
    assert "exact rearrangement" in proposal.drafts[0].title
    assert proposal.drafts[0].source.count("@functools.cache") == case.kernels
    dsl.load()
    torch.manual_seed(0)
    module = case.geometry.module().to(getattr(torch, case.dtype))
    emulated = EmulatedCandidate(load_candidate(folder / "task_cute.py"), case.arch)

    def exact(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        own = copy.deepcopy(module).to(dtype)
        state = {"weight": own.conv.weight, "bias": own.conv.bias, "scale": own.scale, "plane": own.plane}
        return computed(graph, {**state, "x": x.to(dtype)})[0]

    return lambda x: emulated.forward(module, x), exact


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.geometry.sizes))
def test_as_precise_as_eager(case: Case, tmp_path: Path) -> None:
    kernel, exact = candidate(case, tmp_path)
    dtype = getattr(torch, case.dtype)
    x = torch.rand(case.geometry.x).to(dtype)
    with torch.no_grad():
        got, eager, wanted = kernel(x), exact(x, dtype), exact(x, torch.float64)
    assert got.dtype == dtype
    step = torch.finfo(dtype).eps / 2
    for norm in (torch.linalg.vector_norm, lambda y: y.abs().max()):
        assert norm(got - wanted) <= 2 * norm(eager - wanted) + 4 * step * norm(wanted)
    if case is OF_A_PLANE:
        x[0, 1, 0, 0], x[1, 2, 3, 4] = float("inf"), float("nan")  # at a corner, which not all elements meet
        with torch.no_grad():
            got, wanted = kernel(x), exact(x, torch.float64).float()
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
