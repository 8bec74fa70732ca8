"""`cutesmith doctor`: what this machine has of what CuteSmith needs, and what to do about the rest."""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import asdict
from pathlib import Path

from cutesmith_agent.store.location import workspace_root
from cutesmith_evaluator.client import Worker, WorkerError
from cutesmith_evaluator.sandbox import sandbox
from cutesmith_evaluator.types import Environment
from cutesmith_server.cli.checkup import Check
from cutesmith_server.cli.checkup_machine import device_checks, disk_check, profiling_check
from cutesmith_server.cli.checkup_model import model_checks
from cutesmith_server.cli.jobs import interpreter
from cutesmith_server.cli.output import console, print_json

_MARKS = {"ok": "[green]ok[/]", "missing": "[red]missing[/]", "limited": "[yellow]limited[/]"}


def doctor(options: argparse.Namespace) -> int:
    """0 kernels can be made and proved here, on the emulated device at least; 3 none can be made."""
    root = workspace_root(Path.cwd() / "any")
    checks = [
        *_worker_checks(interpreter(options)),
        _sandbox_check(),
        *model_checks(root),
        _store_check(root),
        disk_check({root, Path(tempfile.gettempdir())}),
    ]
    if options.json:
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        _show(checks)
    return 3 if any(check.verdict == "missing" for check in checks) else 0


def _worker_checks(python: str) -> list[Check]:
    try:
        with Worker(Path(python)) as worker:
            environment = worker.hello()
    except WorkerError as error:
        return [Check("interpreter", "missing", python, str(error))]
    return [
        Check("interpreter", "ok", f"{python} (Python {environment.python})"),
        *_package_checks(environment, python),
    ]


def _package_checks(environment: Environment, python: str) -> list[Check]:
    return [
        _package("torch", environment.torch, f"{python} -m pip install torch"),
        _package("CuTe DSL", environment.dsl, f"{python} -m pip install nvidia-cutlass-dsl (Linux only)"),
        _package("tvm-ffi", environment.tvm_ffi, f"{python} -m pip install apache-tvm-ffi"),
        *device_checks(environment),
        profiling_check(environment),
    ]


def _package(name: str, version: str | None, install: str) -> Check:
    if version is None:
        return Check(name, "missing", "not installed in that interpreter", f"Run {install}")
    return Check(name, "ok", version)


def _store_check(root: Path) -> Check:
    if os.access(root, os.W_OK):
        return Check("store", "ok", f"{root}/.cutesmith can be written")
    return Check("store", "limited", f"{root} is read-only", "Results are kept in your state folder instead.")


def _sandbox_check() -> Check:
    """bubblewrap, as workers are started in it."""
    found = sandbox()
    if found.is_on:
        return Check("bubblewrap", "ok", f"{found.program}: workers have no network and write to their scratch folder")
    advice = {
        "not installed": "Install bubblewrap (apt install bubblewrap) to confine them.",
        "not allowed to work here": "Allow unprivileged user namespaces to confine them.",
    }.get(found.reason, "Unset it to confine them.")
    what = f"{found.program} is {found.reason}" if found.program else found.reason
    return Check("bubblewrap", "limited", what, f"Workers run without a sandbox: with your rights. {advice}")


def _show(checks: list[Check]) -> None:
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        table.add_row(_MARKS[check.verdict], check.name, check.found)
        if check.advice:
            table.add_row("", "", f"[dim]{check.advice}[/]")
    console().print(table)
