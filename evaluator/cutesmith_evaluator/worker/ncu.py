"""Nsight Compute on a candidate's kernels: one call, in a process of its own that ncu starts and watches."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import cutesmith_evaluator
from cutesmith_evaluator.processes import descendants
from cutesmith_evaluator.types import Finding, KernelMeasures, Task
from cutesmith_evaluator.worker.ncu_csv import METRICS, NcuFormatError, by_kernel, launches

TIMEOUT_S = 90.0
_LAUNCHES = 32  # of one call, at most
_CHILD = """
import sys, importlib.util as util
sys.dont_write_bytecode = True
_, folder, task, candidate = sys.argv
spec = util.spec_from_file_location("cutesmith_evaluator", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["cutesmith_evaluator"] = package = util.module_from_spec(spec)
spec.loader.exec_module(package)
from cutesmith_evaluator.worker.ncu_target import run
run(task, candidate)
"""
_NO_PERMISSION = (
    "Nsight Compute may not read the GPU's performance counters (ERR_NVGPUCTRPERM). Let it: put the line `options "
    "nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d and reboot, or start the container "
    "with --cap-add=SYS_ADMIN."
)


@dataclass(frozen=True)
class Measured:
    """What ncu measured, or the finding that says why not."""

    kernels: tuple[KernelMeasures, ...] = ()
    findings: tuple[Finding, ...] = ()


def measure(task: Task, candidate: Path, timeout_s: float = TIMEOUT_S) -> Measured:
    """The candidate's kernels in one call on the task's own inputs, and no others."""
    ncu = shutil.which("ncu")
    if ncu is None:
        message = "Not profiled by Nsight Compute: ncu is not on the PATH."
        return Measured(findings=(Finding("no-ncu", message, severity="information"),))
    with tempfile.TemporaryDirectory(prefix="cutesmith-ncu-") as folder:
        log = Path(folder) / "ncu.csv"
        try:
            said = _run(_command(ncu, log, task, candidate), Path(folder), timeout_s)
        except subprocess.TimeoutExpired:
            return _failed(f"ncu had not ended after {timeout_s:.0f} s and was stopped")
        text = log.read_text(errors="replace") if log.exists() else ""
        return _read(text, said)


def _command(ncu: str, log: Path, task: Task, candidate: Path) -> list[str]:
    package = Path(cutesmith_evaluator.__path__[0])
    told = json.dumps(asdict(task))
    options = ("--csv", "--page", "raw", "--log-file", str(log), "--metrics", ",".join(METRICS))
    only = ("--profile-from-start", "off", "--launch-count", str(_LAUNCHES), "--clock-control", "none")
    return [ncu, *options, *only, sys.executable, "-P", "-c", _CHILD, str(package), told, str(candidate)]


def _run(command: list[str], folder: Path, timeout_s: float) -> str:
    """What ncu and its child print. Raises TimeoutExpired when both have been killed."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, text=True
    )
    try:
        return process.communicate(timeout=timeout_s)[0]
    except subprocess.TimeoutExpired:
        for child in (process.pid, *descendants(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        process.communicate()
        raise


def _read(text: str, said: str) -> Measured:
    """From ncu's log and what was printed beside it."""
    if "ERR_NVGPUCTRPERM" in text + said:
        return Measured(findings=(Finding("ncu-permission", _NO_PERMISSION, severity="warning"),))
    try:
        kernels = by_kernel(launches(text))
    except NcuFormatError as error:
        return _failed(_error_line(text + said) or str(error))
    return Measured(kernels) if kernels else _failed("the call launched no kernel")


def _error_line(text: str) -> str | None:
    """ncu's own first word on what went wrong, or the last line of the child's traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("==ERROR==").strip() for line in lines if line.startswith("==ERROR==")]
    return errors[0] if errors else next((line for line in reversed(lines) if "Error" in line), None)


def _failed(why: str) -> Measured:
    message = f"Nsight Compute gave no figures: {why[:300].rstrip('.')}."
    return Measured(findings=(Finding("ncu-failed", message, severity="warning"),))
