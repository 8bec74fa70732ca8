"""`cutesmith accept`, `reject` and `remove`: the editor's edits, written to disk."""

from __future__ import annotations

import argparse
import sqlite3
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cutesmith_agent.imported import changed_file
from cutesmith_agent.source.edits import EditRefusedError, apply_edits, unified_diff
from cutesmith_agent.source.parsing import encode
from cutesmith_agent.store.location import workspace_root
from cutesmith_agent.subject import candidate_id
from cutesmith_server import wording
from cutesmith_server.changes import Change, accepting, removing, user_elsewhere
from cutesmith_server.cli.output import console, print_json
from cutesmith_server.cli.target import Target, read_target
from cutesmith_server.errors import RefusedError
from cutesmith_server.files import write_atomically
from cutesmith_server.records import STORE_ERRORS, Record, is_ours, read_records, record
from cutesmith_server.report import KernelFile, Report, read_report


@dataclass(frozen=True)
class _Offer:
    """A stored report's kernel, and the class it was proved on."""

    report: Report
    kernel: KernelFile
    candidate: str
    class_hash: str


def accept(options: argparse.Namespace) -> int:
    target = read_target(options.target)
    offer = _offer(target, options.candidate)
    try:
        change = accepting(
            target.path,
            target.outline,
            target.qualname,
            offer.kernel,
            proved=offer.class_hash,
            is_ours=is_ours(target.path, target.qualname),
        )
    except EditRefusedError as refusal:
        raise RefusedError(str(refusal)) from None
    if not options.yes:
        _require_consent(offer)
    patch = write_change(target, change)
    note_decision("accepted", target, candidate=offer.candidate, class_hash=offer.class_hash, kernel=change.kernel)
    status = _finish(options, target, "accepted", patch, change)
    if not options.json:
        console().print(wording.NO_GRAD_NOTE, soft_wrap=True)
    return status


def reject(options: argparse.Namespace) -> int:
    target = read_target(options.target)
    job = _known(target).job_on_offer(has_kernel=target.has_kernel)
    if job is None:
        raise RefusedError(f"There is no kernel for {target.qualname} to reject.")
    if not (job.report.get("best") or job.report.get("reference")):
        raise RefusedError(f"There is no kernel for {target.qualname} to reject: the last run made none.")
    note_decision("rejected", target, candidate=job.report.get("best"), class_hash=job.class_hash)
    what = "reference" if job.report.get("reference") else "kernel"
    return _finish(options, target, "rejected", "", None, what=what)


def remove(options: argparse.Namespace) -> int:
    target = read_target(options.target)
    try:
        ours = is_ours(target.path, target.qualname)
        used = partial(user_elsewhere, target.path, workspace_root(target.path))
        change = removing(target.path, target.outline, target.qualname, user_of=used, is_ours=ours)
    except EditRefusedError as refusal:
        raise RefusedError(str(refusal)) from None
    patch = write_change(target, change)
    note_decision("removed", target)
    return _finish(options, target, "removed", patch, change)


def _known(target: Target) -> Record:
    try:
        return read_records(target.path, [target.qualname]).get(target.qualname, Record())
    except STORE_ERRORS as error:
        raise RefusedError(f"The store of {workspace_root(target.path)} cannot be read: {error}.") from None


