"""What proposes candidates: asked for the next one, told what became of those before. Recipes and the model alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cutesmith_agent.recipes.contract import Draft
from cutesmith_evaluator.types import Candidate, Finding, Origin


@dataclass(frozen=True)
class Trial:
    """A draft, the verdict on it, and the seconds that took: as they were when it was judged, in a resumed job too."""

    draft: Draft
    candidate: Candidate
    seconds: float = 0.0


@dataclass(frozen=True)
class Step:
    """The next draft. `message` says which it is; `fraction` (0..1) how far the proposer has come."""

    draft: Draft
    message: str
    fraction: float


@dataclass(frozen=True)
class Stop:
    """No more drafts; `reason` follows "after" in a sentence. `failure`: why there are fewer than were wanted."""

    reason: str
    failure: Finding | None = None


class Proposer(Protocol):
    """Asked once per draft; the verdict on its last one is the last of `trials` then."""

    @property
    def origin(self) -> Origin: ...

    def next(self, trials: Sequence[Trial]) -> Step | Stop:
        """`trials` are the job's so far, other proposers' too, in the order they were tried."""
        ...
