"""Counts the calls of what `cute.compile` gives, where a CUDA device runs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.failures import TaskError


@dataclass
class Calls:
    """`made`: functions compiled; `done`: their calls. `other_ways`: one was used otherwise than by calling it."""

    made: int = 0
    done: int = 0
    other_ways: bool = False

    def count(self) -> int | None:
        """None where calls may have been missed, since then nothing can be said of them."""
        return None if self.other_ways or not self.made else self.done


class CountedFunction:
    """Stands for a compiled function, and counts its calls."""

    def __init__(self, made: Any, calls: Calls) -> None:
        self._made = made
        self._calls = calls
        calls.made += 1

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._calls.done += 1
        return self._made(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        self._calls.other_ways = True
        return getattr(self._made, name)


@contextmanager
def counting(calls: Calls) -> Iterator[None]:
    """Inside, what `cute.compile` gives is counted; nothing happens where there is no DSL."""
    try:
        dsl.load()
    except TaskError:
        yield
        return
    with dsl.replaced_compile(lambda original, *args, **kwargs: CountedFunction(original(*args, **kwargs), calls)):
        yield
