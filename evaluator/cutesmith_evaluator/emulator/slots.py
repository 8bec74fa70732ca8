"""Operands become slots of one list of values: registers first, then constants and the machine's own registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.kinds import BOOL, bits_dtype, unsupported
from cutesmith_evaluator.emulator.layout import Layout
from cutesmith_evaluator.emulator.ptx import Immediate, Instruction, Kernel, Operand, Register, Special, Symbol

_UNSET = 0xFFFFDEADFFFFDEAD  # what a register holds before it is written: NaN as a float


class Slots:
    """Slots of one kernel; `constants` maps those that are known before the launch to their values."""

    def __init__(self, kernel: Kernel, layout: Layout) -> None:
        self.constants: dict[int, Any] = {}
        self.specials: dict[str, int] = {}
        self._layout = layout
        self._dtypes: dict[int, np.dtype] = {}
        self._registers: dict[str, int] = {}
        self._known: dict[tuple[int, np.dtype], int] = {}
        for slot, (name, width) in enumerate(kernel.registers.items()):
            self._registers[name] = slot
            self._dtypes[slot] = dtype = bits_dtype(width)
            self.constants[slot] = np.bool_(False) if dtype == BOOL else dtype.type(_UNSET % (1 << width))
        self.count = len(self._registers)
        self._carry: int | None = None

    def register(self, register: Register) -> int:
        return self._registers[register.name]

    def dtype(self, slot: int) -> np.dtype:
        """The dtype in which the slot's values are kept."""
        return self._dtypes[slot]

    def source(self, operand: Operand, dtype: np.dtype, instruction: Instruction, *, relaxed: bool = False) -> int:
        """The slot of an operand that is read as `dtype`. `relaxed`: it may be a wider register."""
        match operand:
            case Register():
                slot = self._registers[operand.name]
                width = self._dtypes[slot].itemsize
                if width != dtype.itemsize and not (relaxed and width > dtype.itemsize):
                    raise unsupported(instruction, f"{operand.name} has another width")
                return slot
            case Immediate():
                return self.constant(_literal(operand, dtype, instruction), dtype)
            case Special():
                return self._special(operand.name, dtype)
            case Symbol() if operand.name in self._layout.addresses:
                return self.constant(self._layout.addresses[operand.name], dtype)
            case _:
                raise unsupported(instruction, f"operand {operand}")

    def carry(self) -> int:
        """The slot of the carry bit of each thread."""
        if self._carry is None:
            self._carry = self._new(np.bool_(False), BOOL)
        return self._carry

    def constant(self, bits: int, dtype: np.dtype) -> int:
        """The slot of a value given by its bits."""
        if dtype == BOOL:
            return self._new(np.bool_(bits), dtype)
        unsigned = np.dtype(f"u{dtype.itemsize}")
        bits %= 1 << 8 * dtype.itemsize
        key = (bits, unsigned)
        if key not in self._known:
            self._known[key] = self._new(unsigned.type(bits), unsigned)
        return self._known[key]

    def _new(self, value: Any, dtype: np.dtype) -> int:
        slot = self.count
        self.count += 1
        self.constants[slot], self._dtypes[slot] = value, dtype
        return slot

    def _special(self, name: str, dtype: np.dtype) -> int:
        key = f"{name}:{8 * dtype.itemsize}"
        if key not in self.specials:
            self.specials[key] = self._new(dtype.type(0), dtype)
        return self.specials[key]


def _literal(literal: Immediate, dtype: np.dtype, instruction: Instruction) -> int:
    """The bits of a literal in an operand of this type."""
    if literal.form == "int":
        if dtype.kind == "f" and literal.bits:
            raise unsupported(instruction, "an integer literal in a floating operand")
        return literal.bits
    width = {"f32": 4, "f64": 8}[literal.form]
    if width == dtype.itemsize:
        return literal.bits
    if literal.form == "f64" and dtype.itemsize == 4:
        value = np.array(literal.bits, np.uint64).view(np.float64).astype(np.float32)
        return int(value.view(np.uint32))
    raise unsupported(instruction, "a literal of another width")
