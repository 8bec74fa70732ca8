"""bubblewrap around a worker: no network, nothing to write to but its scratch folder, no other processes in sight.

CUTESMITH_SANDBOX=0 starts workers without it. Where the program is missing or not allowed to work, they start without
it too, and `cutesmith doctor` says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SETTING = "CUTESMITH_SANDBOX"
_DEVICES = ("nvidia*", "nvidia-caps", "dri", "dxg")  # under /dev, where a GPU is; dxg: under WSL
_CACHES = {  # folders that torch, Triton, CUDA and the DSL write to, by the variables that move them
    "TMPDIR": "tmp",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "CUTE_DSL_CACHE_DIR": "cute",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
}
_TRIAL = """
import ctypes, glob, os, socket
assert not glob.glob("/dev/nvidiactl") or ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
"""
_TRIAL_S = 30.0


@dataclass(frozen=True)
class Sandbox:
    """`options`: bwrap's, but for the scratch folder; empty where there is no sandbox, and `reason` says why."""

    program: str
    options: tuple[str, ...]
    reason: str = ""

    @property
    def is_on(self) -> bool:
        return bool(self.options)

    @property
    def has_processes(self) -> bool:
        """Whether it has a first process of its own, besides the program."""
        return "--unshare-pid" in self.options

    def around(self, command: list[str], scratch: Path) -> list[str]:
        """The command in the sandbox; as it is, where there is none."""
        if not self.is_on:
            return command
        return [self.program, *self.options, "--bind", str(scratch), str(scratch), "--", *command]

    def environment(self, environment: dict[str, str], scratch: Path) -> dict[str, str]:
        """With caches and temporary files in the scratch folder, where they have to be."""
        if not self.is_on:
            return environment
        moved = {name: scratch / folder for name, folder in _CACHES.items()}
        for folder in moved.values():
            folder.mkdir()
        return environment | {name: str(folder) for name, folder in moved.items()}


def sandbox() -> Sandbox:
    """The one for workers started now."""
    if os.environ.get(SETTING) == "0":
        return Sandbox("", (), f"{SETTING}=0")
    return _tried()


@cache
def _tried() -> Sandbox:
    """bubblewrap, tried once: many systems have the program and forbid what it needs."""
    program = shutil.which("bwrap")
    if program is None:
        return Sandbox("", (), "not installed")
    for processes in (("--unshare-pid", "--proc", "/proc"), ()):  # a container may forbid a new /proc
        options = (*_confined(), *processes)
        if _works([program, *options]):
            return Sandbox(program, options)
    return Sandbox(program, (), "not allowed to work here")


def _confined() -> tuple[str, ...]:
    devices = sorted({path for pattern in _DEVICES for path in Path("/dev").glob(pattern)})
    bound = [part for path in devices for part in ("--dev-bind-try", str(path), str(path))]
    system = ("--dev-bind", "/sys", "/sys") if devices else ()  # CUDA looks for its devices there
    namespaces = ("--unshare-net", "--unshare-ipc", "--die-with-parent")
    return ("--ro-bind", "/", "/", "--dev", "/dev", *bound, *system, "--tmpfs", "/dev/shm", *namespaces)


def _works(command: list[str]) -> bool:
    """Whether Python starts in it, and CUDA where there are devices."""
    try:
        trial = subprocess.run(
            [*command, sys.executable, "-S", "-c", _TRIAL], capture_output=True, timeout=_TRIAL_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0
