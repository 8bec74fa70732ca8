"""Variables and parameters of PTX: names, sizes, alignments, initial bytes."""

from __future__ import annotations

import re

from cutesmith_evaluator.emulator.faults import UnsupportedError
from cutesmith_evaluator.emulator.operands import integer, split_operands
from cutesmith_evaluator.emulator.ptx import Parameter, Space, Variable

_VARIABLE = re.compile(
    r"(?:\.(?:extern|visible|weak|common)\s+)*\.(?P<space>shared|global|const|local)\s+"
    r"(?:\.attribute\([^)]*\)\s*)?(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<type>\w+)\s+(?P<rest>.+)$",
    re.DOTALL,
)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\b[^%\w]*(?:\.\w+\s+|\d+\s+)*)?([\w$]+)(\[\d+\])?$"
)
_NAMED = re.compile(r"([\w$%]+)((?:\[\d*\])*)\s*(?:=\s*(.+))?$", re.DOTALL)


def bits_of(kind: str) -> int:
    """Width of a type: "b32" → 32, "pred" → 1, "f16x2" → 32."""
    if kind == "pred":
        return 1
    found = re.fullmatch(r"(?:bf|[busf])(\d+)(?:x(\d))?", kind)
    if not found:
        raise UnsupportedError(f"the PTX type .{kind} is not emulated yet")
    return int(found[1]) * int(found[2] or 1)


def declared(text: str) -> list[Variable]:
    """The variables of one declaration."""
    text = text.strip()
    found = _VARIABLE.match(text)
    if not found:
        raise UnsupportedError(f"the PTX declaration `{' '.join(text.split())[:80]}` is not understood")
    width = bits_of(found["type"]) // 8
    align = int(found["align"] or width)
    space: Space = found["space"]  # type: ignore[assignment]
    return [_variable(part, space, align, width) for part in split_operands(found["rest"])]


def _variable(text: str, space: Space, align: int, width: int) -> Variable:
    named = _NAMED.match(text)
    if not named:
        raise UnsupportedError(f"the PTX declaration of `{text[:60]}` is not understood")
    count = 1
    for extent in re.findall(r"\[(\d*)\]", named[2]):
        count *= int(extent or 0)
    return Variable(named[1], space, align, count * width, _initial(named[3], width) if named[3] else b"")


def _initial(text: str, width: int) -> bytes:
    values = split_operands(text.strip().removeprefix("{").removesuffix("}"))
    try:
        return b"".join((integer(value) % (1 << 8 * width)).to_bytes(width, "little") for value in values)
    except ValueError as error:
        raise UnsupportedError(f"the initial value `{text[:60]}` in the PTX is not understood") from error


def layout_parameters(text: str) -> tuple[Parameter, ...]:
    """Parameters in order, each at its alignment."""
    made, offset = [], 0
    for part in split_operands(text):
        found = _PARAMETER.match(part)
        if not found:
            raise UnsupportedError(f"the kernel parameter `{part[:80]}` is not understood")
        width = bits_of(found[2]) // 8
        size = width * int(found[4][1:-1]) if found[4] else width
        align = int(found[1] or width)
        offset = -(-offset // align) * align
        made.append(Parameter(found[3], offset, size))
        offset += size
    return tuple(made)
