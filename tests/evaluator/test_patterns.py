"""Every pattern of wrong elements is named where it was planted, and none where there is none."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from cutesmith_evaluator.worker.numerics import chunks
from cutesmith_evaluator.worker.numerics_patterns import WrongElements
from cutesmith_evaluator.worker.numerics_values import holds, rounding_pattern, value_pattern

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)


def place_pattern(mask: Tensor, chunk: int) -> str | None:
    found = WrongElements(tuple(mask.shape), mask.device)
    for start, (wrongs, values) in chunks(mask, torch.zeros(mask.shape), size=chunk):
        found.add(start, wrongs, values, values)
    return found.pattern()


def number(text: str) -> int:
    return int(text.replace(",", ""))


def claimed(words: str, shape: tuple[int, ...]) -> Tensor:
    """The mask that the words describe."""
    mask = torch.zeros(shape, dtype=torch.bool)
    line, rows = mask.view(-1), mask.view(-1, shape[-1])
    if words == "all elements":
        line[:] = True
    elif match := re.fullmatch(r"only the tail, the last ([\d,]+) elements", words):
        line[-number(match[1]) :] = True
    elif match := re.fullmatch(r"one contiguous block, elements ([\d,]+) to ([\d,]+) in flat order", words):
        line[number(match[1]) : number(match[2]) + 1] = True
    elif match := re.fullmatch(r"only the last ([\d,]+) columns of every row", words):
        rows[:, -number(match[1]) :] = True
    elif match := re.fullmatch(r"every (\d+)\w\w (row|column|element), from \2 ([\d,]+)(?: to ([\d,]+))?", words):
        target = {"row": rows, "column": rows.t(), "element": line}[match[2]]
        end = number(match[4]) + 1 if match[4] else None
        target[number(match[3]) : end : int(match[1])] = True
    elif match := re.fullmatch(r"the whole (row|column)s? ([\d,]+)(?: to ([\d,]+))?", words):
        target = rows if match[1] == "row" else rows.t()
        target[number(match[2]) : number(match[3] or match[2]) + 1] = True
    elif match := re.fullmatch(r"the block \[(.*)\]", words):
        parts = [[int(each) if each else None for each in part.split(":")] for part in match[1].split(", ")]
        mask[tuple(slice(*part) if len(part) > 1 else slice(part[0], part[0] + 1) for part in parts)] = True
    elif match := re.fullmatch(r"the elements on and (above|below) the diagonal column - row = (-?\d+)", words):
        offset, ones = int(match[2]), torch.ones_like(mask)
        mask = ones.triu(offset) if match[1] == "above" else ones.tril(offset)
    else:
        raise AssertionError(words)
    return mask


VAGUE = ("whole rows, from", "whole columns, from", " rows")  # that say how many and where, not which


@settings(max_examples=300, deadline=None)
@given(SHAPES, st.randoms(use_true_random=False), st.floats(0.05, 0.95), st.integers(1, 300))
def test_what_is_named_is_exactly_what_is_wrong(shape: tuple[int, ...], random, share: float, chunk: int):
    mask = torch.tensor([random.random() < share for _ in range(torch.Size(shape).numel())]).reshape(shape)
    assume(bool(mask.any()))
    words = place_pattern(mask, chunk)
    if words is not None and not words.endswith(VAGUE) and not any(each in words for each in VAGUE[:2]):
        assert torch.equal(claimed(words, shape), mask), words


def slices(data: st.DataObject, length: int) -> slice:
    start = data.draw(st.integers(0, length - 1))
    return slice(start, data.draw(st.integers(start + 1, length)), data.draw(st.integers(1, 4)))


@settings(max_examples=200, deadline=None)
@given(st.data(), SHAPES, st.integers(1, 300))
def test_every_box_has_a_name(data: st.DataObject, shape: tuple[int, ...], chunk: int):
    mask = torch.zeros(shape, dtype=torch.bool)
    mask[tuple(slices(data, length) for length in shape)] = True
    assume(int(mask.sum()) > 1)
    words = place_pattern(mask, chunk)
    assert words is not None
    if not words.endswith(VAGUE) and not any(each in words for each in VAGUE[:2]):
        assert torch.equal(claimed(words, shape), mask), words


@settings(deadline=None)
@given(st.integers(2, 9), st.integers(2, 9), st.integers(-6, 6), st.booleans(), st.integers(1, 3))
def test_triangles_have_a_name(rows: int, columns: int, offset: int, above: bool, matrices: int):
    ones = torch.ones(matrices, rows, columns, dtype=torch.bool)
    mask = ones.triu(offset) if above else ones.tril(offset)
    assume(int(mask.sum()) > 2)
    words = place_pattern(mask, 50)
    assert words is not None
    if not words.endswith(VAGUE):
        assert torch.equal(claimed(words, (matrices, rows, columns)), mask), words


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def named(got: Tensor, expected: Tensor, earlier: dict[str, Tensor] | None = None) -> str | None:
    return value_pattern(got, expected, lambda mine, theirs: (mine - theirs).abs() > 1e-2, earlier or {})


def shifted(expected: Tensor, dimension: int, step: int) -> Tensor:
    got = expected.roll(-step, dimension)
    edge = got.narrow(dimension, got.shape[dimension] - 1 if step > 0 else 0, 1)
    edge.fill_(77)
    return got


MISTAKES = {
    "they are all zero": torch.zeros_like,
    "they are all 7": lambda e: torch.full_like(e, 7),
    "they have the wrong sign": torch.neg,
    "they are 1.5 times too large": lambda e: 1.5 * e,
    "they are 0.03125 times too large": lambda e: e / 32,
    "0.25 was added to them": lambda e: e + 0.25,
    "they are shifted by one: each is its next one's in dimension 1": lambda e: shifted(e, 1, 1),
    "they are shifted by one: each is its previous one's in dimension 0": lambda e: shifted(e, 0, -1),
    "the halves of dimension 1 are swapped": lambda e: e.roll(16, 1),
    "the halves of dimension 0 are swapped": lambda e: e.roll(12, 0),
    "dimension 1 is reversed": lambda e: e.flip(1),
    "dimension 0 is reversed": lambda e: e.flip(0),
    "rows and columns are swapped in memory": lambda e: e.mT.reshape(e.shape),
    "nothing was written there: they hold the NaN that the memory was filled with": lambda e: torch.full(
        e.shape, -1, dtype=torch.int32
    ).view(torch.float32),
    "nothing was written there: they hold the large numbers that the memory was filled with": lambda e: torch.full(
        e.shape, 0x7F7F7F7F, dtype=torch.int32
    ).view(torch.float32),
    "they are what the call on an earlier check gave": lambda e: normal(*e.shape, seed=1),
}


@pytest.mark.parametrize("words", MISTAKES)
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.sampled_from(["all", "tail", "columns", "scattered"]), st.floats(0.25, 64))
def test_mistakes_are_named_wherever_they_are(words: str, seed: int, where: str, scale: float):
    scale = scale if "added" not in words else 1.0
    expected = scale * normal(24, 32, seed=seed)
    mask = torch.zeros(24, 32, dtype=torch.bool)
    mask[
        {"all": ..., "tail": slice(9, None), "columns": (slice(None), slice(20, None)), "scattered": slice(0, 0)}[where]
    ] = True
    if where == "scattered":
        mask = normal(24, 32, seed=seed + 1) > 0
    got = torch.where(mask, MISTAKES[words](expected), expected)
    found = value_pattern(
        got,
        expected,
        lambda mine, theirs: ~((mine - theirs).abs() <= 1e-2 * scale),
        {"an earlier check": normal(24, 32, seed=1)},
    )
    assert found == words


def test_a_transposed_square_is_named():
    expected = normal(32, 32)
    assert named(expected.mT.contiguous(), expected) == "they are the transposed result's"
    assert named(expected.mT.reshape(32, 32).clone(), normal(32, 32, seed=2)) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([(40,), (24, 32), (3, 8, 10), (16, 16)]), st.floats(1e-3, 1e3))
def test_no_mistake_is_named_for_noise(seed: int, shape: tuple[int, ...], scale: float):
    expected = scale * normal(*shape, seed=seed)
    got = expected + scale * normal(*shape, seed=seed + 20_000)
    assert value_pattern(got, expected, lambda mine, theirs: (mine - theirs).abs() > 0.1 * scale, {}) is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_few_elements_or_few_values_prove_nothing(seed: int, count: int):
    expected = normal(24, 32, seed=seed).relu()
    got = expected.clone()
    got.view(-1)[:count] += 5 + torch.arange(count)
    assert named(got, expected) is None
    sparse = torch.zeros(24, 32)
    sparse[:, 3] = 1
    assert named(sparse.roll(1, 1), sparse) in (None, "they are all 1")


def test_integers_are_named_too():
    expected = torch.arange(60).reshape(6, 10) ** 2
    differing = lambda mine, theirs: mine != theirs  # noqa: E731
    assert value_pattern(3 * expected, expected, differing, {}) == "they are 3 times too large"
    assert value_pattern(expected + 7, expected, differing, {}) == "7 was added to them"
    assert value_pattern(expected.flip(1), expected, differing, {}) == "dimension 1 is reversed"
    assert value_pattern(~(expected > 900), expected > 900, differing, {}) is None


@pytest.mark.parametrize(("dtype", "name"), [(torch.bfloat16, "bfloat16"), (torch.float16, "float16 or TF32")])
def test_a_result_that_went_through_a_narrower_dtype_is_named(dtype: torch.dtype, name: str):
    expected = normal(24, 32)
    assert rounding_pattern(expected.to(dtype).float(), expected) == f"every value is a {name} number"
    assert rounding_pattern(expected.to(dtype).float() + expected * 1e-3, expected) is None
    assert rounding_pattern(expected, expected) is None
    assert rounding_pattern(expected.to(dtype).float(), expected.to(dtype).float()) is None


def test_tf32_numbers_are_named():
    expected = 1e6 * normal(24, 32)  # beyond float16
    tf32 = (expected.view(torch.int32) & ~0x1FFF).view(torch.float32)
    assert rounding_pattern(tf32, expected) == "every value is a TF32 number"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64, torch.bool])
def test_poison_is_known_in_every_dtype(dtype: torch.dtype):
    size = torch.empty(0, dtype=dtype).element_size()
    tensor = torch.full((3, 4 * size), 0x7F, dtype=torch.uint8).view(dtype)
    tensor[1, 2] = 1
    wanted = torch.ones(3, 4, dtype=torch.bool)
    wanted[1, 2] = False
    assert torch.equal(holds(tensor, 0x7F), wanted)
