"""What a job's calls amounted to."""

from __future__ import annotations

from collections.abc import Sequence

from cutesmith_agent.llm.catalogue import price_source
from cutesmith_agent.llm.port import Usage
from cutesmith_agent.report import ModelUse
from cutesmith_agent.store.calls import Call
from cutesmith_agent.store.reservations import Reservation


def spending(calls: Sequence[Call], unsettled: Sequence[Reservation] = ()) -> ModelUse | None:
    """Of calls that ended, and of those that did not, with the most they may have cost. None where no model was
    asked."""
    if not calls and not unsettled:
        return None
    usages = (*(call.reply["usage"] for call in calls), *(one.usage for one in unsettled))
    total = sum((Usage(**usage) for usage in usages), Usage())
    made = dict.fromkeys(call.candidate for call in calls if call.candidate)
    return ModelUse(
        name=[*unsettled, *calls][-1].model,
        calls=len(calls) + len(unsettled),
        uncached=total.uncached,
        cached=total.cache_read,
        output=total.output,
        dollars=_sum((*calls, *unsettled)),
        prices=price_source(),
        candidates={id: _sum([call for call in calls if call.candidate == id]) for id in made},
        unsettled=len(unsettled),
    )


def _sum(calls: Sequence[Call | Reservation]) -> float | None:
    """Unknown as soon as one of them is."""
    costs = [call.dollars for call in calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
