"""What may be claimed from a timing: paired ratios, where they stand out of the noise."""

from __future__ import annotations

from cutesmith_evaluator.conditions import difference
from cutesmith_evaluator.types import ArmName, Ratio, Speedup, Timing


def speedup(timing: Timing) -> Speedup:
    """Each arm's time over the candidate's. None: not measured, within the noise, or under other conditions."""
    return Speedup(_claimed(timing, "eager"), _claimed(timing, "compile"), _claimed(timing, "max-autotune"))


def stands_out(ratio: Ratio, noise: float) -> bool:
    """Whether its interval leaves out 1, and it is farther from 1 than eager's duplicate may be from eager."""
    return not ratio.low <= 1 <= ratio.high and abs(ratio.ratio - 1) > noise


def _claimed(timing: Timing, name: ArmName) -> float | None:
    found = next((each for each in timing.ratios if (each.arm, each.base) == (name, "candidate")), None)
    if found is None or not stands_out(found, timing.noise):
        return None
    conditions = {arm.name: arm.conditions for arm in timing.arms}
    is_fair = difference(conditions.get("candidate"), conditions.get(name)) is None
    return found.ratio if is_fair else None
