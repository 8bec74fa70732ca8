"""What the values of wrong elements look like: which known mistake would give just these."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

_COMPARED = 1 << 26  # elements; of a bigger output only the first rows are looked at
_LEAST = 4  # wrong elements, and different values among them, below which any mistake would fit
_DIFFERENT = 32  # values below which any dtype has them
_EXPLAINED = 0.9  # of the wrong elements must have a counterpart, as those at an edge have none
_LOOSE = 1e-5  # relative difference that counts as equal, where the dtype's own step is smaller
_STEPS = 16  # of the dtype
_POISON = {0xFF: "NaN", 0x7F: "large numbers"}  # bytes that fill memory before a kernel runs

Differs = Callable[[Tensor, Tensor], Tensor]
Transform = Callable[[Tensor], Tensor]
_HALVES = {
    torch.float32: (torch.bfloat16, torch.float16),
    torch.float64: (torch.float32, torch.bfloat16, torch.float16),
}


@dataclass(frozen=True)
class Values:
    """An output, what was expected of it, and which elements are wrong: three tensors of one shape, real."""

    got: Tensor
    expected: Tensor
    wrong: Tensor

    @property
    def slack(self) -> float:
        """Relative difference of values that count as equal."""
        return max(_LOOSE, _STEPS * torch.finfo(self.got.dtype).eps) if self.got.is_floating_point() else 0.0


def value_pattern(got: Tensor, expected: Tensor, differs: Differs, earlier: Mapping[str, Tensor]) -> str | None:
    """In words, a mistake that gives the wrong elements of `got`; None where none is known that does.

    `got`, `expected`: of one shape and dtype. `differs`: which elements of the one are wrong, given the other.
    `earlier`: outputs of earlier calls by what they were called on, of any shapes.
    """
    got, expected = _cropped(_real(got)), _cropped(_real(expected))
    values = Values(got, expected, differs(got, expected))
    if int(values.wrong.sum()) < _LEAST:
        return None
    for describe in (_unwritten, _one_value, _stale(earlier), _moved, _linear):
        words = describe(values)
        if words:
            return words
    return None


def rounding_pattern(got: Tensor, expected: Tensor) -> str | None:
    """The narrower dtype whose numbers all values of `got` are, though those expected are not; None without one."""
    got, expected = _cropped(_real(got)), _cropped(_real(expected))
    finite = got.isfinite() & expected.isfinite()
    mine, theirs = got[finite], expected[finite].to(got.dtype)
    if not mine.is_floating_point() or mine.unique().numel() < _DIFFERENT:
        return None
    for name, narrowed in _roundings(mine.dtype):
        if bool((narrowed(mine) == mine).all()) and float((narrowed(theirs) == theirs).float().mean()) < 0.5:
            return f"every value is a {name} number"
    return None


def holds(output: Tensor, byte: int) -> Tensor:
    """True for the elements whose bytes are all `byte`."""
    line = output.contiguous().view(torch.uint8).reshape(*output.shape, -1)
    return (line == byte).all(-1)


def _roundings(dtype: torch.dtype) -> Iterator[tuple[str, Transform]]:
    for narrow in _HALVES.get(dtype, ()):
        name = str(narrow).removeprefix("torch.")
        name += " or TF32" if dtype is torch.float32 and narrow is torch.float16 else ""  # as many digits
        yield name, lambda values, to=narrow: values.to(to).to(values.dtype)
    if dtype is torch.float32:
        yield "TF32", lambda values: (values.view(torch.int32) & ~0x1FFF).view(torch.float32)


def _cropped(tensor: Tensor) -> Tensor:
    """The first rows, where there are too many elements."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if tensor.numel() <= _COMPARED or rows < 2:
        return tensor
    return tensor[: max(1, rows * _COMPARED // tensor.numel())]


def _real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _unwritten(values: Values) -> str | None:
    got = values.got[values.wrong]
    for byte, words in _POISON.items():
        if bool(holds(got, byte).all()):
            return f"nothing was written there: they hold the {words} that the memory was filled with"
    return None


def _one_value(values: Values) -> str | None:
    got = values.got[values.wrong]
    if not bool((got == got[0]).all()) or bool((values.expected[values.wrong] == got[0]).any()):
        return None
    value = got[0].item()
    return "they are all zero" if value == 0 else f"they are all {value:.9g}"


def _stale(earlier: Mapping[str, Tensor]) -> Callable[[Values], str | None]:
    def describe(values: Values) -> str | None:
        for label, result in earlier.items():
            if result.shape == values.got.shape and result.dtype == values.got.dtype:
                there = result.to(values.got.device)
                if _is_evident(there[values.wrong]) and torch.equal(there[values.wrong], values.got[values.wrong]):
                    return f"they are what the call on {label} gave"
        return None

    return describe


def _moved(values: Values) -> str | None:
    return next((words for words, source in _moves(values.expected) if _explains(values, source)), None)


def _moves(expected: Tensor) -> Iterator[tuple[str, Tensor]]:
    """(words, what would be got by a mistake of the place, NaN where it has no source) for each such mistake."""
    real = expected if expected.is_floating_point() else expected.double()
    sizes = [(dimension, size) for dimension, size in enumerate(real.shape) if size > 1]
    if len(sizes) > 1:
        yield "they are the transposed result's", _transposed(real)
        yield "rows and columns are swapped in memory", real.mT.reshape(real.shape)
    for dimension, size in sizes:
        where = f"dimension {dimension}"
        for step in (1, -1):
            edge = torch.full_like(real.narrow(dimension, 0, 1), math.nan)
            kept = real.narrow(dimension, max(step, 0), size - 1)
            moved = torch.cat((kept, edge) if step > 0 else (edge, kept), dimension)
            yield f"they are shifted by one: each is its {'next' if step > 0 else 'previous'} one's in {where}", moved
        if size % 2 == 0 and size > 2:
            yield f"the halves of {where} are swapped", real.roll(size // 2, dimension)
        yield f"{where} is reversed", real.flip(dimension)


def _transposed(real: Tensor) -> Tensor:
    rows, columns = real.shape[-2:]
    side = min(rows, columns)
    made = torch.full_like(real, math.nan)
    made[..., :side, :side] = real[..., :side, :side].mT
    return made


def _explains(values: Values, source: Tensor) -> bool:
    """Whether the wrong elements have the values of `source`, where that has any."""
    got, wanted = values.got[values.wrong].double(), source[values.wrong].double()
    known = wanted.isfinite()
    if float(known.double().mean()) < _EXPLAINED or not _is_evident(wanted[known]):
        return False
    return _close(got[known], wanted[known], values)


def _close(got: Tensor, wanted: Tensor, values: Values) -> bool:
    finite = values.expected[values.expected.isfinite()].double()
    typical = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    return bool(((got - wanted).abs() <= values.slack * (wanted.abs() + typical)).all())


def _is_evident(wanted: Tensor) -> bool:
    """Whether so many different values agree that it can be no accident."""
    _, counts = wanted.unique(return_counts=True)
    return counts.numel() >= _LEAST and 2 * int(counts.max()) <= wanted.numel()


def _linear(values: Values) -> str | None:
    """A constant factor, or a constant that was added."""
    got, wanted = values.got[values.wrong].double(), values.expected[values.wrong].double()
    finite = got.isfinite() & wanted.isfinite()
    got, wanted = got[finite], wanted[finite]
    if finite.sum() < _EXPLAINED * finite.numel() or not _is_evident(wanted):
        return None
    factor = float((got * wanted).sum() / wanted.square().sum())
    if factor and _close(got, factor * wanted, values):
        return (
            "they have the wrong sign" if abs(factor + 1) < values.slack else f"they are {factor:.5g} times too large"
        )
    added = float((got - wanted).mean())
    return f"{added:.5g} was added to them" if _close(got, wanted + added, values) else None
