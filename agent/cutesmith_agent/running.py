"""A job from beginning to end: worker, store, inspection, and a report whatever happens."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from errno import EDQUOT, EFBIG, ENOSPC
from hashlib import sha256
from pathlib import Path

from cutesmith_agent.allowances import allows_lowered, wants_ieee
from cutesmith_agent.archs import USUAL
from cutesmith_agent.captured import captured_calls, inspected
from cutesmith_agent.checking import check, file_digest
from cutesmith_agent.describe.making import Describe, describer
from cutesmith_agent.describe.standing import standing
from cutesmith_agent.evaluator import Evaluator
from cutesmith_agent.imported import hashes
from cutesmith_agent.job import Job
from cutesmith_agent.journal import Emit, Journal
from cutesmith_agent.llm.access import Granted, Models, Withheld, access, editor_access
from cutesmith_agent.llm.spending import spending
from cutesmith_agent.loop import Makers, optimize
from cutesmith_agent.refine.making import refiner
from cutesmith_agent.report import Report
from cutesmith_agent.revalidating import revalidation
from cutesmith_agent.scratch import Mirror
from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.store.location import workspace_root
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.rows import JobKey
from cutesmith_agent.store.store import Store
from cutesmith_agent.subject import Subject, UnusableError, not_written, read_subject
from cutesmith_agent.trial import ALL_ARMS, Bench
from cutesmith_evaluator.errors import WorkerError
from cutesmith_evaluator.temporary import remove_abandoned
from cutesmith_evaluator.types import Environment, Finding


@dataclass(frozen=True)
class Shop:
    """What every job needs, whatever it is about. `models` None: no model is ever asked."""

    spawn: Callable[[], Evaluator]
    makers: Makers
    emit: Emit
    models: Models | None = None
    scrubber: Scrubber = field(default_factory=Scrubber)


def run_job(
    job: Job, spawn: Callable[[], Evaluator], makers: Makers, emit: Emit, models: Models | None = None
) -> Report:
    """Do the job and emit its events, the last ("done") with the report.

    A job that is interrupted (SIGTERM) leaves its verdicts in the store, to be resumed."""
    remove_abandoned()
    shop = Shop(spawn, makers, emit, models)
    try:
        report = _report(job, shop)
    except sqlite3.Error as error:
        root = workspace_root(job.file)
        report = _unusable(job, (Finding("store", _store_words(root, error)),))
    except OSError as error:
        report = _unusable(job, (Finding("file-error", _words(error)),))
    report = report.scrubbed(shop.scrubber)
    emit({"event": "done", "report": report.to_json(), "exit": report.exit})
    return report


def _store_words(root: Path, error: sqlite3.Error) -> str:
    if isinstance(error, sqlite3.DataError):
        return f"The store of {root} cannot be used ({error}): move its .cutesmith away, and run the job again."
    return f"The store of {root} cannot be written ({error}): free it or its disk, and run the job again."


def _words(error: OSError) -> str:
    """What the system refused, in a sentence."""
    what = error.filename or "a file of the job"
    advice = "free the disk" if error.errno in (ENOSPC, EDQUOT, EFBIG) else "see to it"
    return f"{what} cannot be written or read ({error.strerror}): {advice}, and run the job again."


def _report(job: Job, shop: Shop) -> Report:
    try:
        subject = read_subject(job)
    except UnusableError as error:
        return _unusable(job, error.findings)
    opened = open_store(workspace_root(subject.file))
    notices = (Finding("store", opened.notice, severity="information"),) if opened.notice else ()
    with opened.store as store:
        if (stub := subject.unwritten) is not None:
            if job.kind != "optimize" or not stub.description:
                return _unusable(job, (not_written(subject, stub), *notices))
            if (report := standing(store, subject)) is not None:
                return replace(report, findings=notices)
        may = _access(job, subject, store, shop)
        if isinstance(may, Withheld) and job.proposer == "llm":
            return _unusable(job, (may.finding, *notices))
        if stub is not None and not isinstance(may, Granted):
            return _unusable(job, (not_written(subject, stub), *notices))
        with closing(shop.spawn()) as evaluator:
            report = _kept(job, subject, store, evaluator, shop, may)
    return replace(report, findings=(*report.findings, *notices))


def _access(job: Job, subject: Subject, store: Store, shop: Shop) -> Granted | Withheld | None:
    """None where no model is wanted. The question to the user goes out as an event."""
    if shop.models is None or job.kind != "optimize" or job.proposer == "recipes":
        return None
    if job.provider == "editor":
        may = editor_access(job, subject.root, store, shop.models.editor)
    else:
        may = access(job, subject.root, store, shop.models.default_model)
    if isinstance(may, Withheld) and may.question is not None and job.proposer == "llm":
        asked = may.question
        shop.emit(
            {
                "event": "consent",
                "host": asked.host,
                "question": asked.text,
                "by_yes": asked.by_yes,
                "terms": asked.terms,
            }
        )
    return may


def _kept(
    job: Job, subject: Subject, store: Store, evaluator: Evaluator, shop: Shop, may: Granted | Withheld | None
) -> Report:
    """The report of a job that the store knows of, whatever becomes of it."""
    id = store.begin_job(_key(job, subject, store, may), resume=job.resume, finished=job.again)
    journal = Journal(shop.emit, store, id, shop.scrubber)
    makers, describe = shop.makers, None
    if isinstance(may, Granted) and shop.models is not None:
        made = refiner(may, shop.models, shop.scrubber)
        makers = replace(makers, refiner=made, refines=job.proposer == "llm")
        describe = describer(may, shop.models, shop.scrubber)
    try:
        report = _judged(job, subject, evaluator, makers, describe, journal)
    except BaseException:
        with suppress(sqlite3.Error, OSError):  # the disk may be what ended it
            store.finish_job(id, None)
        raise
    if isinstance(may, Withheld) and report.best is None and not report.unusable:
        report = replace(report, findings=(*report.findings, replace(may.finding, severity="information")))
    report = replace(report, model=spending([call for _, call in store.calls.of(id)], store.reservations.of(id)))
    store.finish_job(id, report.scrubbed(shop.scrubber).to_json())
    return report


def _judged(
    job: Job, subject: Subject, evaluator: Evaluator, makers: Makers, describe: Describe | None, journal: Journal
) -> Report:
    environment: Environment | None = None
    try:
        journal.stage("propose", f"starting {job.interpreter}")
        environment = evaluator.hello()
        _require(environment, job)
        with Mirror(subject.root) as mirror:
            task, archs = subject.reference(mirror), _archs(environment, job)
            beside = (*ALL_ARMS, "max-autotune") if job.max_autotune else ALL_ARMS
            bench = Bench(evaluator, journal, environment, task, mirror, archs, job.device, beside)
            bench = replace(bench, lowered_is_fine=allows_lowered(job, subject.root), ieee=wants_ieee(subject.root))
            if subject.unwritten is not None and describe is not None:
                return describe(bench, subject, subject.unwritten)
            return _on_bench(job, subject, bench, makers)
    except UnusableError as error:
        return _unusable(job, error.findings, environment)
    except WorkerError as error:
        return _unusable(job, (error.finding,), environment)


def _on_bench(job: Job, subject: Subject, bench: Bench, makers: Makers) -> Report:
    bench.journal.stage("propose", f"inspecting {subject.qualname}")
    bench, inspection = inspected(replace(bench, captured=captured_calls(bench, subject)))
    if inspection.graph is None:
        raise UnusableError(*map(bench.mirror.in_users_tree, inspection.findings))
    bench = replace(bench, graph=inspection.graph)
    bench.journal.store.note_imported(bench.journal.job, hashes(inspection.imported))
    if job.kind == "check":
        return check(bench, subject, inspection, [Path(each).absolute() for each in job.candidates])
    if job.kind == "revalidate":
        makers = revalidation(Path(job.candidates[0]).absolute(), bench.journal.store, makers.with_header)
    return optimize(bench, subject, inspection, makers)


def _archs(environment: Environment, job: Job) -> tuple[str, ...]:
    """The device's own first, then those asked for; without either, the usual ones."""
    own = (environment.arch,) if environment.arch is not None and job.device != "none" else ()
    return tuple(dict.fromkeys((*own, *job.archs))) or USUAL


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
        raise UnusableError(
            Finding("no-device", f"{job.interpreter} sees no CUDA device: use device auto, emulated or none.")
        )


