"""When rows lie side by side in memory, and how many of them a thread and a block take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .accesses import Tensors, tensors_of
from .layout import vector_width, widest_vector
from .lowering import Program
from .text import loads_of

REGISTERS = 64  # fp32 values of its columns that a thread keeps
NARROW = ((32, 8, 8), (32, 16, 4), (64, 8, 4), (32, 4, 8))  # lanes, parts, accesses in flight
WIDE = ((256, 4, 4), (128, 8, 4), (256, 4, 8), (256, 4, 2), (512, 2, 4), (64, 8, 4))
MANY_BLOCKS = 264  # of 256 lanes: two for each SM of an H200


@dataclass(frozen=True)
class MiddleSchedule:
    vector: int  # neighbouring rows of a thread
    lanes: int  # threads side by side
    parts: int  # threads that share rows
    unroll: int  # accesses in flight; 0: all of a thread's columns stay in registers

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        shared = (
            ("VECTOR", self.vector, "neighbouring rows of a thread: an access, 16 bytes where the tensors are aligned"),
            ("LANES", self.lanes, "threads side by side"),
            ("PARTS", self.parts, "threads that share rows, each with every PARTS-th column"),
        )
        return (*shared, ("UNROLL", self.unroll, "accesses in flight per thread and tensor")) if self.unroll else shared


def applies(program: Program) -> bool:
    """Whether most of what is read per element lies with its rows side by side."""
    loads = [a for a in touched(program).loads if a.per_column and any(a.row_strides)]
    beside = [a for a in loads if a.rows.inner[1] == 1 and a.columns.inner[1] != 1]
    return bool(beside) and 2 * len(beside) > len(loads)


def schedules(program: Program) -> tuple[MiddleSchedule, ...]:
    """Best guess first: columns in registers where they fit, and enough threads for every memory channel.

    Where there are rows enough, blocks are wide: of a column they then read kilobytes at a time."""
    widest = _vector(program)
    held = [
        MiddleSchedule(vector, lanes, parts, 0)
        for vector in _halves(widest)
        for lanes, parts in ((128, 1), (64, 4), (32, 8), (32, 16))
        if program.columns % parts == 0 and program.columns // parts * vector * _streams(program) <= REGISTERS
    ]
    many = program.rows >= MANY_BLOCKS * 256 * widest
    streamed = [
        MiddleSchedule(widest, lanes, parts, unroll)
        for lanes, parts, unroll in (WIDE if many else NARROW)
        if parts <= program.columns
    ]
    return (*held[:4], *(streamed or [MiddleSchedule(widest, 128, 1, 1)]))


def touched(program: Program) -> Tensors:
    return tensors_of(program, loads_of(tuple(s.expr for s in program.stores)))


def _streams(program: Program) -> int:
    return sum(1 for a in touched(program).loads if a.per_column)


def _vector(program: Program) -> int:
    vector = widest_vector(program)
    for a in touched(program).views:
        columns = tuple(stride for _, stride in a.columns.pairs)
        if any(a.row_strides):
            vector = vector_width(a.rows, a.offset, columns, vector, closed=True)
    return math.gcd(vector, program.rows)


def _halves(width: int) -> list[int]:
    return [width >> k for k in range(width.bit_length())]
