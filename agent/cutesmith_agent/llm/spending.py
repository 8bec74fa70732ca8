"""What a job's calls amounted to."""

from __future__ import annotations

from collections.abc import Sequence

from cutesmith_agent.llm.catalogue import price_source
from cutesmith_agent.llm.port import Usage
from cutesmith_agent.report import ModelUse
from cutesmith_agent.store.calls import Call


def spending(calls: Sequence[Call]) -> ModelUse | None:
    """None where no model was asked."""
    if not calls:
        return None
    total = sum((Usage(**call.reply["usage"]) for call in calls), Usage())
    made = dict.fromkeys(call.candidate for call in calls if call.candidate)
    return ModelUse(
        name=calls[-1].model,
        calls=len(calls),
        uncached=total.uncached,
        cached=total.cache_read,
        output=total.output,
        dollars=_sum(calls),
        prices=price_source(),
        candidates={id: _sum([call for call in calls if call.candidate == id]) for id in made},
    )


def _sum(calls: Sequence[Call]) -> float | None:
    """Unknown as soon as one of them is."""
    costs = [call.dollars for call in calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
