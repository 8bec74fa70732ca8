"""A reference that waits for the user's word, from an earlier job: it is shown again and no model is asked anew."""

from __future__ import annotations

from cutesmith_agent.describe.proposal import Proposal
from cutesmith_agent.report import Report
from cutesmith_agent.store.location import file_key
from cutesmith_agent.store.store import Store
from cutesmith_agent.subject import Subject
from cutesmith_evaluator.wire import converter


def standing(store: Store, subject: Subject) -> Report | None:
    """None where the last job made none, the class or its description is another now, or the user turned it down."""
    last = store.latest(str(subject.file), subject.qualname)
    if last is None or last.class_hash != subject.class_hash or not last.report.get("reference"):
        return None
    decided = [one for one in store.decisions(str(subject.file)) if one.qualname == subject.qualname]
    if any(one.at >= last.ended for one in decided) or file_key(last.report["task"]["file"]) != file_key(subject.file):
        return None
    reference = converter().structure(last.report["reference"], Proposal)
    return Report(subject.task, last.report["stopped"], reference=reference)
