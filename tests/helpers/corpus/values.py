"""Operands: what breaks arithmetic, and hashed bits. The same on every machine and in every version of NumPy."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
U64 = np.uint64


def bits(name: str, count: int, dtype: np.dtype | str = "u8") -> Array:
    """`count` hashed words; splitmix64 of a counter that starts where the name says."""
    start = U64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        state = start + np.arange(1, count + 1, dtype=U64) * U64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> U64(30))) * U64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> U64(27))) * U64(0x94D049BB133111EB)
    whole = state ^ (state >> U64(31))
    wanted = np.dtype(dtype)
    return (whole >> U64(64 - 8 * wanted.itemsize)).astype(f"u{wanted.itemsize}").view(wanted)


def _float_specials(exponent: int, mantissa: int) -> list[int]:
    """Bits of a float format's edges, the most telling ones first."""
    bias, top = (1 << (exponent - 1)) - 1, (1 << exponent) - 1
    sign = 1 << (exponent + mantissa)
    one, infinity, quiet = bias << mantissa, top << mantissa, 1 << (mantissa - 1)
    positive = [0, one, 1, infinity - 1, infinity, infinity | quiet, one + 1, one - 1, (1 << mantissa) - 1]
    positive += [1 << mantissa, infinity | 1, one | quiet]
    halfway = [(bias + mantissa) << mantissa, (bias + mantissa + 1) << mantissa, (bias - mantissa) << mantissa]
    more = [(bias - mantissa - 1) << mantissa, (bias - 1) << mantissa, ((bias + mantissa) << mantissa) - 1]
    more += [(1 << mantissa) + 1, quiet, (bias + 1) << mantissa, infinity | quiet | 5, infinity | (quiet - 1)]
    return [bit for value in (*positive, *halfway, *more) for bit in (value, value | sign)]


def _integer_specials(width: int) -> list[int]:
    half, top = 1 << (width - 1), (1 << width) - 1
    edges = [0, 1, top, half, half - 1, 2, top - 1, half + 1, 3, (1 << (width // 2)) - 1, 1 << (width // 2)]
    edges += [top // 3, top // 3 * 2, 31, 32, 33, 7, 8, 255 & top, (1 << (width // 2)) + 1, 10, top - 2, half - 2]
    return edges


_FLOATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
_WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "count": 32}
_COUNTS = [0, 1, 31, 32, 33, 63, 64, 65, 5, 15, 16, 17, 255, 256, 0xFFFFFFFF, 0x80000000, 8, 24, 40]


def width_of(kind: str) -> int:
    """In bits, of one register: "f16x2" → 32."""
    base, _, count = kind.partition("x")
    return _WIDTHS.get(base, 0) * int(count or 1) or int(base[1:]) * int(count or 1)


def specials(kind: str) -> list[int]:
    if kind == "count":
        return _COUNTS
    return _float_specials(*_FLOATS[kind]) if kind in _FLOATS else _integer_specials(width_of(kind))


def _hashed(kind: str, name: str, count: int) -> Array:
    """Half of them of any bits, half of a shape that rounding or size decides."""
    width = width_of(kind)
    raw = bits(name, count)
    if kind == "count":
        return (raw % U64(70)).astype(np.uint32)
    word = raw >> U64(64 - width)
    shaped = (
        _near(*_FLOATS[kind], name, count) if kind in _FLOATS else word >> (bits(f"{name}/cut", count) % U64(width))
    )
    chosen = np.where(np.arange(count) % 2 == 0, word, shaped)
    return chosen.astype(f"u{width // 8}")


def _near(exponent: int, mantissa: int, name: str, count: int) -> Array:
    """Floats of like size, whose last bits are a midpoint of a shorter format, or next to one."""
    raw, tail = bits(f"{name}/shape", count), bits(f"{name}/tail", count)
    bias = (1 << (exponent - 1)) - 1
    size = U64(bias - 4) + raw % U64(9)
    drop = U64(1) + tail % U64(mantissa)
    half = U64(1) << (drop - U64(1))
    near = half + (tail >> U64(32)) % U64(3) - U64(1)
    fraction = (raw >> U64(20)) & U64((1 << mantissa) - 1)
    fraction = ((fraction >> drop) << drop) | (near & ((U64(1) << drop) - U64(1)))
    sign = (raw >> U64(63)) << U64(exponent + mantissa)
    return sign | (size << U64(mantissa)) | fraction


def operands(kinds: Sequence[str], name: str, count: int) -> tuple[Array, ...]:
    """`count` of each kind: every special with every other, as far as half of them go, then hashed ones.

    "f16x2" packs two hashed halves, of which the first ones are all pairs of specials.
    """
    if any("x2" in kind for kind in kinds):
        parts = [operands([kind.removesuffix("x2") for kind in kinds], f"{name}/{half}", count) for half in "lh"]
        shifted = [np.roll(high, 7) for high in parts[1]]  # so that the halves differ
        return tuple(
            low.astype(np.uint32) | (high.astype(np.uint32) << np.uint32(16)) if "x2" in kind else low
            for kind, low, high in zip(kinds, parts[0], shifted, strict=True)
        )
    lists = [specials(kind) for kind in kinds]
    each = max(2, int((0.6 * count) ** (1 / len(kinds))))
    lists = [some[:each] for some in lists]
    grid = np.meshgrid(*[np.array(some, U64) for some in lists], indexing="ij")
    found = []
    for place, (kind, values) in enumerate(zip(kinds, grid, strict=True)):
        first = values.reshape(-1)[:count].astype(f"u{width_of(kind) // 8}")
        found.append(np.concatenate([first, _hashed(kind, f"{name}/{place}", count - first.size)]))
    return tuple(found)
