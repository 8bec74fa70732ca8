"""What a graph says in a roundabout way: triangles of a product, reductions over one element."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutesmith_agent.recipes.singles import without_singles
from cutesmith_agent.recipes.triangles import Triangle, without_triangle
from cutesmith_evaluator.types import Arg, Graph, GraphInput, Node, Ref, TensorSpec


def kept(compared: str, diagonal: Arg, rows: int = 5, columns: int = 7) -> Graph:
    """A product of which triu or tril keeps a triangle, as PyTorch decomposes them."""
    wide, integers = TensorSpec((5, 7), "float32", (7, 1)), TensorSpec((5, 7), "int64", (7, 1))
    nodes = (
        Node("matmul", "aten.matmul.default", (Ref("a"), Ref("b")), {}, (wide,)),
        Node("across", "aten.arange.start_step", (0, columns, 1), {}, (TensorSpec((7,), "int64", (1,)),)),
        Node("row", "aten.unsqueeze.default", (Ref("across"), -2), {}, (TensorSpec((1, 7), "int64", (7, 1)),)),
        Node("down", "aten.arange.start_step", (0, rows, 1), {}, (TensorSpec((5,), "int64", (1,)),)),
        Node("column", "aten.unsqueeze.default", (Ref("down"), -1), {}, (TensorSpec((5, 1), "int64", (1, 1)),)),
        Node("sub", "aten.sub.Tensor", (Ref("row"), Ref("column")), {"alpha": 1}, (integers,)),
        Node("mask", f"aten.{compared}.Scalar", (Ref("sub"), diagonal), {}, (replace(integers, dtype="bool"),)),
        Node("zero", "aten.scalar_tensor.default", (0,), {}, (TensorSpec((), "float32", ()),)),
        Node("where", "aten.where.self", (Ref("mask"), Ref("matmul"), Ref("zero")), {}, (wide,)),
    )
    return Graph((), nodes, (Ref("where"),), False, (), (), "matmul", 0, 0)


def test_triangles_are_recognised_by_what_they_keep() -> None:
    for compared, triangle in (("ge", Triangle("upper", 0)), ("le", Triangle("lower", -2))):
        found = without_triangle(kept(compared, triangle.diagonal))
        assert found is not None
        assert found[0].outputs == (Ref("matmul"),)
        assert found[1] == triangle


@pytest.mark.parametrize("graph", [kept("gt", 0), kept("ge", 0.5), kept("ge", 0, rows=4), kept("ge", 0, columns=8)])
def test_other_masks_are_no_triangles(graph: Graph) -> None:
    assert without_triangle(graph) is None


def reduced(op: str, shape: tuple[int, ...], *outputs: Ref) -> Graph:
    """A reduction of the last dimension that keeps it as one element."""
    given = TensorSpec(shape, "float32", (shape[-1], 1))
    made = TensorSpec((*shape[:-1], 1), "float32", (1, 1))
    node = Node("r", f"aten.{op}", (Ref("x"), (1,), True), {}, (made, replace(made, dtype="int64")))
    return Graph((GraphInput("x", "argument", given, 0),), (node,), outputs, False, (), (), "reduction", 0, 0)


@pytest.mark.parametrize("op", ["sum.dim_IntList", "mean.dim", "amax.default", "max.dim", "min.dim"])
def test_a_reduction_of_one_element_is_a_view(op: str) -> None:
    (node,) = without_singles(reduced(op, (6, 1), Ref("r"))).nodes
    assert node.op == "aten.view.default"
    assert node.args == (Ref("x"), (6, 1))


@pytest.mark.parametrize(
    "graph",
    [
        reduced("sum.dim_IntList", (6, 2), Ref("r")),
        reduced("max.dim", (6, 1), Ref("r"), Ref("r", 1)),
        reduced("argmax.default", (6, 1), Ref("r")),
        reduced("var.correction", (6, 1), Ref("r")),
    ],
)
def test_other_reductions_stay(graph: Graph) -> None:
    assert without_singles(graph) == graph
