"""Averages of a convolution from averages of its input: what the rewritten graphs compute, and what stays as it is."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from averaged_graphs import Geometry, averaged_over, computed, made, random_values
from cutesmith_agent.recipes import collapse, pooled
from cutesmith_agent.recipes.affine import averaged
from cutesmith_agent.recipes.met import Met, met
from cutesmith_evaluator.types import Graph, Node, Ref


def _machine():
    spec = importlib.util.spec_from_file_location("averages_machine", Path(__file__).parent / "ir_machine.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = _machine()


@st.composite
def geometries(draw: st.DrawFn, largest: int = 9) -> Geometry:
    dims = draw(st.integers(1, 3))
    transposed = draw(st.booleans())

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(dims))

    sizes, kernel, stride, padding = each(1, largest), each(1, 4), each(1, 3), each(0, 3)
    extra = each(0, 1) if transposed else (0,) * dims
    groups = draw(st.sampled_from((1, 2)))
    found = Geometry(sizes, kernel, stride, padding, each(1, 2), extra, transposed, groups)
    return found if found.is_possible else replace(found, padding=(0,) * dims, extra=(0,) * dims, sizes=(9,) * dims)


@given(st.integers(1, 40), st.integers(1, 7), st.integers(1, 4), st.integers(0, 5), st.integers(1, 3), st.booleans())
@settings(max_examples=25, deadline=None)
def test_places_that_an_element_meets(size: int, kernel: int, s: int, p: int, d: int, transposed: bool) -> None:
    results = (
        (size - 1) * s - 2 * p + d * (kernel - 1) + 1 if transposed else (size + 2 * p - d * (kernel - 1) - 1) // s + 1
    )
    if results < 1:
        return
    for is_inner in (False, True):
        found = Met(size, met(size, results, kernel, s, p, d, transposed=transposed), is_inner)
        for t, own in enumerate(found.by_element):
            shifts = (
                (i, i * s - p + t * d) if transposed else (i * s - p + t * d, i) for i in range(max(size, results))
            )
            assert list(own) == [i for i, o in shifts if 0 <= i < size and 0 <= o < results]
            if found.is_covered:
                assert sorted((*found.core(t), *found.edges(t))) == list(own)


def _tail(geometry: Geometry, kind: str) -> tuple[Node, ...]:
    """What follows the convolution, which is averaged over."""
    shape, rank = geometry.result, len(geometry.result)
    dims = tuple(range(2, rank))
    scaled = made("s", "mul", (Ref("c"), Ref("scale")), shape)
    if kind == "sum":
        return (averaged_over("c", dims, shape, "sum"),)
    if kind == "affine":
        less = made("l", "sub", (Ref("s"), Ref("c")), shape)
        return (
            scaled,
            less,
            averaged_over("l", dims, shape),
            made("r", "relu", (Ref("m"),), (*shape[:2], *(1 for _ in dims))),
        )
    if kind == "flat":
        flat = (*shape[:2], math.prod(shape[2:]))
        return (made("f", "view", (Ref("c"), flat), flat), averaged_over("f", (2,), flat))
    if kind == "channels":
        return (scaled, averaged_over("s", (1, *dims), shape))
    return (scaled, averaged_over("s", dims[: 1 if kind == "first" else 2], shape))


@given(geometries(), st.sampled_from(("sum", "affine", "flat", "channels", "first", "second")))
@settings(max_examples=25, deadline=None)
def test_averages_come_from_those_of_the_input(geometry: Geometry, kind: str) -> None:
    graph = geometry.graph(*_tail(geometry, kind))
    (found,) = averaged(graph)
    by_name = {i.name: i for i in graph.inputs}
    made_of = collapse.collapse_of(graph, found, by_name["x"])
    if made_of is None:
        return
    values = random_values(graph)
    wanted = computed(graph, values)
    stages = collapse.input_stages(made_of, "means")
    for program, result in stages:
        values[result.name] = machine.run(program, values)[0]
    means = stages[-1][1]
    making = collapse.weight_graph(made_of, graph, "weights")
    weight = made_of.weight
    if making is not None:
        weight = replace(means, name=making.nodes[-1].name, spec=making.nodes[-1].outputs[0])
        (values[weight.name],) = computed(making, values)
    got = computed(collapse.rest_graph(made_of, graph, means, weight), values)
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)


@given(geometries(largest=12), st.integers(2, 4), st.integers(1, 4), st.booleans())
@settings(max_examples=25, deadline=None)
def test_average_pools_are_part_of_the_weight(geometry: Geometry, size: int, stride: int, twice: bool) -> None:
    dims = len(geometry.sizes)
    shape = geometry.result
    nodes = [made("s", "mul", (Ref("c"), Ref("scale")), shape)]
    for name in ("p", "q")[: 1 + twice]:
        if min(shape[2:]) < size:
            return
        shape = (*shape[:2], *((n - size) // stride + 1 for n in shape[2:]))
        given_size = ((size,) * dims, (stride,) * dims)
        nodes.append(made(name, f"avg_pool{dims}d", (Ref(nodes[-1].name), *given_size), shape))
    graph = geometry.graph(*nodes, made("r", "relu", (Ref(nodes[-1].name),), shape))
    (found,) = pooled.pooled(graph)
    along = pooled.along_of(found, geometry.sizes, geometry.kernel)
    if along is None:
        return
    values = random_values(graph)
    wanted = computed(graph, values)
    weight = next(i for i in graph.inputs if i.name == "weight")
    program, made_weight = pooled.weight_stage(found, weight, along, "less")
    values["less"] = machine.run(program, values)[0]
    got = computed(pooled.rest_graph(found, graph, along, made_weight), values)
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-9)


PLANE = Geometry((8, 8), (3, 3), (1, 1), (1, 1), (1, 1), (0, 0))
MEAN = averaged_over("r", (2, 3), PLANE.result)


@pytest.mark.parametrize(
    "graph",
    [
        PLANE.graph(made("r", "relu", (Ref("c"),), PLANE.result), MEAN),
        PLANE.graph(made("r", "mul", (Ref("c"), Ref("c")), PLANE.result), MEAN),
        PLANE.graph(made("r", "div", (Ref("scale"), Ref("c")), PLANE.result), MEAN),
        PLANE.graph(made("r", "mul", (Ref("c"), Ref("plane")), PLANE.result), MEAN),
        PLANE.graph(averaged_over("c", (3,), PLANE.result)),
        PLANE.graph(averaged_over("c", (1, 2), PLANE.result)),
        PLANE.graph(averaged_over("c", (2, 3), PLANE.result), made("r", "sub", (Ref("c"), Ref("m")), PLANE.result)),
        replace(PLANE.graph(averaged_over("c", (2, 3), PLANE.result)), outputs=(Ref("m"), Ref("c"))),
        PLANE.graph(made("r", "group_norm", (Ref("c"), 1), PLANE.result), MEAN),
        PLANE.graph(made("r", "amax", (Ref("c"), (2, 3), True), (2, 3, 1, 1))),
    ],
)
def test_what_is_not_proved_stays(graph: Graph) -> None:
    assert not list(averaged(graph))
