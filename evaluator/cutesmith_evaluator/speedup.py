"""What may be claimed from a timing: ratios of medians, where they stand out of the noise."""

from __future__ import annotations

from cutesmith_evaluator.types import Arm, Speedup, Timing


def speedup(timing: Timing) -> Speedup:
    """Each arm's median over the candidate's. None: not measured, or the difference is within the noise."""
    arms = {arm.name: arm for arm in timing.arms}
    candidate = arms.get("candidate")
    if candidate is None:
        return Speedup(None, None)
    return Speedup(
        _ratio(candidate, arms.get("eager"), timing.noise), _ratio(candidate, arms.get("compile"), timing.noise)
    )


def _ratio(candidate: Arm, other: Arm | None, noise: float) -> float | None:
    if other is None:
        return None
    ratio = other.median_ms / candidate.median_ms
    apart = candidate.high_ms < other.low_ms or other.high_ms < candidate.low_ms
    return ratio if apart and abs(ratio - 1) > noise else None
