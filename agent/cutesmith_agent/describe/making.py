"""A described class from beginning to end: what the loop does where there is no forward to prove a kernel against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cutesmith_agent.describe.course import Agreement, Course
from cutesmith_agent.describe.proposal import Proposal
from cutesmith_agent.describe.wording import Described
from cutesmith_agent.llm.access import Granted, Models
from cutesmith_agent.refine.asking import StoppedError
from cutesmith_agent.refine.making import asker
from cutesmith_agent.report import Report
from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.source.edits import apply_edits, unified_diff
from cutesmith_agent.source.excerpt import excerpt
from cutesmith_agent.source.unwritten import Unwritten, write_forward
from cutesmith_agent.subject import Subject, UnusableError
from cutesmith_agent.trial import Bench

Describe = Callable[[Bench, Subject, Unwritten], Report]


def describer(granted: Granted, models: Models, scrubber: Scrubber) -> Describe:
    """What makes a reference for a class whose forward is not written."""

    def describe(bench: Bench, subject: Subject, unwritten: Unwritten) -> Report:
        interface = bench.evaluator.probe(bench.task, on_progress=bench.journal.progress)
        if interface.findings:
            raise UnusableError(*map(bench.mirror.in_users_tree, interface.findings))
        described = Described(subject.qualname, excerpt(subject.bare, subject.qualname), unwritten, interface)
        course = Course(asker(granted, models, scrubber, bench), bench, subject, described)
        base = Report(subject.task, "", bench.environment, bench.archs[0])
        try:
            return _agreed(base, subject, course.agreed())
        except StoppedError as stopped:
            return _stopped(base, stopped)

    return describe


def _agreed(base: Report, subject: Subject, made: Agreement) -> Report:
    edits = write_forward(subject.bare, subject.qualname, made.method.source)
    path = subject.file.relative_to(subject.root).as_posix()
    names = tuple(one.name for one in made.results)
    proposal = Proposal(
        source=made.method.source,
        patch=unified_diff(subject.text, apply_edits(subject.bare, edits), path),
        checks=made.checks.source,
        agreed=names,
        summary=" ".join(made.method.summary.split())[:200],
    )
    checks = f"{len(names)} checks that were" if len(names) != 1 else "the one check that was"
    stopped = (
        f"A reference for {subject.qualname} was written from its description and agrees with {checks} written apart "
        "from it: read it and approve it, then a kernel is made against it."
    )
    return replace(base, stopped=stopped, graph=made.inspection.graph, reference=proposal)


def _stopped(base: Report, stopped: StoppedError) -> Report:
    if stopped.finding is None:
        return replace(base, stopped=f"No reference: stopped after {stopped}.")
    finding = replace(stopped.finding, severity="error")
    return replace(base, stopped=finding.message, findings=(finding,))