def _offer(target: Target, candidate: str | None) -> _Offer:
    job = _known(target).job_on_offer(has_kernel=target.has_kernel)
    if job is None or job.class_hash is None:
        found = target.outline.named(target.qualname)
        raise RefusedError(wording.nothing_to_accept(found, target.qualname, "run cutesmith optimize first"))
    if (changed := changed_file(job.imported)) is not None:
        raise RefusedError(
            f"{changed.name}, which {target.path.name} imports, has changed since the kernel was proved: "
            "generate it again."
        )
    report = read_report(job.report)
    if report.reference is not None:
        how = f"cutesmith optimize {target.path.name}::{target.qualname} --proposer llm shows it and asks"
        raise RefusedError(f"There is no kernel for {target.qualname} yet: its reference waits for approval ({how}).")
    wanted = candidate or report.best
    chosen = next((each for each in report.candidates if each.id == wanted), None)
    if chosen is None or chosen.ok is False or report.kernel is None:
        known = ", ".join(each.id for each in report.candidates if each.ok is not False)
        if not known:
            raise RefusedError(f"There is no kernel for {target.qualname}: {report.stopped}")
        raise RefusedError(f"There is no usable candidate {wanted} for {target.qualname} (usable: {known}).")
    kernel = report.kernel if candidate_id(report.kernel.source) == chosen.id else _other(report.kernel, chosen.path)
    return _Offer(report, kernel, chosen.id, job.class_hash)


def _other(kernel: KernelFile, stored: str | None) -> KernelFile:
    """A candidate that is not the best, from the store, for the same place."""
    try:
        return KernelFile(kernel.path, Path(stored or "").read_text(encoding="utf-8"))
    except OSError as error:
        raise RefusedError(
            f"The stored candidate {stored} cannot be read ({error.strerror}): generate again."
        ) from None


def _require_consent(offer: _Offer) -> None:
    chosen = next(each for each in offer.report.candidates if each.id == offer.candidate)
    if chosen.ok is None:
        doubt = f"This kernel is {wording.headline(chosen)}"
    elif chosen.id != offer.report.best:
        doubt = f"This kernel ({wording.headline(chosen)}) was not proved inside your file, as the best one was"
    else:
        return
    if not sys.stdin.isatty():
        raise RefusedError(f"{doubt}: add --yes to accept it all the same.")
    print(f"{doubt}. Accept it all the same? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise RefusedError("Nothing was changed.")


def write_change(target: Target, change: Change) -> str:
    """Writes the kernel's file, then the module; returns the module's patch. Raises RefusedError, all undone."""
    before = target.outline.source.text
    after = apply_edits(before, change.edits)
    if target.path.read_bytes() != target.data:
        raise RefusedError(f"{target.path} was changed meanwhile: nothing was written, try again.")
    replaced = change.kernel.read_bytes() if change.kernel.exists() else None
    try:
        if change.write is not None:
            write_atomically(change.kernel, change.write.encode())
        write_atomically(target.path, encode(after, target.data))
    except OSError as error:
        _restore(change, replaced)
        raise RefusedError(f"{error.filename or target.path} cannot be written ({error.strerror}).") from None
    if change.delete:
        change.kernel.unlink(missing_ok=True)
    return unified_diff(before, after, target.path.name)


def _restore(change: Change, replaced: bytes | None) -> None:
    if change.write is None:
        return
    if replaced is None:
        change.kernel.unlink(missing_ok=True)
    else:
        write_atomically(change.kernel, replaced)


def note_decision(choice: Any, target: Target, **about: Any) -> None:
    try:
        record(choice, target.path, target.qualname, **about)
    except (sqlite3.Error, OSError) as error:
        print(f"Done, but it could not be written to the store: {error}.", file=sys.stderr)


def _finish(
    options: argparse.Namespace,
    target: Target,
    decision: str,
    patch: str,
    change: Change | None,
    *,
    what: str = "kernel",
) -> int:
    kernel = str(change.kernel) if change else None
    if options.json:
        task = {"file": str(target.path), "class": target.qualname}
        print_json({"task": task, "decision": decision, "kernel": kernel, "patch": patch})
        return 0
    from cutesmith_server.cli.shown import show_patch

    show_patch(patch, console())
    note = _kernel_note(change) if change else ""
    console().print(f"{target.qualname} in {target.path.name}: {what} {decision}{note}.", soft_wrap=True)
    return 0


def _kernel_note(change: Change) -> str:
    if change.write is not None:
        return f" ({change.kernel.name} written)"
    if change.delete:
        return f" ({change.kernel.name} deleted)"
    return f" ({change.kernel.name} left as it is: {change.kept})" if change.kept else ""
