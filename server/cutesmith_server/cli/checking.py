"""`cutesmith check --all`: every kernel that the project's code hands over to, proved again where something changed."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cutesmith_agent.imported import changed_file
from cutesmith_agent.job import Job
from cutesmith_agent.report import COMPILED_ONLY, NO_CANDIDATE, UNUSABLE_INPUT, USABLE
from cutesmith_agent.store.captures import Capture
from cutesmith_agent.store.location import workspace_root
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.rows import Verdict
from cutesmith_evaluator.types import Candidate, Task
from cutesmith_server import wording
from cutesmith_server.adopted import Adopted, adopted_kernels
from cutesmith_server.cli.jobs import interpreter
from cutesmith_server.cli.output import console, from_here, print_json
from cutesmith_server.cli.running import run_job
from cutesmith_server.drift import content_id
from cutesmith_server.errors import RefusedError
from cutesmith_server.records import STORE_ERRORS, has_store, record, standing
from cutesmith_server.report import read_report
from cutesmith_server.surroundings import Surroundings, drifted, surroundings

_WORST = (NO_CANDIDATE, UNUSABLE_INPUT, COMPILED_ONLY, USABLE)


@dataclass(frozen=True)
class Proof:
    """What became of one kernel. `why`: what had changed since it was last proved, "" where nothing had."""

    file: str
    class_name: str
    kernel: str
    exit: int
    why: str
    said: str


def check_all(options: argparse.Namespace) -> int:
    """The worst of the kernels' statuses: 3, then 2, then 4, then 0."""
    root = workspace_root(Path.cwd() / "any")
    here = surroundings(Path(interpreter(options)))
    proofs = []
    for adopted in adopted_kernels(root):
        proofs.append(_proof(adopted, here, options))
        if not options.json:
            _show(proofs[-1])
    status = next((each for each in _WORST if any(proof.exit == each for proof in proofs)), USABLE)
    if options.json:
        print_json({"kernels": [_as_json(proof) for proof in proofs], "exit": status})
    elif not proofs:
        console().print(f"No class of {root} hands over to a kernel: there is nothing to check.", soft_wrap=True)
    return status


def _proof(adopted: Adopted, here: Surroundings, options: argparse.Namespace) -> Proof:
    present = content_id(adopted.kernel)
    if present is None:
        gone = f"{adopted.kernel.name} is missing, so {adopted.path.name} cannot be imported: restore or remove it."
        return _told(adopted, NO_CANDIDATE, "the kernel's file is gone", gone)
    known, capture = _known(adopted, present)
    why = "asked for" if options.again else _why(adopted, known, capture, here, options.device)
    if not why and known is not None:
        status = USABLE if known.candidate.ok else COMPILED_ONLY
        return _told(adopted, status, "", f"{wording.headline(known.candidate)}; nothing has changed since")
    return _proved(adopted, present, why, options)


def _known(adopted: Adopted, present: str) -> tuple[Verdict | None, Capture | None]:
    """The last verdict on the kernel's file as it is, and what was captured of the class."""
    root = workspace_root(adopted.path)
    if not has_store(root):
        return None, None
    try:
        with open_store(root).store as store:
            verdicts = store.verdicts(present, str(adopted.path), adopted.qualname)
            captures = store.captures.of(str(adopted.path), adopted.qualname)
    except STORE_ERRORS as error:
        raise RefusedError(f"The store of {root} cannot be read: {error}.") from None
    return standing(verdicts), next(iter(captures), None)


def _why(adopted: Adopted, known: Verdict | None, capture: Capture | None, here: Surroundings, device: str) -> str:
    """Why the last verdict does not stand for the kernel as it is now and here; "" where it does."""
    if known is None:
        return "no verdict on this file is known here"
    if known.candidate.ok is False:
        return "it failed when it was last proved"
    if device != "none" and any(finding.kind == "no-device" for finding in known.candidate.findings):
        return "it was never run"
    if known.class_hash != adopted.digest:
        return f"{adopted.qualname} has changed"
    if (changed := changed_file(known.imported)) is not None:
        return f"{from_here(changed)}, which {adopted.path.name} imports, has changed"
    if capture is not None and capture.at > known.ended:
        return "other inputs were captured"
    return drifted(known.environment, here)


def _proved(adopted: Adopted, present: str, why: str, options: argparse.Namespace) -> Proof:
    if not options.json:
        print(f"{from_here(adopted.path)}::{adopted.qualname}: {why}; proving it", file=sys.stderr, flush=True)
    done, _ = run_job(_job(adopted, options), quiet=True, waits=not options.no_wait)
    report = read_report(done.report)
    best = report.best_candidate
    said = wording.headline(best) if best else report.stopped
    if best is not None and best.ok:
        said += _remember(adopted, best, present)
    return _told(adopted, done.exit, why, said)


def _job(adopted: Adopted, options: argparse.Namespace) -> Job:
    return Job(
        kind="check",
        task=Task(str(adopted.path), adopted.qualname),
        workspace=str(workspace_root(adopted.path)),
        interpreter=interpreter(options),
        candidates=(str(adopted.kernel),),
        archs=tuple(options.arch),
        device=options.device,
        resume=True,
        allow_lowered=options.allow_lowered_precision,
    )


def _remember(adopted: Adopted, best: Candidate, present: str) -> str:
    """A kernel that is right for its class as both are now is accepted as such."""
    if best.id != present:
        return ""
    try:
        about: dict[str, Any] = {"candidate": best.id, "class_hash": adopted.digest, "kernel": adopted.kernel}
        record("accepted", adopted.path, adopted.qualname, **about)
    except STORE_ERRORS as error:
        return f" (this could not be written to the store: {error})"
    return ""


def _told(adopted: Adopted, status: int, why: str, said: str) -> Proof:
    return Proof(str(adopted.path), adopted.qualname, str(adopted.kernel), status, why, said)


def _as_json(proof: Proof) -> dict[str, Any]:
    return {"class": proof.class_name, **{name: value for name, value in asdict(proof).items() if name != "class_name"}}


def _show(proof: Proof) -> None:
    words = {USABLE: "right", COMPILED_ONLY: "compiled only", UNUSABLE_INPUT: "not checked"}.get(proof.exit, "FAILED")
    where = f"{from_here(proof.file)}::{proof.class_name}"
    console().print(f"{where}  {words}: {proof.said}", markup=False, soft_wrap=True)
