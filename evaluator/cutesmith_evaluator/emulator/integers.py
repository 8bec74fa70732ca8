"""Integer arithmetic of PTX: two's complement, wrapping, at the instruction's width."""

from __future__ import annotations

from typing import Any

import numpy as np

Ints = Any

_WIDER = {1: 2, 2: 4, 4: 8}


def wide(a: Ints, b: Ints) -> Ints:
    """The whole product, at twice the width."""
    double = np.dtype(f"{a.dtype.kind}{_WIDER[a.dtype.itemsize]}")
    return a.astype(double) * b.astype(double)


def high(a: Ints, b: Ints) -> Ints:
    """The upper half of the product."""
    if a.dtype.itemsize < 8:
        return (wide(a, b) >> (8 * a.dtype.itemsize)).astype(a.dtype)
    upper = _high_unsigned(a.view(np.uint64), b.view(np.uint64))
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        upper = upper - np.where(a < 0, b.view(np.uint64), zero) - np.where(b < 0, a.view(np.uint64), zero)
    return upper.view(a.dtype)


def _high_unsigned(a: Ints, b: Ints) -> Ints:
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> shift, b & low, b >> shift
    cross = a1 * b0 + (a0 * b0 >> shift)
    other = a0 * b1 + (cross & low)
    return a1 * b1 + (cross >> shift) + (other >> shift)


def quotient(a: Ints, b: Ints) -> Ints:
    """Truncated toward zero. A zero divisor gives all bits set, as on an H200; PTX does not say what it gives."""
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a.dtype.type(0), a // np.where(b == 0, a.dtype.type(1), b))
    unsigned = _unsigned(a.dtype)
    size = quotient(magnitude(a).view(unsigned), magnitude(b).view(unsigned)).view(a.dtype)
    return np.where(b == 0, ~a.dtype.type(0), np.where((a < 0) != (b < 0), -size, size))


def remainder(a: Ints, b: Ints) -> Ints:
    """Of the sign of a; all bits set for a zero divisor."""
    return np.where(b == 0, ~a.dtype.type(0), a - quotient(a, b) * b)


def magnitude(a: Ints) -> Ints:
    return np.where(a < 0, -a, a)


def shift_left(a: Ints, by: Ints) -> Ints:
    """NumPy's shifts by the width or more give what PTX's clamped ones do, as long as the type holds the amount."""
    if a.dtype.itemsize < 4:
        by = np.minimum(by, np.uint32(8 * a.dtype.itemsize))
    return np.left_shift(a, by.astype(a.dtype))


def shift_right(a: Ints, by: Ints) -> Ints:
    """`by` (uint32) is clamped first: as a signed amount it could turn negative."""
    clamped = np.minimum(by, np.uint32(8 * a.dtype.itemsize))
    return np.right_shift(a, clamped.astype(a.dtype))


def funnel(low: Ints, up: Ints, by: Ints, *, left: bool, wrap: bool) -> Ints:
    """shf: the 64 bits up:low shifted; the upper word for left, the lower one for right."""
    amount = (by & np.uint32(31) if wrap else np.minimum(by, np.uint32(32))).astype(np.uint64)
    both = low.astype(np.uint64) | (up.astype(np.uint64) << np.uint64(32))
    shifted = (both << amount) >> np.uint64(32) if left else both >> amount
    return shifted.astype(np.uint32)


def population(a: Ints) -> Ints:
    return np.bitwise_count(a).astype(np.uint32)


def leading_zeros(a: Ints) -> Ints:
    """Smears the highest set bit down and counts."""
    filled = a.copy() if np.ndim(a) else a
    for step in (1, 2, 4, 8, 16, 32):
        if step < 8 * a.dtype.itemsize:
            filled = filled | (filled >> a.dtype.type(step))
    return (np.uint32(8 * a.dtype.itemsize) - population(filled)).astype(np.uint32)


def reversed_bits(a: Ints) -> Ints:
    width = 8 * a.dtype.itemsize
    result = np.zeros_like(a)
    for place in range(width):
        bit = (a >> a.dtype.type(place)) & a.dtype.type(1)
        result = result | (bit << a.dtype.type(width - 1 - place))
    return result


def extract(a: Ints, position: Ints, length: Ints) -> Ints:
    """bfe: a field, extended for signed types by its sign, which beyond the highest bit is that bit."""
    width = 8 * a.dtype.itemsize
    unsigned = _unsigned(a.dtype)
    position, length = position & np.uint32(0xFF), length & np.uint32(0xFF)
    field = shift_right(a.view(unsigned), position) & _ones(length, unsigned)
    if a.dtype.kind == "u":
        return field
    top = np.minimum(position + length - np.uint32(1), np.uint32(width - 1))
    negative = (shift_right(a.view(unsigned), top) & unsigned(1)).astype(bool) & (length != 0)
    inside = np.minimum(length, np.uint32(width) - np.minimum(position, np.uint32(width)))
    return np.where(negative, field | ~_ones(inside, unsigned), field).view(a.dtype)


def insert(field: Ints, into: Ints, position: Ints, length: Ints) -> Ints:
    """bfi."""
    position, length = position & np.uint32(0xFF), length & np.uint32(0xFF)
    mask = shift_left(_ones(length, into.dtype.type), position)
    return (into & ~mask) | (shift_left(field, position) & mask)


def _ones(length: Ints, kind: type) -> Ints:
    width = 8 * np.dtype(kind).itemsize
    return np.where(length >= width, ~kind(0), shift_left(kind(1), length) - kind(1))


def permute(a: Ints, b: Ints, selector: Ints) -> Ints:
    """prmt in its default mode: four bytes of b:a, each by a nibble, bit 3 of which spreads the sign."""
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.uint32(0)
    for place in range(4):
        nibble = (selector >> np.uint32(4 * place)) & np.uint32(0xF)
        byte = ((both >> (np.uint64(8) * (nibble & np.uint32(7)).astype(np.uint64))) & np.uint64(0xFF)).astype(
            np.uint32
        )
        spread = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        byte = np.where(nibble & np.uint32(8), spread, byte)
        result = result | (byte << np.uint32(8 * place))
    return result


def lookup(a: Ints, b: Ints, c: Ints, table: int) -> Ints:
    """lop3: any function of three bits, by its truth table."""
    result = np.zeros_like(a)
    for row in range(8):
        if table >> row & 1:
            result = result | ((a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c))
    return result


def clamped(exact: Ints, dtype: np.dtype) -> Ints:
    """To what the type holds."""
    return np.clip(exact, np.iinfo(dtype).min, np.iinfo(dtype).max).astype(dtype)


def _unsigned(dtype: np.dtype) -> type:
    return np.dtype(f"u{dtype.itemsize}").type
