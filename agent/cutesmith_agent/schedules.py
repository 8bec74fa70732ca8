"""The recipes as a proposer: one draft per schedule, the next one chosen by what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutesmith_agent.proposing import Step, Stop, Trial
from cutesmith_agent.recipes.contract import Draft
from cutesmith_agent.tuning import next_draft, why_stop
from cutesmith_evaluator.types import Origin


@dataclass
class Schedules:
    """Drafts that differ in their schedule, best guess first. A job that goes on counts the time it took before."""

    drafts: Sequence[Draft]
    origin: Origin = "recipe"

    def next(self, trials: Sequence[Trial]) -> Step | Stop:
        number = {draft.source: index for index, draft in enumerate(self.drafts)}
        tried = {number[trial.draft.source]: trial.candidate for trial in trials if trial.draft.source in number}
        seconds = sum(trial.seconds for trial in trials if trial.draft.source in number)
        why = why_stop(self.drafts, tried, seconds) if tried else None
        index = next_draft(self.drafts, tried)
        if why is not None or index is None:
            return Stop(f"{len(tried)} of {len(self.drafts)} schedules, {why}")
        draft = self.drafts[index]
        message = f"draft {len(tried) + 1} of up to {len(self.drafts)}: {words(draft)}"
        return Step(draft, message, len(tried) / len(self.drafts))


def words(draft: Draft) -> str:
    """The schedule as a person reads it."""
    return ", ".join(f"{name} {value}" for name, value in draft.schedule.items()) or draft.title or "one schedule"
