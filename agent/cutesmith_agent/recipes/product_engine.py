"""What differs between the tensor cores that compute a product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .triangles import Triangle


class Schedule(Protocol):
    """How an engine cuts a product into pieces."""

    @property
    def k(self) -> int: ...

    @property
    def splits(self) -> int: ...

    def constants(self) -> tuple[tuple[str, int, str], ...]: ...


@dataclass(frozen=True)
class Sums:
    """How a tile is summed up: what it needs besides, the loop over the depth, and the function that it calls."""

    states: str
    loop: str
    helpers: str


@dataclass(frozen=True)
class Engine:
    """Text of a candidate file for one kind of tensor cores; in the kernel, `{sums}` stands for how a tile is summed
    up and `{finish}` for what becomes of it."""

    imports: str
    kernel: str
    split: Sums  # of two parts of each factor
    half: Sums  # of factors in half precision
    helpers: str
    host: str
    tile: str  # the function that finishes a tile,
    once_more: str  # its end where a line of a split factor has Inf or NaN,
    through: str  # and what it needs beside the sums
    run: int  # neighbouring results that a thread has at a time, at most
    whole_stages: bool  # it reads lines of parts, contiguous in depth, up to the end of a stage
    least: tuple[int, int]  # compute capability
    upper: str  # statements that leave out what a tile without a part of the upper triangle would sum,
    lower: str  # or of the lower one
    memory: str = ""  # what the kernel allocates in shared memory besides
    fed: tuple[str, str] = ("left_stages", "right_stages")  # from where tensor cores take both factors
    is_direct: bool = False  # it reads fp32 factors as they are

    def skip(self, triangle: Triangle) -> str:
        return self.upper if triangle.kind == "upper" else self.lower


def placed(text: str, mark: str, block: str) -> str:
    """`text` with the lines of `block`, which may be none, where the mark stands, as far in as it is."""
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        inner = block.strip("\n").split("\n") if block else []
        lines += [f"{indent}{x}" if x else x for x in inner] if line.strip() == mark else [line]
    return "\n".join(lines)
