"""Graphs of real modules: what the graph says is what the module computes, and no op is one that it must not hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Graph, Inspection, Task
from cutesmith_evaluator.worker.reference import load_reference
from graph_interpreter import run_graph

CATEGORIES = {
    "SwiGLU": "pointwise",
    "MaskedSoftmax": "softmax",
    "ResidualNorm": "normalisation",
    "RMSNorm": "normalisation",
    "Rotary": "pointwise",
    "Outer.Inner": "pointwise",
    "ConvBlock": "mixed",
    "CrossEntropy": "loss",
    "InPlace": "pointwise",
    "Attention": "attention",
    "Statistics": "reduction",
    "Scan": "scan",
    "Constants": "pointwise",
    "Pooling": "pooling",
    "L1Norm": "normalisation",
    "Embedding": "pointwise",
    "Linears": "matmul",
    "Strided": "pointwise",
    "ZeroSize": "reduction",
    "OneElement": "pointwise",
    "Identity": "pointwise",
    "Integers": "pointwise",
    "SelfAttention": "attention",
    "Parametrised": "matmul",
    "Divergence": "loss",
}


@pytest.fixture(scope="module")
def inspections(worker: Worker) -> dict[str, Inspection]:
    file = Path(__file__).parent / "fixtures" / "modules.py"
    return {name: worker.inspect(Task(str(file), name)) for name in CATEGORIES}


def graph_of(inspections: dict[str, Inspection], name: str) -> Graph:
    assert inspections[name].findings == ()
    graph = inspections[name].graph
    assert graph is not None
    return graph


@pytest.mark.parametrize("name", CATEGORIES)
def test_the_graph_computes_what_the_module_does(inspections: dict[str, Inspection], fixtures: Path, name: str):
    reference = load_reference(Task(str(fixtures / "modules.py"), name))
    module, graph = reference.build("cpu"), graph_of(inspections, name)
    with torch.no_grad():
        expected = module(*reference.inputs(7, "cpu"))
        found = run_graph(graph, module, reference.inputs(7, "cpu"))
    assert graph.returns_tuple == isinstance(expected, tuple)
    for mine, theirs in zip(found, expected if graph.returns_tuple else (expected,), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("name", CATEGORIES)
def test_specs_are_those_of_eager(inspections: dict[str, Inspection], fixtures: Path, name: str):
    reference = load_reference(Task(str(fixtures / "modules.py"), name))
    graph = graph_of(inspections, name)
    inputs = reference.inputs(0, "cpu")
    for each in graph.inputs:
        if each.position is not None:
            tensor = inputs[each.position]
            assert isinstance(tensor, torch.Tensor)
            assert (each.spec.shape, each.spec.strides) == (tuple(tensor.shape), tensor.stride())
            assert f"torch.{each.spec.dtype}" == str(tensor.dtype)
    specs = {node.name: node.outputs for node in graph.nodes} | {each.name: (each.spec,) for each in graph.inputs}
    with torch.no_grad():
        result = reference.build("cpu")(*inputs)
    for ref, tensor in zip(graph.outputs, result if isinstance(result, tuple) else (result,), strict=True):
        spec = specs[ref.name][ref.index]
        assert (spec.shape, spec.dtype) == (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        if name not in ("ConvBlock", "SelfAttention"):  # the CPU has layouts of its own for these
            assert spec.strides == tensor.stride()


@pytest.mark.parametrize(("name", "category"), CATEGORIES.items())
def test_category(inspections: dict[str, Inspection], name: str, category: str):
    assert graph_of(inspections, name).category == category


@pytest.mark.parametrize("name", CATEGORIES)
def test_nothing_useless_is_left(inspections: dict[str, Inspection], name: str):
    graph = graph_of(inspections, name)
    ops = [node.op for node in graph.nodes]
    useless = ("alias", "detach", "dropout", "lift_fresh", "_assert")
    assert not [op for op in ops if any(word in op for word in useless) or op.split(".")[1].endswith("_")]
    read = str([(node.args, node.kwargs) for node in graph.nodes]) + str(graph.outputs)
    assert not [node.name for node in graph.nodes if f"'{node.name}'" not in read]
    assert not [each.name for each in graph.inputs if each.kind != "argument" and f"'{each.name}'" not in read]


def test_args_are_complete_and_in_the_schemas_order(inspections: dict[str, Inspection]):
    softmax = next(node for node in graph_of(inspections, "MaskedSoftmax").nodes if node.op == "aten._softmax.default")
    assert softmax.args[1:] == (-1, False)
    norm = next(node for node in graph_of(inspections, "ResidualNorm").nodes if "layer_norm" in node.op)
    assert norm.op == "aten.layer_norm.default"
    assert norm.args[1] == (32,)
    assert norm.args[4] == 1e-3
    copies = [node.kwargs["dtype"] for node in graph_of(inspections, "RMSNorm").nodes if "_to_copy" in node.op]
    assert copies == ["float32", "bfloat16"]


def test_lines_are_those_of_the_users_file(inspections: dict[str, Inspection], fixtures: Path):
    lines = (fixtures / "modules.py").read_text().splitlines()
    by_op = {node.op: lines[(node.line or 0) - 1] for node in graph_of(inspections, "Rotary").nodes}
    assert "rotate_half(q)" in by_op["aten.cat.default"] or "torch.cat" in by_op["aten.cat.default"]
    norm = next(node for node in graph_of(inspections, "ResidualNorm").nodes if "layer_norm" in node.op)
    assert "self.norm(residual)" in lines[(norm.line or 0) - 1]


def test_outputs_of_an_op_are_told_apart_by_index(inspections: dict[str, Inspection]):
    graph = graph_of(inspections, "Statistics")
    assert [ref.index for ref in graph.outputs][:2] == [0, 1]
    assert graph.outputs[0].name == graph.outputs[1].name


def test_state_carries_its_path(inspections: dict[str, Inspection]):
    inputs = {each.path: each for each in graph_of(inspections, "ConvBlock").inputs if each.path}
    assert inputs["conv.weight"].kind == "parameter"
    assert inputs["norm.running_mean"].kind == "buffer"
    assert "norm.num_batches_tracked" not in inputs


def test_flops_and_bytes(inspections: dict[str, Inspection]):
    swiglu = graph_of(inspections, "SwiGLU")
    assert swiglu.bytes == (6 * 16 + 6 * 8) * 4
    assert swiglu.flops == 2 * 6 * 8
    linears = graph_of(inspections, "Linears")
    products = 2 * 10 * 8 * 16 * 2 + 2 * 2 * 5 * 5 * 8
    assert linears.flops == products + 10 * 16
    strided = graph_of(inspections, "Strided")
    assert strided.bytes == (6 * 8 + 8 * 6 + 8 + 8 * 6) * 4  # an expanded column counts once


def test_parameters_are_forwards(inspections: dict[str, Inspection]):
    assert inspections["Constants"].parameters == ("x", "scale", "shift", "mode", "window")
