"""Convolutions as sums over places: the tables that a kernel is written from give what PyTorch gives, in any shape."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_agent.recipes.implicit_geometry import Along, Convolution, convolution_of
from cutesmith_agent.recipes.implicit_schedules import SHARED, schedules
from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref, TensorSpec


@dataclass(frozen=True)
class Drawn:
    x: torch.Tensor
    weight: torch.Tensor
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    extra: tuple[int, ...]

    def result(self) -> torch.Tensor:
        form = (self.stride, self.padding, self.dilation, self.transposed, self.extra, 1)
        return torch.convolution(self.x, self.weight, None, *form)

    def graph(self) -> Graph:
        inputs = tuple(
            GraphInput(name, "argument", TensorSpec(tuple(t.shape), "float32", tuple(t.stride())), position=k)
            for k, (name, t) in enumerate((("x", self.x), ("weight", self.weight)))
        )
        result = self.result()
        spec = TensorSpec(tuple(result.shape), "float32", tuple(result.stride()))
        refs = (Ref("x", 0), Ref("weight", 0), None)
        form = (self.stride, self.padding, self.dilation, self.transposed, self.extra, 1)
        node = Node("y", "aten.convolution.default", (*refs, *form), {}, (spec,))
        return Graph(inputs, (node,), (Ref("y", 0),), False, (), (), "pointwise", 0, 0)


@st.composite
def convolutions(draw: st.DrawFn) -> Drawn:
    dims = draw(st.integers(1, 3))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.integers(low, high)) for _ in range(dims))

    transposed = draw(st.booleans())
    kernel, dilation = each(1, 4), each(1, 2)
    stride = each(1, 3) if transposed else (1,) * dims
    reach = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    padding = tuple(min(p, r) for p, r in zip(each(0, 2), reach, strict=True))
    sizes = tuple(r + n for r, n in zip(reach, each(1, 4), strict=True))
    extra = tuple(
        draw(st.integers(0, max(s, d) - 1)) if transposed else 0 for s, d in zip(stride, dilation, strict=True)
    )
    channels, out_channels = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    shape = (channels, out_channels) if transposed else (out_channels, channels)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 100)))
    x = torch.randn((2, channels, *sizes), generator=generator)
    weight = torch.randn((*shape, *kernel), generator=generator)
    return Drawn(x, weight, stride, padding, dilation, transposed, extra)


def by_places(found: Convolution, drawn: Drawn) -> torch.Tensor:
    """Each result from the tables, as a kernel does it."""
    shape = [1] * (5 - drawn.x.dim())
    x = drawn.x.reshape(*drawn.x.shape[:2], *shape, *drawn.x.shape[2:])
    weight = drawn.weight.transpose(0, 1) if drawn.transposed else drawn.weight
    weight = weight.reshape(*weight.shape[:2], *shape, *weight.shape[2:])
    made = torch.full((x.shape[0], weight.shape[0], *(dim.results for dim in found.along)), float("nan"))
    for place in itertools.product(*map(_results, found.along)):
        total = torch.zeros(made.shape[:2])
        for window in itertools.product(*(taps for _, _, taps in place)):
            at = tuple(first + there for (_, first, _), (_, there) in zip(place, window, strict=True))
            if all(0 <= i < dim.size for i, dim in zip(at, found.along, strict=True)):
                total += x[(slice(None), slice(None), *at)] @ weight[(..., *(tap for tap, _ in window))].T
        where = tuple(result for result, _, _ in place)
        assert made[(slice(None), slice(None), *where)].isnan().all(), "a result that is computed twice"
        made[(slice(None), slice(None), *where)] = total
    return made


def _results(dim: Along) -> list[tuple[int, int, tuple[tuple[int, int], ...]]]:
    """(result, where its window begins in the input, its taps) for each position and phase."""
    return [
        (dim.step * position + phase, dim.start + position, taps)
        for position in range(dim.positions)
        for phase, taps in enumerate(dim.phases)
        if dim.step * position + phase < dim.results
    ]


@settings(max_examples=30, deadline=None)
@given(convolutions())
def test_the_tables_give_what_pytorch_gives(drawn: Drawn) -> None:
    found = convolution_of(drawn.graph())
    assert found is not None
    expected = drawn.result()
    torch.testing.assert_close(by_places(found[1], drawn).reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(convolutions())
def test_schedules_fit_a_multiprocessor(drawn: Drawn) -> None:
    found = convolution_of(drawn.graph())
    assert found is not None
    made = [one for parts in (1, 2) for one in schedules(found[1], parts)]
    assert made
    for one in made:
        halo = 16 * one.parts * one.halo * one.round * one.rounds
        stages = one.stages * 32 * one.parts * one.n * one.steps
        assert one.per_mp * (halo + stages + 1024) <= SHARED
        assert one.rounds % one.slabs == 0
        assert one.n % 8 == 0 <= one.n <= 256


def test_what_is_left_to_others() -> None:
    """Strides of the input, groups, and half precision."""
    x, weight = torch.randn(1, 4, 9), torch.randn(4, 4, 3)
    plain = Drawn(x, weight, (1,), (0,), (1,), False, (0,))
    assert convolution_of(plain.graph())
    assert convolution_of(Drawn(x, weight, (2,), (0,), (1,), False, (0,)).graph()) is None
