"""A kernel of an earlier job, proved against its class as it is now: one draft, judged and offered like a new one."""

from __future__ import annotations

from pathlib import Path

from cutesmith_agent.checking import read_kernel
from cutesmith_agent.finalise import HeaderWriter
from cutesmith_agent.loop import Makers
from cutesmith_agent.recipes.contract import Draft, Proposal, Target
from cutesmith_agent.store.store import Store
from cutesmith_agent.subject import candidate_id
from cutesmith_evaluator.types import Inspection


def revalidation(kernel: Path, store: Store, with_header: HeaderWriter) -> Makers:
    """What proposes that kernel and nothing else. Raises UnusableError where its file cannot be read."""
    source = read_kernel(kernel)
    known = store.known(candidate_id(source))
    draft = Draft(source, known.schedule if known else {}, "the kernel as it was")

    def propose(inspection: Inspection, target: Target) -> Proposal:
        return Proposal((draft,), ())

    return Makers(propose, with_header, origin=known.origin if known else "user")
