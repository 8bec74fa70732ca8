"""Which products the recipes take, how their schedules fit a device, and when fp32 arithmetic is asked for."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.allowances import wants_ieee
from cutesmith_agent.recipes import Target, propose
from cutesmith_agent.recipes.layout import open_shapes
from cutesmith_agent.recipes.lowering import lower
from cutesmith_agent.recipes.product import views_of
from cutesmith_agent.recipes.product_schedules import ampere, hopper
from cutesmith_agent.recipes.product_views import Views
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Graph, GraphInput, Inspection, Node, Ref, Task, TensorSpec

MODULES = Path(__file__).parent / "product_modules.py"


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


def inspected(worker: Worker, name: str) -> Inspection:
    return worker.inspect(Task(str(MODULES), name))


def product(rows: int, depth: int, columns: int) -> Graph:
    """a @ b of contiguous matrices."""
    a, b, c = (TensorSpec(s, "float32", (s[1], 1)) for s in ((rows, depth), (depth, columns), (rows, columns)))
    inputs = tuple(GraphInput(name, "argument", spec, k) for k, (name, spec) in enumerate((("a", a), ("b", b))))
    node = Node("mm", "aten.mm.default", (Ref("a"), Ref("b")), {}, (c,))
    return Graph(inputs, (node,), (Ref("mm"),), False, (), (), "matmul", 0, 0)


def views(rows: int, depth: int, columns: int) -> Views:
    found = views_of(lower(product(rows, depth, columns)))
    assert found is not None
    return found


def test_a_dimension_is_open_where_nothing_else_walks_it(worker: Worker) -> None:
    """A product of a tensor with itself has its rows as columns, too: an open size would be baked into half of it."""
    for name, is_open in (("Product", True), ("OfItself", False)):
        inspection = worker.inspect(Task(str(MODULES), name))
        assert inspection.graph is not None
        assert any((0, 0) in group for group in inspection.graph.dynamic_dims)
        assert bool(open_shapes(lower(inspection.graph)).open_dims) == is_open


@given(st.integers(5, 5000), st.integers(2, 60_000), st.integers(5, 5000))
def test_schedules_fit_the_device_and_leave_no_depth_out(rows: int, depth: int, columns: int) -> None:
    found = views(rows, depth, columns)
    for schedule in hopper(found):
        assert schedule.stages >= 2
        turned = 160 * schedule.m + (8 * (schedule.k + 1) * (schedule.m + schedule.n) if schedule.is_direct else 0)
        assert (
            4 * schedule.k * (schedule.m + schedule.n) * schedule.stages + turned + 1024 <= 227 * 1024 / schedule.per_mp
        )
        assert schedule.m_blocks * schedule.n_blocks <= 8
        assert math.ceil(rows / schedule.m) >= schedule.m_blocks
        assert 1 <= schedule.splits <= math.ceil(depth / schedule.k)
    for schedule in ampere(found):
        assert 4 * schedule.k * (schedule.m + schedule.n) * schedule.stages <= 99 * 1024
        assert schedule.m % (16 * schedule.m_warps) == schedule.n % (16 * schedule.n_warps) == 0
        assert schedule.splits == 1 or schedule.splits * math.ceil(rows / schedule.m) <= 108


def test_a_short_depth_goes_into_fp32_registers_often() -> None:
    assert hopper(views(4096, 64, 4096))[0].k == 32
    assert hopper(views(4096, 4096, 4096))[0].k == 64


@pytest.mark.parametrize("name", ["MatrixVector", "VectorMatrix", "Thin"])
def test_a_product_with_a_vector_is_a_reduction_of_rows(name: str, worker: Worker) -> None:
    drafts = propose(inspected(worker, name), Target(name, MODULES, "sm_90a")).drafts
    assert drafts
    assert not any("wgmma" in draft.source for draft in drafts)


def test_fp32_arithmetic_alone_is_left_to_pytorch(worker: Worker) -> None:
    found = propose(inspected(worker, "Product"), Target("Product", MODULES, "sm_90a", ieee=True))
    assert not found.drafts
    assert "ieee" in found.findings[0].message


def test_the_header_names_the_arithmetic(worker: Worker) -> None:
    for arch in ("sm_80", "sm_90a"):
        (first, *_) = propose(inspected(worker, "LinearGELU"), Target("LinearGELU", MODULES, arch)).drafts
        assert "fp32 accuracy through fp16 splits" in first.source.partition("Evidence")[0]


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ('[tool.cutesmith]\nprecision = "ieee"', True),
        ('[tool.cutesmith]\nprecision = "split"', False),
        ("[tool", False),
    ],
)
def test_the_setting_is_read_from_the_project(text: str, wants: bool, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert wants_ieee(tmp_path) == wants
