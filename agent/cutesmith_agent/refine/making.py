"""A refiner for a job: its briefing, its budget, its ledger."""

from __future__ import annotations

import time
from collections.abc import Callable

from cutesmith_agent.llm.access import Granted, Models
from cutesmith_agent.llm.budget import Budget
from cutesmith_agent.llm.catalogue import known
from cutesmith_agent.llm.ledger import Ledger
from cutesmith_agent.loop import MakeRefiner
from cutesmith_agent.proposing import Proposer
from cutesmith_agent.refine.asking import Asker
from cutesmith_agent.refine.briefing import Briefing
from cutesmith_agent.refine.proposer import Refiner
from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.source.excerpt import excerpt
from cutesmith_agent.store.trials import Told
from cutesmith_agent.subject import Subject
from cutesmith_agent.trial import Bench
from cutesmith_evaluator.types import Candidate, Inspection


def refiner(granted: Granted, models: Models, scrubber: Scrubber) -> MakeRefiner:
    """What the loop makes its refiner with, once it knows the bench and the graph."""

    def make(bench: Bench, subject: Subject, inspection: Inspection) -> Proposer:
        assert inspection.graph is not None
        source = excerpt(subject.bare, subject.qualname)
        briefing = Briefing(subject.qualname, source, inspection.graph, bench.archs, bench.environment, subject.root)
        made = asker(granted, models, scrubber, bench)
        profiled = _profiler(bench, made.ledger.budget)
        return Refiner(made, briefing, granted.settings.max_rounds, bench.has_device, profiled)

    return make


def _profiler(bench: Bench, budget: Budget) -> Callable[[Candidate], Candidate]:
    """What gives a candidate its profile: measured once in a job, and kept, so that a prompt with it recurs."""
    shown: dict[str, Candidate] = {}
    journal = bench.journal

    def profiled(candidate: Candidate) -> Candidate:
        if candidate.id not in shown:
            told = journal.store.trials.profile(journal.job, candidate.id, bench.environment)
            if told is None:
                began = time.monotonic()
                seen = bench.profile(candidate)
                told = Told(seen, time.monotonic() - began)
                journal.profiled(told)
            budget.took(told.seconds)
            shown[candidate.id] = told.candidate
        return shown[candidate.id]

    return profiled


def asker(granted: Granted, models: Models, scrubber: Scrubber, bench: Bench) -> Asker:
    """A job's access to its model, within the job's bounds."""
    entry = known(granted.settings.model)
    budget = Budget(granted.settings, entry.price if entry else None)
    ledger = Ledger(models.connect(granted), budget, bench.journal.store, bench.journal.job, scrubber)
    return Asker(ledger, bench.journal.progress, {})
