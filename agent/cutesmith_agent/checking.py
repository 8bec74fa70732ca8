"""A kernel that a person wrote, judged against its module as a generated one is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cutesmith_agent.report import Report
from cutesmith_agent.subject import Subject, UnusableError, candidate_id
from cutesmith_agent.trial import EMULATED, NO_VERDICT, Bench
from cutesmith_evaluator.types import Candidate, Finding, Inspection


def check(bench: Bench, subject: Subject, inspection: Inspection, kernel: Path) -> Report:
    """Raises UnusableError when the kernel's file cannot be read."""
    source = _read(kernel)
    journal = bench.journal
    candidate = Candidate(candidate_id(source), "user", "propose", None, path=str(kernel))
    measure = (bench.measure,) if bench.has_device else ()
    candidate = bench.run(candidate, bench.guards, bench.compile, bench.validate, *measure, bench.confirm)
    candidate = bench.profile(candidate) if candidate.ok and bench.has_device else candidate
    copy = journal.store.save_source(journal.job, candidate.id, kernel.stem, source)
    journal.judged(replace(candidate, path=str(copy)), bench.environment)
    return Report(
        subject.task,
        _stopped(candidate, kernel),
        bench.environment,
        bench.archs[0],
        inspection.graph,
        (candidate,),
        None if candidate.ok is False else candidate.id,
        tuple(map(bench.mirror.in_users_tree, inspection.findings)),
    )


def _stopped(candidate: Candidate, kernel: Path) -> str:
    if candidate.ok is False:
        errors = [finding.message for finding in candidate.findings if finding.severity == "error"]
        return f"{kernel.name} failed at {candidate.stage}" + (f": {errors[0]}" if errors else ".")
    if any(finding.kind == "needs-device" for finding in candidate.findings) and candidate.ok is None:
        return f"{kernel.name} was neither compiled nor validated: it compiles only with a device, and there is none."
    if candidate.ok is None:
        why = next((finding.message for finding in candidate.findings if finding.kind in NO_VERDICT), "no device.")
        return f"{kernel.name} compiles; it was not validated: {why}"
    if candidate.device == EMULATED:
        return f"{kernel.name} is right on the emulated device, not timed."
    return f"{kernel.name} was validated{' and timed' if candidate.timing else ', not timed'}."


def _read(kernel: Path) -> str:
    try:
        return kernel.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"{kernel} cannot be read ({reason}); name a Python file that holds the kernel."
        raise UnusableError(Finding("unreadable-file", message, None, str(kernel))) from error
