"""The host code's arguments: LLVM types as bytes, laid out as C does."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from cutesmith_evaluator.emulator.faults import UnsupportedError

_ENTRY = re.compile(r"llvm\.func @(?P<name>[\w$]+)\((?P<arguments>.*)\) -> i32 attributes \{llvm\.emit_c_interface\}")
_SCALARS = {
    "i1": ("?", 1),
    "i8": ("b", 1),
    "i16": ("h", 2),
    "i32": ("i", 4),
    "i64": ("q", 8),
    "f16": ("e", 2),
    "f32": ("f", 4),
    "f64": ("d", 8),
    "ptr": ("Q", 8),
}
Value = int | float | bool


@dataclass(frozen=True)
class Shape:
    """A type's size and alignment in bytes, and its scalars: (offset, struct format)."""

    size: int
    align: int
    scalars: tuple[tuple[int, str], ...]

    def packed(self, values: Sequence[Value]) -> bytearray:
        """One value for each scalar, in order. Raises UnsupportedError when their numbers differ."""
        if len(values) != len(self.scalars):
            raise UnsupportedError(
                f"the host code takes {len(self.scalars)} numbers where {len(values)} are known: such an argument "
                "is not emulated yet"
            )
        data = bytearray(max(self.size, 1))
        for (offset, form), value in zip(self.scalars, values, strict=True):
            struct.pack_into(f"<{form}", data, offset, _fitting(value, form))
        return data


def _fitting(value: Value, form: str) -> Value:
    """Unsigned values above the signed range keep their bits."""
    if form not in "bhiq":
        return value
    width = 8 * struct.calcsize(form)
    return (int(value) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))


def entry_of(host: str) -> tuple[str, tuple[Shape, ...]]:
    """The name of the host code's entry in the printed module, and its arguments. Raises UnsupportedError."""
    for line in host.splitlines():
        found = _ENTRY.search(line)
        if found and not found["name"].startswith("_mlir_ciface_"):
            kinds = [part.partition(":")[2] for part in _parts(found["arguments"])]
            return found["name"], tuple(shape_of(kind) for kind in kinds)
    raise UnsupportedError("the host code of cute.compile has no entry that is understood")


def shape_of(kind: str) -> Shape:
    """Of an LLVM type as MLIR prints it: "!llvm.struct<(ptr<1>, struct<(i32)>)>"."""
    kind = re.sub(r"\s*\{[^{}]*\}$", "", kind.strip()).removeprefix("!llvm.")  # without attributes
    scalar = _SCALARS.get(re.sub(r"<\d+>$", "", kind))
    if scalar:
        return Shape(scalar[1], scalar[1], ((0, scalar[0]),))
    if kind.startswith("struct<(") and kind.endswith(")>"):
        return _record([shape_of(part) for part in _parts(kind[len("struct<(") : -len(")>")])])
    if array := re.fullmatch(r"array<(\d+) x (.+)>", kind):
        return _record([shape_of(array[2])] * int(array[1]))
    raise UnsupportedError(f"a host argument of type {kind} is not emulated yet")


def _record(members: list[Shape]) -> Shape:
    scalars: list[tuple[int, str]] = []
    end = 0
    for member in members:
        start = -(-end // member.align) * member.align
        scalars += [(start + offset, form) for offset, form in member.scalars]
        end = start + member.size
    align = max((member.align for member in members), default=1)
    return Shape(-(-end // align) * align, align, tuple(scalars))


def _parts(text: str) -> list[str]:
    """The parts between commas outside brackets."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "<({") - (char in ">)}")
        if char == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    return [part for part in (*parts, text[start:]) if part.strip()]
