"""What a worker answers to `probe`: a forward held against checks that were written apart from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cutesmith_evaluator.types import Finding


@dataclass(frozen=True)
class CheckResult:
    """One check of a reference. "raised": the reference itself did; "broken": the check's own code is at fault.

    `caught`: the planted wrong references that it tells from the right one, in words."""

    name: str
    outcome: Literal["agrees", "disagrees", "raised", "broken"]
    message: str = ""
    caught: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probing:
    """How a class is built and called, and how its forward fares under checks that were written apart from it.

    `uncaught`: planted wrong references that every check lets pass, though they differ from the reference."""

    inputs: tuple[str, ...] = ()  # of forward: "x: float32[8, 128]", "scale = 2.0"
    state: tuple[str, ...] = ()  # "weight: float32[128]"
    checks: tuple[CheckResult, ...] = ()
    uncaught: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
