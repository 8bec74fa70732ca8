"""What differs between the tensor cores that compute a product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Schedule(Protocol):
    """How an engine cuts a product into pieces."""

    @property
    def k(self) -> int: ...

    @property
    def splits(self) -> int: ...

    def constants(self) -> tuple[tuple[str, int, str], ...]: ...


@dataclass(frozen=True)
class Engine:
    """Text of a candidate file for one kind of tensor cores; `{finish}` stands for what becomes of a tile."""

    imports: str
    kernel: str
    helpers: str
    host: str
    whole_stages: bool  # it reads lines of parts up to the end of a stage
    least: tuple[int, int]  # compute capability
