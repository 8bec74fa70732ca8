"""A job from beginning to end: worker, store, inspection, and a report whatever happens."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from cutesmith_agent.checking import check
from cutesmith_agent.evaluator import Evaluator
from cutesmith_agent.job import Job
from cutesmith_agent.journal import Emit, Journal
from cutesmith_agent.loop import Makers, optimize
from cutesmith_agent.report import Report
from cutesmith_agent.scratch import Mirror
from cutesmith_agent.store.location import workspace_root
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.store import JobKey
from cutesmith_agent.subject import Subject, UnusableError, read_subject
from cutesmith_agent.trial import Bench
from cutesmith_evaluator.errors import WorkerError
from cutesmith_evaluator.temporary import remove_abandoned
from cutesmith_evaluator.types import Environment, Finding

ARCHS = ("sm_90a", "sm_80", "sm_100a")  # where there is no device to ask


def run_job(job: Job, spawn: Callable[[], Evaluator], makers: Makers, emit: Emit) -> Report:
    """Do the job and emit its events, the last ("done") with the report.

    A job that is interrupted (SIGTERM) leaves its verdicts in the store, to be resumed."""
    remove_abandoned()
    try:
        report = _report(job, spawn, makers, emit)
    except sqlite3.Error as error:
        root = workspace_root(job.file)
        message = f"The store of {root} cannot be written ({error}): free it or its disk, and run the job again."
        report = _unusable(job, (Finding("store", message),))
    emit({"event": "done", "report": report.to_json(), "exit": report.exit})
    return report


def _report(job: Job, spawn: Callable[[], Evaluator], makers: Makers, emit: Emit) -> Report:
    try:
        subject = read_subject(job)
    except UnusableError as error:
        return _unusable(job, error.findings)
    opened = open_store(workspace_root(subject.file))
    notices = (Finding("store", opened.notice, severity="information"),) if opened.notice else ()
    with opened.store as store, closing(spawn()) as evaluator:
        id = store.begin_job(_key(job, subject), resume=job.resume)
        try:
            report = _judged(job, subject, evaluator, makers, Journal(emit, store, id))
        except BaseException:
            store.finish_job(id, None)
            raise
        report = replace(report, findings=(*report.findings, *notices))
        store.finish_job(id, report.to_json())
    return report


def _judged(job: Job, subject: Subject, evaluator: Evaluator, makers: Makers, journal: Journal) -> Report:
    environment: Environment | None = None
    try:
        journal.stage("propose", f"starting {job.interpreter}")
        environment = evaluator.hello()
        _require(environment, job)
        with Mirror(subject.root) as mirror:
            task, archs = subject.reference(mirror), _archs(environment, job)
            bench = Bench(evaluator, journal, environment, task, mirror, archs, job.device)
            return _on_bench(job, subject, bench, makers)
    except UnusableError as error:
        return _unusable(job, error.findings, environment)
    except WorkerError as error:
        return _unusable(job, (error.finding,), environment)


def _on_bench(job: Job, subject: Subject, bench: Bench, makers: Makers) -> Report:
    bench.journal.stage("propose", f"inspecting {subject.qualname}")
    inspection = bench.evaluator.inspect(bench.task, on_progress=bench.journal.progress)
    if inspection.graph is None:
        raise UnusableError(*map(bench.mirror.in_users_tree, inspection.findings))
    bench = replace(bench, graph=inspection.graph)
    if job.candidate is not None:
        return check(bench, subject, inspection, Path(job.candidate).absolute())
    return optimize(bench, subject, inspection, makers)


def _archs(environment: Environment, job: Job) -> tuple[str, ...]:
    """The device's own first, then those asked for; without either, the usual ones."""
    own = (environment.arch,) if environment.arch is not None and job.device != "none" else ()
    return tuple(dict.fromkeys((*own, *job.archs))) or ARCHS


def _require(environment: Environment, job: Job) -> None:
    missing = [
        package
        for package, version in (("torch", environment.torch), ("nvidia-cutlass-dsl", environment.dsl))
        if version is None
    ]
    if missing:
        message = (
            f"{job.interpreter} has no {' and no '.join(missing)}: install it there, or choose another interpreter."
        )
        raise UnusableError(Finding("missing-package", message))
    if job.device == "cuda" and environment.device == "none":
        raise UnusableError(Finding("no-device", f"{job.interpreter} sees no CUDA device: use device auto or none."))


def _unusable(job: Job, findings: tuple[Finding, ...], environment: Environment | None = None) -> Report:
    errors = [finding.message for finding in findings if finding.severity == "error"]
    stopped = errors[0] if errors else f"{job.task.qualname} could not be traced."
    return Report(job.task, stopped, environment, findings=findings, unusable=True)


def _key(job: Job, subject: Subject) -> JobKey:
    """All that the job's verdicts depend on, the environment aside: the store compares that by itself."""
    candidate = Path(job.candidate).read_bytes() if job.candidate and Path(job.candidate).is_file() else b""
    parts = (job.kind, str(subject.file), job.task.qualname, subject.bare, job.interpreter, job.device, *job.archs)
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass") + candidate).hexdigest()
    return JobKey(job.kind, str(subject.file), job.task.qualname, digest, subject.class_hash)
