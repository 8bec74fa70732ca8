"""`cutesmith status`: what is known of a file's modules, or of all modules of this project with a job or decision."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cutesmith_agent.imported import changed_file
from cutesmith_agent.store.location import real_path, workspace_root
from cutesmith_agent.store.rows import FinishedJob
from cutesmith_server import wording
from cutesmith_server.cli.output import console, from_here, print_json
from cutesmith_server.cli.target import read_file
from cutesmith_server.drift import drift_of
from cutesmith_server.errors import RefusedError
from cutesmith_server.jobs import ClassKey
from cutesmith_server.outlines import Outline
from cutesmith_server.records import STORE_ERRORS, Record, known_files, read_records
from cutesmith_server.report import ReportError, read_report
from cutesmith_server.surroundings import surroundings
from cutesmith_server.wording import captured


@dataclass(frozen=True)
class ClassStatus:
    """One class. `state` is as in the editor; `note` is one sentence or ""."""

    file: str
    class_name: str
    state: str
    note: str = ""
    candidate: str | None = None


def status(options: argparse.Namespace) -> int:
    found = _of_file(real_path(options.file)) if options.file else list(_of_project())
    if options.json:
        print_json({"classes": [{"class": each.class_name, **_without_name(each)} for each in found]})
        return 0
    if not found:
        where = "This file has no nn.Module with a forward." if options.file else "No kernel was made in this project."
        console().print(where)
    for each in found:
        _show(each)
    if any(each.state == "accepted" for each in found):
        console().print(wording.NO_GRAD_NOTE)
    return 0


def _of_project() -> Iterator[ClassStatus]:
    """What there is something to say of. A file that cannot be read is told of and hides no other."""
    root = workspace_root(Path.cwd() / "any")
    try:
        files = [path for path in known_files(root) if path.exists()]
    except STORE_ERRORS as error:
        raise RefusedError(f"The store of {root} cannot be read: {error}.") from None
    for path in files:
        try:
            yield from (each for each in _of_file(path) if (each.state, each.note) != ("idle", ""))
        except RefusedError as refusal:
            print(refusal, file=sys.stderr)


def _of_file(path: Path) -> list[ClassStatus]:
    _, outline = read_file(path)
    names = list(dict.fromkeys(found.qualname for found in outline.classes if found.forward is not None))
    try:
        records = read_records(path, names)
    except STORE_ERRORS as error:
        raise RefusedError(f"The store of {workspace_root(path)} cannot be read: {error}.") from None
    return [_of_class(ClassKey(path, name), outline, records.get(name, Record())) for name in names]


def _of_class(key: ClassKey, outline: Outline, record: Record) -> ClassStatus:
    file, name, digest, found = str(key.path), key.qualname, outline.digest(key.qualname), outline.named(key.qualname)
    job = record.job_on_offer(has_kernel=found is not None and found.has_kernel)
    if job is not None:
        return _of_job(key, digest, job)
    if found is not None and found.has_kernel:
        candidate = record.accepted.candidate if record.accepted else None
        drift = drift_of(key, found, record.accepted, digest) or record.imports_changed
        drift = drift or record.moved(surroundings(Path(sys.executable)))
        return ClassStatus(file, name, "accepted", drift, candidate)
    notes = [f"last decision: {record.decision.decision}"] if record.decision else []
    return ClassStatus(file, name, "idle", ", ".join([*notes, *([captured(record.capture)] if record.capture else [])]))


def _of_job(key: ClassKey, digest: str | None, job: FinishedJob) -> ClassStatus:
    file, name, proved = str(key.path), key.qualname, job.class_hash
    try:
        report = read_report(job.report)
    except ReportError as error:
        return ClassStatus(file, name, "failed", str(error))
    if report.reference is not None:
        waits = ClassStatus(file, name, "reference", report.stopped)
        return waits if digest == proved else ClassStatus(file, name, "idle")
    best = report.best_candidate
    if best is None or best.ok is False:
        return ClassStatus(file, name, "failed", report.stopped)
    if digest != proved:
        return ClassStatus(file, name, "stale", f"{name} has changed since its kernel was proved", best.id)
    if (changed := changed_file(job.imported)) is not None:
        return ClassStatus(file, name, "stale", f"{changed.name} has changed since the kernel was proved", best.id)
    return ClassStatus(file, name, "compiled" if best.ok is None else "ready", wording.headline(best), best.id)


def _without_name(status: ClassStatus) -> dict[str, str | None]:
    return {name: value for name, value in asdict(status).items() if name != "class_name"}


def _show(status: ClassStatus) -> None:
    note = f": {status.note}" if status.note else ""
    candidate = f" [{status.candidate}]" if status.candidate else ""
    line = f"{from_here(status.file)}::{status.class_name}  {status.state}{candidate}{note}"
    console().print(line, markup=False, soft_wrap=True)
