"""Whether two arms ran on the same device in the same state."""

from __future__ import annotations

from cutesmith_evaluator.types import Conditions

CLOCK_TOLERANCE = 0.015  # two steps of 15 MHz at 1980 MHz


def difference(one: Conditions | None, other: Conditions | None) -> str | None:
    """What differed so much that times under the two cannot be compared, in words; None: nothing that is known."""
    if one is None or other is None:
        return None
    if one.throttled != other.throttled:
        return f"{_held_back(one)} in one and {_held_back(other)} in the other"
    for what, mine, its in (
        ("multiprocessors", one.sm_mhz, other.sm_mhz),
        ("memory", one.memory_mhz, other.memory_mhz),
    ):
        if mine and its and abs(mine - its) > CLOCK_TOLERANCE * max(mine, its):
            return f"the {what} ran at {mine:.0f} MHz in one and {its:.0f} MHz in the other"
    return None


def _held_back(conditions: Conditions) -> str:
    return f"clocks held back ({', '.join(conditions.throttled)})" if conditions.throttled else "clocks not held back"
