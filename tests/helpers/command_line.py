"""Runs `cutesmith` as a person does: a process of its own, its exit status and what it printed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Root may write anywhere; without these capabilities (dropped before exec) it is bound by permissions as others are.
_WITHOUT_OVERRIDES = """\
import ctypes, os, sys
for capability in (1, 2, 3):  # DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
CUTESMITH = [sys.executable, "-m", "cutesmith_server"]
BOUND_BY_PERMISSIONS = [sys.executable, "-c", _WITHOUT_OVERRIDES]


@dataclass(frozen=True)
class Ended:
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict[str, Any]:
        (line,) = self.stdout.splitlines()
        return json.loads(line)


def cutesmith(
    *words: str | Path, cwd: Path | None = None, stdin: str = "", bound_by_permissions: bool = False
) -> Ended:
    """Runs to the end. No end is a traceback."""
    command = [*(BOUND_BY_PERMISSIONS if bound_by_permissions else []), *CUTESMITH, *map(str, words)]
    run = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, text=True, check=False, timeout=240)
    assert "Traceback" not in run.stdout + run.stderr, run.stderr
    return Ended(run.returncode, run.stdout, run.stderr)
