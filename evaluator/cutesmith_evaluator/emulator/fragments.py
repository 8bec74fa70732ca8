"""Matrices as the lanes of a warp hold them in their registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cutesmith_evaluator.emulator import eighths, halves
from cutesmith_evaluator.emulator.kinds import U32
from cutesmith_evaluator.emulator.rounding import F32

if TYPE_CHECKING:
    from cutesmith_evaluator.emulator.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]
SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}  # bytes of an element
ROWS, COLUMNS, _GROUPS, _QUAD = 16, 8, 8, 4


def stacked(batch: Batch, slots: Sequence[int], warps: Array | slice) -> Array:
    """(warps, registers, lanes)"""
    columns = [batch.spread(batch.values[slot]).view(U32).reshape(-1, 32)[warps] for slot in slots]
    return np.stack(columns, axis=1)


def _elements(registers: Array, kind: str) -> Array:
    """(warps, registers, groups, quad, elements of a register)"""
    narrow = np.ascontiguousarray(registers).view(f"u{SIZES[kind]}")
    return decoded(narrow.reshape(*registers.shape[:2], _GROUPS, _QUAD, -1), kind)


def decoded(bits: Array, kind: str) -> Array:
    match kind:
        case "f16" | "bf16":
            return halves.widen(bits, kind)
        case "tf32":
            return (bits & np.uint32(0xFFFFE000)).view(F32)
        case "s8" | "u8":
            return bits.view(np.int8 if kind == "s8" else np.uint8).astype(np.int32)
        case _:
            return eighths.widen(bits, kind)


def left_operand(registers: Array, kind: str) -> Array:
    """(warps, 16, k) of A: a register holds elements side by side of row g or g + 8, registers 2 and 3 further on."""
    parts = _elements(registers, kind)
    warps, count, _, _, width = parts.shape
    parts = parts.reshape(warps, count // 2, 2, _GROUPS, _QUAD, width)
    return parts.transpose(0, 2, 3, 1, 4, 5).reshape(warps, ROWS, -1)


def right_operand(registers: Array, kind: str) -> Array:
    """(warps, 8, k) of B, whose columns are held like rows of A."""
    parts = _elements(registers, kind)
    return parts.transpose(0, 2, 1, 3, 4).reshape(len(parts), COLUMNS, -1)


def unpacked(registers: Array, kind: str) -> Array:
    """(warps, 16, 8) of C: two neighbours of row g, then two of row g + 8."""
    if kind == "f16":
        parts = halves.widen(np.ascontiguousarray(registers).view(np.uint16), "f16")
        parts = parts.reshape(-1, 2, _GROUPS, _QUAD, 2)
    else:
        values = registers.view(np.int32 if kind == "s32" else F32)
        parts = values.reshape(-1, 2, 2, _GROUPS, _QUAD).transpose(0, 1, 3, 4, 2)
    return parts.reshape(-1, ROWS, COLUMNS)


def packed_registers(values: Array, kind: str) -> list[Array]:
    """The registers of D, (warps, lanes) each."""
    parts = values.reshape(-1, 2, _GROUPS, _QUAD, 2)
    if kind == "f16":
        words = np.ascontiguousarray(halves.narrow(parts, "f16")).view(U32)
        return [words[:, half].reshape(-1, 32) for half in range(2)]
    return [
        np.ascontiguousarray(parts[:, half, :, :, place]).view(U32).reshape(-1, 32)
        for half in range(2)
        for place in range(2)
    ]
