"""Errors, their classes, fingerprints and patterns, on CPU tensors."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_evaluator.types import ErrorPair
from cutesmith_evaluator.worker.numerics import Comparison, ErrorSums, Measured, chunks, classify, limit, ulp, wrong
from cutesmith_evaluator.worker.numerics_bits import equal_bits, fingerprint, special_differs
from cutesmith_evaluator.worker.numerics_patterns import WrongElements

ERRORS = st.floats(0, 1e-2)
PAIRS = st.builds(ErrorPair, ERRORS, ERRORS)
STEP = ulp(torch.float32)
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def sums_of(out: torch.Tensor, reference: torch.Tensor, pieces: int) -> ErrorPair:
    sums = ErrorSums()
    for mine, theirs in zip(out.tensor_split(pieces), reference.tensor_split(pieces), strict=True):
        sums.add(mine, theirs, torch.ones_like(theirs, dtype=torch.bool))
    return sums.pair()


@given(st.integers(1, 200), st.integers(1, 7), st.integers(0, 1000))
def test_errors_are_the_textbooks_however_they_are_sliced(size: int, pieces: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    reference = torch.randn(size, dtype=torch.float64, generator=generator)
    out = reference.float()
    pair = sums_of(out, reference, pieces)
    difference = out.double() - reference
    assert pair.rms == pytest.approx(float(difference.norm() / reference.norm()))
    assert pair.max == pytest.approx(float(difference.abs().max() / reference.abs().max()))


def test_errors_of_a_zero_reference_are_absolute():
    zero = torch.zeros(4, dtype=torch.float64)
    assert sums_of(zero.float(), zero, 1) == ErrorPair(0.0, 0.0)
    assert sums_of(zero.float() + 0.5, zero, 1) == ErrorPair(1.0, 0.5)


def test_elements_where_eager_or_the_reference_is_not_finite_do_not_count():
    comparison = Comparison(STEP)
    eager = torch.tensor([1.0, math.inf, math.nan, 2.0])
    reference = torch.tensor([1.0, 5.0, 5.0, math.inf], dtype=torch.float64)
    comparison.add(torch.tensor([1.0, 7.0, 7.0, 7.0]), eager, None, reference)
    measured = comparison.measured()
    assert measured is not None
    assert measured.candidate == ErrorPair(0.0, 0.0)
    assert comparison.candidate.counted == 1


def test_nothing_is_measured_where_nothing_counts():
    comparison = Comparison(STEP)
    comparison.add(torch.ones(2), torch.full((2,), math.nan), None, torch.ones(2, dtype=torch.float64))
    assert comparison.measured() is None


@given(PAIRS, PAIRS, PAIRS)
def test_classes_follow_the_bounds(candidate: ErrorPair, eager: ErrorPair, default: ErrorPair):
    found = classify(candidate, eager, default, STEP)
    tight, loose = limit(eager, STEP), limit(default, STEP)
    kept = candidate.rms <= tight.rms and candidate.max <= tight.max
    as_eager = candidate.rms <= loose.rms and candidate.max <= loose.max
    assert found == ("kept" if kept else "as eager" if as_eager else "lowered")
    assert (Measured(candidate, eager, default, STEP).usage <= 1) == kept


@given(PAIRS, PAIRS, st.floats(0, 1))
def test_a_smaller_error_is_never_judged_worse(candidate: ErrorPair, eager: ErrorPair, share: float):
    order = ("kept", "as eager", "lowered")
    smaller = ErrorPair(candidate.rms * share, candidate.max * share)
    assert order.index(classify(smaller, eager, eager, STEP)) <= order.index(classify(candidate, eager, eager, STEP))


@given(PAIRS, PAIRS)
def test_what_is_kept_is_not_wrong(candidate: ErrorPair, eager: ErrorPair):
    if classify(candidate, eager, eager, STEP) == "kept":
        assert not wrong(candidate, eager, STEP)


@given(PAIRS, PAIRS)
def test_figures_report_the_figure_that_uses_more_of_its_bound(candidate: ErrorPair, eager: ErrorPair):
    measured = Measured(candidate, eager, eager, STEP)
    figures = measured.figures(True)
    shown = getattr(candidate, figures.figure), getattr(eager, figures.figure)
    assert (figures.candidate, figures.eager) == shown
    assert shown[0] / getattr(limit(eager, STEP), figures.figure) == pytest.approx(measured.usage)
    assert math.isfinite(figures.ratio)


@pytest.mark.parametrize(
    ("narrow", "expected"), [(torch.float32, "kept"), (torch.float16, "lowered"), (torch.bfloat16, "lowered")]
)
@pytest.mark.parametrize("fill", ["normal_", "uniform_"])
def test_a_float32_product_in_narrower_types_is_lowered(narrow: torch.dtype, expected: str, fill: str):
    generator = torch.Generator().manual_seed(0)
    left, right = (getattr(torch.empty(128, 512), fill)(generator=generator) for _ in range(2))
    comparison = Comparison(STEP)
    out = (left.to(narrow) @ right.t().to(narrow)).float()
    comparison.add(out, left @ right.t(), None, left.double() @ right.t().double())
    measured = comparison.measured()
    assert measured is not None
    assert measured.precision == expected
    assert not wrong(measured.candidate, measured.default, STEP)


def tf32(tensor: torch.Tensor) -> torch.Tensor:
    """Rounded to the 10 bits of TF32's mantissa."""
    return ((tensor.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def test_tf32_is_as_eager_only_where_eager_uses_it_too():
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(128, 512, generator=generator) for _ in range(2))
    out, exact = tf32(left) @ tf32(right).t(), left @ right.t()
    for default, expected in ((None, "lowered"), (out, "as eager")):
        comparison = Comparison(STEP)
        comparison.add(out, exact, default, left.double() @ right.t().double())
        measured = comparison.measured()
        assert measured is not None
        assert measured.precision == expected


@given(st.integers(0, 50), st.integers(1, 20))
def test_chunks_cover_everything_once_and_in_order(size: int, step: int):
    tensor = torch.arange(size)
    pieces = [(start, piece) for start, (piece,) in chunks(tensor, size=step)]
    assert torch.equal(torch.cat([piece for _, piece in pieces]) if pieces else torch.arange(0), tensor)
    assert all(start == int(piece[0]) for start, piece in pieces)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.bool, torch.int8, torch.int64, torch.complex64])
