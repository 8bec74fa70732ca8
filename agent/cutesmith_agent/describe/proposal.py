"""A reference that a model wrote for a described forward, as it is shown to the user for approval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Proposal:
    """`source`: the whole method `def forward(...)`; `patch`: what approving changes in the file, as a unified diff.

    `checks`: the source of the checks, written from the description alone; `agreed`: the names of those, each of which
    holds of the reference and tells it from a wrong one."""

    source: str
    patch: str
    checks: str
    agreed: tuple[str, ...]
    summary: str = ""
