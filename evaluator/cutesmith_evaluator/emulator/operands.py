"""One operand of an instruction, from its text."""

from __future__ import annotations

import re
from collections.abc import Callable

from cutesmith_evaluator.emulator.ptx import (
    Address,
    Group,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    TensorAddress,
)

_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})$|0[dD]([0-9a-fA-F]{16})$")
_NAME = re.compile(r"[%$\w.]+$")

Known = Callable[[str], str | None]  # a register's unique name, None for what is no register


def split_operands(text: str) -> list[str]:
    """The parts between commas that are outside brackets."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def parse_operand(text: str, known: Known) -> Operand:
    """Raises ValueError for what is no operand of PTX."""
    if text == "_":
        return Sink()
    if text[0] == "{" and text[-1] == "}":
        return Group(tuple(parse_operand(part, known) for part in split_operands(text[1:-1])))
    if text[0] == "[" and text[-1] == "]":
        return _bracketed(text[1:-1].strip(), known)
    if text[0] == "!":
        return Negated(_register(text[1:].strip(), known))
    if "|" in text:
        first, second = (_wanted(part.strip(), known) for part in text.split("|"))
        return Pair(first, second)
    return _atom(text, known)


def integer(text: str) -> int:
    digits = text.rstrip("U")
    if re.fullmatch(r"-?0[0-7]+", digits):
        return int(digits, 8)
    return int(digits, 0)


def _atom(text: str, known: Known) -> Operand:
    if _INTEGER.match(text):
        return Immediate(integer(text), "int")
    if found := _FLOAT.match(text):
        return Immediate(int(found[1], 16), "f32") if found[1] else Immediate(int(found[2], 16), "f64")
    if not _NAME.match(text):
        raise ValueError(f"`{text}` is no operand")
    unique = known(text)
    if unique is not None:
        return Register(unique)
    return Special(text) if text[0] == "%" else Symbol(text)


def _wanted(text: str, known: Known) -> Register | Sink:
    return Sink() if text == "_" else _register(text, known)


def _register(text: str, known: Known) -> Register:
    unique = known(text)
    if unique is None:
        raise ValueError(f"`{text}` is no register")
    return Register(unique)


def _bracketed(text: str, known: Known) -> Address | TensorAddress:
    address, *coordinates = split_operands(text)
    if not coordinates:
        return _address(address, known)
    group = parse_operand(coordinates[0], known)
    if len(coordinates) != 1 or not isinstance(group, Group):
        raise ValueError(f"`[{text}]` is no address")
    return TensorAddress(_address(address, known), group.items)


def _address(text: str, known: Known) -> Address:
    base, plus, offset = text.partition("+")
    atom = _atom(base.strip(), known)
    if not isinstance(atom, Register | Symbol | Immediate):
        raise ValueError(f"`[{text}]` is no address")
    return Address(atom, integer(offset.strip()) if plus else 0)
