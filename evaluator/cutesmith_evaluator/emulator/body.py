"""The body of a PTX kernel: declarations, labels, instructions; scopes of inline assembly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from cutesmith_evaluator.emulator.declarations import bits_of, declared
from cutesmith_evaluator.emulator.faults import Place, UnsupportedError
from cutesmith_evaluator.emulator.operands import parse_operand, split_operands
from cutesmith_evaluator.emulator.ptx import Guard, Instruction, Register, Symbol, Variable

_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)[^\n]*")
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")
_STATEMENT = re.compile(r'(?:"[^"]*"|[^;"])*;')
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.+)$", re.DOTALL)
_RANGE = re.compile(r"([%\w$]+)<(\d+)>$")
_INSTRUCTION = re.compile(r"(?:@(!?)([%\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)$", re.DOTALL)
# A call of printf and its arguments: what a kernel prints is not shown.
_PRINTS = re.compile(r"\.param\b|st\.param\b|(?:@!?[%\w$]+\s+)?call(?:\.uni)?\s*\([^)]*\)\s*,\s*vprintf\b")
_USED_BYTES = re.compile(r'\.pragma\s+"used_bytes_mask\s+(0x[0-9a-fA-F]+|\d+)"')


_MOST_REGISTERS = 1 << 20


@dataclass
class Scope:
    """What braces enclose. `start`: its first instruction; `names`, `labels`: name → unique name."""

    start: int = 0
    names: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


@dataclass
class Body:
    """What a kernel holds. `labels` are indices into `instructions`."""

    kernel: str
    files: dict[int, str]
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=lambda: [Scope()])  # innermost last
    place: Place | None = None
    used_bytes: int | None = None

    def known(self, name: str) -> str | None:
        return next((scope.names[name] for scope in reversed(self.scopes) if name in scope.names), None)

    def declare(self, name: str, width: int) -> None:
        unique = name if name not in self.registers else f"{name}@{len(self.registers)}"
        self.scopes[-1].names[name] = unique
        self.registers[unique] = width

    def label(self, name: str) -> None:
        unique = name if len(self.scopes) == 1 else f"{name}@{len(self.labels)}"
        self.scopes[-1].labels[name] = unique
        self.labels[unique] = len(self.instructions)


def read_body(text: str, kernel: str, first_line: int, files: dict[int, str]) -> Body:
    """Raises UnsupportedError, with the kernel and the line of source, for a statement that is not understood."""
    body = Body(kernel, files)
    place, line = 0, first_line
    while place < len(text):
        start = place
        char = text[place]
        if char.isspace():
            place += 1
        elif loc := _LOC.match(text, place):
            _locate(body, files.get(int(loc[1]), ""), int(loc[2]), int(loc[3]))
            place = loc.end()
        elif char in "{}":
            _scope(body, char)
            place += 1
        elif label := _LABEL.match(text, place):
            body.label(label[1])
            place = label.end()
        else:
            found = _STATEMENT.match(text, place)
            if not found:
                raise UnsupportedError(
                    f"`{text[place:].strip()[:60]}` ends kernel {kernel} without a semicolon", kernel
                )
            _statement(body, found[0][:-1].strip(), line)
            place = found.end()
        line += text.count("\n", start, place)
    return body


def _locate(body: Body, file: str, line: int, column: int) -> None:
    """Inside inline assembly the compiler counts on by the assembly's own lines: those name nothing. Where the DSL
    knows no line (atomics, some shuffles) it names the whole function, at column 0."""
    if line and len(body.scopes) == 1:
        body.place = Place(file, line if column else 0)


def _scope(body: Body, brace: str) -> None:
    if brace == "{":
        body.scopes.append(Scope(len(body.instructions)))
        return
    scope = body.scopes.pop()
    if not scope.labels:
        return
    for number in range(scope.start, len(body.instructions)):
        instruction = body.instructions[number]
        operands = tuple(
            Symbol(scope.labels[each.name]) if isinstance(each, Symbol) and each.name in scope.labels else each
            for each in instruction.operands
        )
        body.instructions[number] = replace(instruction, operands=operands)


def _statement(body: Body, text: str, line: int) -> None:
    if not text:
        return
    if text.startswith(".reg"):
        _declare_registers(body, text)
    elif text.startswith(".pragma"):
        used = _USED_BYTES.match(text)
        body.used_bytes = int(used[1], 0) if used else body.used_bytes
    elif _PRINTS.match(text):
        body.used_bytes = None
    elif text.startswith("."):
        body.variables += declared(text)
    else:
        body.instructions.append(_instruction(body, text, line))
        body.used_bytes = None


def _declare_registers(body: Body, text: str) -> None:
    found = _REGISTERS.match(text)
    if not found:
        raise UnsupportedError(f"`{text[:60]}` in kernel {body.kernel} is not understood", body.kernel, body.place)
    width = bits_of(found[1])
    if width > 64:
        raise UnsupportedError(f"registers of {width} bits are not emulated yet", body.kernel, body.place)
    for name in split_operands(found[2]):
        if many := _RANGE.match(name):
            if int(many[2]) > _MOST_REGISTERS:
                words = f"{many[2]} registers of one declaration are not emulated"
                raise UnsupportedError(words, body.kernel, body.place)
            for number in range(int(many[2])):
                body.declare(f"{many[1]}{number}", width)
        else:
            body.declare(name, width)


def _instruction(body: Body, text: str, line: int) -> Instruction:
    found = _INSTRUCTION.match(text)
    try:
        if not found:
            raise ValueError("it is no instruction")
        operands = tuple(parse_operand(part, body.known) for part in split_operands(found[4]))
        place = body.place
        if place is not None and not place.line:
            place = replace(place, opcode=found[3].partition(".")[0])
        return Instruction(found[3], operands, _guard(body, found), place, line, body.used_bytes)
    except ValueError as error:
        message = f"`{' '.join(text.split())[:80]}` in kernel {body.kernel} is not understood: {error}"
        raise UnsupportedError(message, body.kernel, body.place) from error


def _guard(body: Body, found: re.Match[str]) -> Guard | None:
    if not found[2]:
        return None
    unique = body.known(found[2])
    if unique is None:
        raise ValueError(f"`{found[2]}` is no register")
    return Guard(Register(unique), bool(found[1]))