def _unusable(job: Job, findings: tuple[Finding, ...], environment: Environment | None = None) -> Report:
    errors = [finding.message for finding in findings if finding.severity == "error"]
    stopped = errors[0] if errors else f"{job.task.qualname} could not be traced."
    return Report(job.task, stopped, environment, findings=findings, unusable=True)


def _key(job: Job, subject: Subject, store: Store, may: Granted | Withheld | None) -> JobKey:
    """All that the job's verdicts depend on, the environment aside: the store compares that by itself."""
    parts = (job.kind, str(subject.file), job.task.qualname, subject.bare, job.interpreter, job.device, *job.archs)
    parts += ("lowered",) if allows_lowered(job, subject.root) else ()
    parts += ("ieee",) if wants_ieee(subject.root) else ()
    parts += (job.proposer, may.settings.model) if isinstance(may, Granted) else ()
    parts += ("max-autotune",) if job.max_autotune else ()
    captured = store.captures.of(str(subject.file), subject.qualname)
    parts += tuple(call.text for each in captured for call in each.calls)
    digest = sha256("\0".join(parts).encode("utf-8", "surrogatepass"))
    for candidate in map(Path, job.candidates):
        digest.update(str(candidate).encode("utf-8", "surrogatepass") + b"\0" + file_digest(candidate))
    return JobKey(job.kind, str(subject.file), job.task.qualname, digest.hexdigest(), subject.class_hash)
