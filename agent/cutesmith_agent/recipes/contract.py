"""What a proposer is asked and what it answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

from cutesmith_evaluator.types import Finding


@dataclass(frozen=True)
class Target:
    """The class a kernel is written for."""

    class_name: str  # qualified: "Outer.Inner"
    module_file: Path
    arch: str  # "sm_90a"
    ieee: bool = False  # fp32 products in fp32 arithmetic, never through parts of a narrower type


@dataclass(frozen=True)
class Draft:
    """A candidate's source, before anything was proved."""

    source: str
    schedule: dict[str, int] = field(default_factory=dict)
    title: str = ""


def kinds_in_turn(drafts: Iterable[Draft], most: int) -> tuple[Draft, ...]:
    """The best guesses of each kind of kernel in turn; the parameters of their schedules tell kinds apart."""
    kinds: dict[frozenset[str], list[Draft]] = {}
    for draft in drafts:
        kinds.setdefault(frozenset(draft.schedule), []).append(draft)
    in_turn = (draft for row in zip_longest(*kinds.values()) for draft in row if draft is not None)
    return tuple(islice(in_turn, most))


@dataclass(frozen=True)
class Proposal:
    """Drafts, best guess first; or none, and `findings` says what stopped the recipes."""

    drafts: tuple[Draft, ...] = ()
    findings: tuple[Finding, ...] = ()


class Unsupported(Exception):  # noqa: N818 - an answer, not a failure
    """No recipe covers the graph. `str()` is a sentence that names the op."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line
