"""Kernels that a person wrote, judged against their module as generated ones are, one after the other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from cutesmith_agent.captured import validate_captured
from cutesmith_agent.guards import SOURCE_LIMIT, too_long
from cutesmith_agent.report import Report
from cutesmith_agent.subject import Subject, UnusableError, candidate_id
from cutesmith_agent.trial import EMULATED, NO_VERDICT, Bench
from cutesmith_agent.tuning import ranking
from cutesmith_agent.verdicts import failed
from cutesmith_evaluator.types import Candidate, Finding, Inspection


def check(bench: Bench, subject: Subject, inspection: Inspection, kernels: Sequence[Path]) -> Report:
    """Raises UnusableError where there is one kernel and its file cannot be read; of several it fails alone."""
    known = {one.id: one for one in bench.journal.store.candidates(bench.journal.job, bench.environment)}
    candidates: list[Candidate] = []
    for number, kernel in enumerate(kernels):
        bench.journal.fraction = number / len(kernels)
        try:
            candidates.append(_judged(bench, kernel, known))
        except UnusableError as error:
            if len(kernels) == 1:
                raise
            candidates.append(_unread(bench, kernel, error.findings))
    return Report(
        subject.task,
        _stopped(bench, candidates, kernels),
        bench.environment,
        bench.archs[0],
        inspection.graph,
        tuple(candidates),
        _best(candidates),
        tuple(map(bench.mirror.in_users_tree, inspection.findings)),
    )


def file_digest(kernel: Path) -> bytes:
    """Of a kernel's file as it is; b"" where it cannot be read."""
    try:
        with kernel.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b""


def _judged(bench: Bench, kernel: Path, known: dict[str, Candidate]) -> Candidate:
    """The verdict on one: the stored one of a job that is resumed, or a new one."""
    source = read_kernel(kernel)
    journal, id = bench.journal, candidate_id(source)
    if id in known:
        journal.repeat(known[id])
        return replace(known[id], path=str(kernel))
    candidate = Candidate(id, "user", "propose", None, path=str(kernel))
    measure = (bench.measure,) if bench.has_device else ()
    last = (bench.confirm, partial(validate_captured, bench))
    candidate = bench.run(candidate, bench.guards, bench.compile, bench.validate, *measure, *last)
    candidate = bench.profile(candidate) if candidate.ok and bench.has_device else candidate
    copy = journal.store.save_source(journal.job, candidate.id, kernel.stem, source)
    journal.judged(replace(candidate, path=str(copy)), bench.environment)
    return candidate


def _unread(bench: Bench, kernel: Path, findings: tuple[Finding, ...]) -> Candidate:
    """One of several whose file is none; there is no source to keep, so it is known by its name."""
    unread = Candidate(candidate_id(str(kernel)), "user", "propose", None, path=str(kernel))
    candidate = failed(unread, "propose", *findings)
    copy = bench.journal.store.save_source(bench.journal.job, candidate.id, kernel.stem, "")
    bench.journal.judged(replace(candidate, path=str(copy)), bench.environment)
    return candidate


def _best(candidates: Sequence[Candidate]) -> str | None:
    """The fastest of the right ones; untimed, the first that is right, or else that was not found wrong."""
    fastest = [candidates[index].id for index in ranking(dict(enumerate(candidates)))]
    right = [one.id for one in candidates if one.ok]
    unknown = [one.id for one in candidates if one.ok is None]
    return next(iter([*fastest, *right, *unknown]), None)


def _stopped(bench: Bench, candidates: Sequence[Candidate], kernels: Sequence[Path]) -> str:
    if len(candidates) == 1:
        return _became(bench, candidates[0], kernels[0])
    right, wrong = (sum(one.ok is ok for one in candidates) for ok in (True, False))
    unknown = len(candidates) - right - wrong
    return f"Of {len(candidates)} kernels {right} are right, {wrong} failed and {unknown} were not validated."


def _became(bench: Bench, candidate: Candidate, kernel: Path) -> str:
    if candidate.ok is False:
        errors = [finding.message for finding in candidate.findings if finding.severity == "error"]
        return f"{kernel.name} failed at {candidate.stage}" + (f": {errors[0]}" if errors else ".")
    if any(finding.kind == "needs-device" for finding in candidate.findings) and candidate.ok is None:
        return f"{kernel.name} was neither compiled nor validated: it compiles only with a device, and there is none."
    if candidate.ok is None:
        none = "no device was to be used (device none)." if bench.device == "none" else "no device."
        why = next((finding.message for finding in candidate.findings if finding.kind in NO_VERDICT), none)
        return f"{kernel.name} compiles; it was not validated: {why}"
    if candidate.device == EMULATED:
        return f"{kernel.name} is right on the emulated device, not timed."
    return f"{kernel.name} was validated{' and timed' if candidate.timing else ', not timed'}."


def read_kernel(kernel: Path) -> str:
    """Raises UnusableError."""
    try:
        if kernel.stat().st_size > SOURCE_LIMIT:
            raise UnusableError(too_long(kernel, kernel.stat().st_size))
        return kernel.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        message = f"{kernel} cannot be read ({reason}); name a Python file that holds the kernel."
        raise UnusableError(Finding("unreadable-file", message, None, str(kernel))) from error