def test_fingerprints_tell_values_places_and_signs_of_zero_apart(dtype: torch.dtype):
    tensor = torch.arange(24).reshape(4, 6).to(dtype)
    assert fingerprint(tensor) == fingerprint(tensor.clone())
    changed = tensor.clone()
    changed[2, 3] = 0
    assert fingerprint(changed) != fingerprint(tensor)
    assert fingerprint(tensor.flip(0)) != fingerprint(tensor) or dtype == torch.bool
    if dtype.is_floating_point:
        assert fingerprint(-torch.zeros(3, dtype=dtype)) != fingerprint(torch.zeros(3, dtype=dtype))


@given(st.lists(st.floats(width=32), min_size=2, max_size=40), st.randoms())
def test_fingerprints_depend_on_bits_alone(values: list[float], shuffled):
    tensor = torch.tensor(values)
    apart = torch.stack((tensor, tensor), 1)[:, 0]
    assert equal_bits(apart, tensor)
    order = list(range(len(values)))
    shuffled.shuffle(order)
    moved = tensor[torch.tensor(order)]
    assert equal_bits(moved, tensor) == torch.equal(moved.view(torch.int32), tensor.view(torch.int32))


@pytest.mark.parametrize(
    ("got", "eager", "loose", "strict"),
    [
        (math.nan, math.nan, False, False),
        (math.inf, math.inf, False, False),
        (math.inf, -math.inf, False, True),
        (math.nan, math.inf, False, True),
        (1.0, math.nan, False, True),
        (math.nan, 1.0, True, True),
        (math.inf, 1.0, True, True),
        (1.0, 2.0, False, False),
    ],
)
def test_special_values(got: float, eager: float, loose: bool, strict: bool):
    tensors = torch.tensor([got]), torch.tensor([eager])
    assert bool(special_differs(*tensors, strict=False)) == loose
    assert bool(special_differs(*tensors, strict=True)) == strict


def pattern_of(mask: torch.Tensor, chunk: int = 1000) -> str | None:
    found = WrongElements(tuple(mask.shape), mask.device)
    values = torch.zeros(mask.shape)
    for start, (wrongs, got) in chunks(mask, values, size=chunk):
        found.add(start, wrongs, got, got)
    assert found.count == int(mask.sum())
    return found.pattern()


def mask_of(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.bool)


@pytest.mark.parametrize("chunk", [7, 64, 10_000])
def test_patterns_are_named(chunk: int):
    tail, block, columns, rows, row, column, spread = (mask_of(40, 33) for _ in range(7))
    tail.view(-1)[-7:] = True
    block.view(-1)[100:250] = True
    columns[:, 32:] = True
    rows[3::8] = True
    row[12] = True
    column[:, 4] = True
    spread[0, 0] = spread[17, 9] = spread[30, 2] = True
    line = mask_of(1000)
    line[5::16] = True
    assert pattern_of(tail, chunk) == "only the tail, the last 7 elements"
    assert pattern_of(block, chunk) == "one contiguous block, elements 100 to 249 in flat order"
    assert pattern_of(columns, chunk) == "only the last 1 columns of every row"
    assert pattern_of(rows, chunk) == "every 8th row, from row 3"
    assert pattern_of(row, chunk) == "one contiguous block, elements 396 to 428 in flat order"
    assert pattern_of(column, chunk) == "the whole column 4"
    assert pattern_of(line, chunk) == "every 16th element, from element 5"
    assert pattern_of(~mask_of(4, 4), chunk) == "all elements"
    assert pattern_of(spread, chunk) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=20), st.integers(1, 60))
def test_count_first_and_last_are_exact(places: list[tuple[int, int]], chunk: int):
    mask = mask_of(6, 9)
    for place in places:
        mask[place] = True
    found = WrongElements((6, 9), mask.device)
    numbers = torch.arange(54.0)
    for start, (wrongs, got) in chunks(mask, numbers, size=chunk):
        found.add(start, wrongs, got, got + 0.5)
    assert found.count == len(set(places))
    assert found.index() == min(places)
    assert found.last == max(row * 9 + column for row, column in places)
    assert found.expected == found.got + 0.5 == min(row * 9 + column for row, column in places) + 0.5
    assert f"{found.count} of 54 elements" in found.sentence("the output")


def test_a_single_number_has_a_place_too():
    found = WrongElements((), torch.device("cpu"))
    found.add(0, torch.tensor([True]), torch.tensor([math.nan]), torch.tensor([2.0]))
    assert found.index() == ()
    assert "all of them are NaN or infinite" in found.sentence("the output")
