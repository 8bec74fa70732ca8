"""`cutesmith optimize` and `cutesmith check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from cutesmith_agent.job import Job
from cutesmith_agent.llm.settings import Wish
from cutesmith_agent.report import NEEDS_APPROVAL, NO_CANDIDATE
from cutesmith_agent.store.location import workspace_root
from cutesmith_evaluator.types import Task
from cutesmith_server.agent_process import Done
from cutesmith_server.cli.consent import agrees
from cutesmith_server.cli.output import console, print_json
from cutesmith_server.cli.running import run_job
from cutesmith_server.cli.target import Target, read_target
from cutesmith_server.errors import RefusedError


def optimize(options: argparse.Namespace) -> int:
    target = read_target(options.target)
    job = replace(
        job_for("optimize", target, options), proposer=options.proposer, again=options.resume, model=_wish(options)
    )
    done, asked = run_job(job, quiet=options.json, waits=not options.no_wait)
    if asked is not None and agrees(asked, options, workspace_root(target.path)):
        done, _ = run_job(job, quiet=options.json, waits=not options.no_wait)
    if done.exit == NEEDS_APPROVAL:
        return _approved(done, job, target, options)
    return _finish(done, options)


def _approved(done: Done, job: Job, target: Target, options: argparse.Namespace) -> int:
    """Shows the reference; once it is approved and in the file, a kernel is made against it."""
    from cutesmith_server.cli.approving import approves, write_reference
    from cutesmith_server.report import read_report

    report = read_report(done.report)
    assert report.reference is not None
    if not options.json:
        _finish(done, options)
    answer = approves(target, options)
    if answer is None:
        return _finish(done, options) if options.json else done.exit
    if not answer:
        return NO_CANDIDATE
    write_reference(target, report.reference)
    done, _ = run_job(job, quiet=options.json, waits=not options.no_wait)
    return _finish(done, options)


def check(options: argparse.Namespace) -> int:
    if options.all != (options.target is None) or options.all == bool(options.candidates):
        what = "name a class and its kernels (FILE::Class CANDIDATE.py ...), or all accepted ones (--all)"
        raise RefusedError(f"cutesmith check: {what}.", exit=2)
    if options.all:
        from cutesmith_server.cli.checking import check_all

        return check_all(options)
    for candidate in options.candidates:
        if not candidate.is_file():
            raise RefusedError(f"{candidate} is no file: name the kernel to check.", exit=2)
    job = job_for("check", read_target(options.target), options, options.candidates)
    done, _ = run_job(job, quiet=options.json, waits=not options.no_wait)
    return _finish(done, options)


def _wish(options: argparse.Namespace) -> Wish:
    return Wish(
        model=options.model,
        effort=options.effort,
        max_dollars=options.max_dollars,
        max_rounds=options.max_rounds,
        max_minutes=options.max_minutes,
    )


def job_for(
    kind: Literal["optimize", "check"], target: Target, options: argparse.Namespace, candidates: Sequence[Path] = ()
) -> Job:
    """The job that a command's options ask for. `candidates`: of a check."""
    return Job(
        kind=kind,
        task=Task(str(target.path), target.qualname),
        workspace=str(workspace_root(target.path)),
        interpreter=interpreter(options),
        candidates=tuple(str(each.absolute()) for each in candidates),
        archs=tuple(options.arch),
        device=options.device,
        resume=True,
        max_autotune=options.max_autotune,
        allow_lowered=options.allow_lowered_precision,
    )


def interpreter(options: argparse.Namespace) -> str:
    """The Python that workers run in."""
    return str(Path(options.interpreter).expanduser().absolute()) if options.interpreter else sys.executable


def _finish(done: Done, options: argparse.Namespace) -> int:
    if options.json:
        print_json(done.report)
    else:
        from cutesmith_server.cli.shown import show_report
        from cutesmith_server.report import read_report

        show_report(read_report(done.report), console())
    return done.exit
