"""The values of a PTX module, as the reader gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cutesmith_evaluator.emulator.faults import Place

Space = Literal["param", "global", "shared", "const", "local", "generic"]


@dataclass(frozen=True)
class Register:
    name: str


@dataclass(frozen=True)
class Special:
    """A read-only register of the machine, "%tid.x"."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """`bits`: a Python integer (negative for a negative literal), or the bits of a 0f or 0d literal."""

    bits: int
    form: Literal["int", "f32", "f64"]


@dataclass(frozen=True)
class Symbol:
    """A variable, a parameter or a label."""

    name: str


@dataclass(frozen=True)
class Address:
    """`[base + offset]`."""

    base: Register | Symbol | Immediate
    offset: int


@dataclass(frozen=True)
class TensorAddress:
    """`[base + offset, {c0, c1, ...}]`: a tensor map and the coordinates of a box in it."""

    map: Address
    coordinates: tuple[Operand, ...]


@dataclass(frozen=True)
class Group:
    """`{a, b, c, d}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Sink:
    """`_`: a result that nobody wants."""


@dataclass(frozen=True)
class Pair:
    """`value|predicate`: two results."""

    first: Register | Sink
    second: Register | Sink


@dataclass(frozen=True)
class Negated:
    """`!p`."""

    register: Register


Operand = Register | Special | Immediate | Symbol | Address | TensorAddress | Group | Pair | Negated | Sink


@dataclass(frozen=True)
class Guard:
    """`@p` or `@!p`."""

    register: Register
    negated: bool


@dataclass(frozen=True)
class Instruction:
    """`used_bytes`: for a vector load, bit i set where byte i is used (the compiler may widen a load)."""

    opcode: str  # with all its dots
    operands: tuple[Operand, ...]
    guard: Guard | None = None
    place: Place | None = None
    line: int = 0  # of the PTX
    used_bytes: int | None = None

    @property
    def words(self) -> list[str]:
        return self.opcode.split(".")


@dataclass(frozen=True)
class Variable:
    """A declaration outside registers and parameters. `size` 0: the launch's dynamic shared memory."""

    name: str
    space: Space
    align: int
    size: int
    data: bytes = b""


@dataclass(frozen=True)
class Parameter:
    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class Kernel:
    """`body`: instructions, and labels as indices into them. `registers`: width in bits by name, 1 for predicates."""

    name: str
    parameters: tuple[Parameter, ...]
    registers: dict[str, int]
    variables: tuple[Variable, ...]
    body: tuple[Instruction, ...]
    labels: dict[str, int]
    threads: tuple[int, int, int] | None = None  # .reqntid


@dataclass(frozen=True)
class Module:
    arch: str
    kernels: dict[str, Kernel]
    variables: tuple[Variable, ...]
