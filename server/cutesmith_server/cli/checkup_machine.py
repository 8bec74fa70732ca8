"""Rows of `cutesmith doctor` on the machine: its GPU and driver, the profiler, the disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from cutesmith_agent.archs import ARCHS, USUAL
from cutesmith_evaluator.types import Environment
from cutesmith_server.cli.checkup import Check

_DRIVER = Path("/sys/module/nvidia/version")
_PARAMETERS = Path("/proc/driver/nvidia/params")
_ADMINISTRATORS_ONLY = "RmProfilingAdminOnly: 1"
_LITTLE, _TOO_LITTLE = 1 << 30, 64 << 20  # bytes free


def device_checks(environment: Environment) -> list[Check]:
    """The CUDA device, its driver and its arch, as PyTorch in that interpreter sees them."""
    return [_device(environment), driver_check(environment, _text(_DRIVER)), _arch(environment)]


def _device(environment: Environment) -> Check:
    if environment.device != "none":
        return Check("CUDA device", "ok", environment.device)
    advice = (
        "Kernels are validated on the emulated device, not timed. On a machine with an NVIDIA GPU, install its "
        "driver and a CUDA torch."
    )
    return Check("CUDA device", "limited", "none", advice)


def driver_check(environment: Environment, loaded: str) -> Check:
    """`loaded`: the version of NVIDIA's kernel module, "" without one."""
    if environment.device != "none":
        return Check("driver", "ok", environment.driver or loaded or "its version is not told (WSL)")
    if not loaded:
        return Check("driver", "limited", "no NVIDIA driver is loaded", "It is needed for a GPU alone.")
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        why, fix = "CUDA_VISIBLE_DEVICES hides every GPU", "Unset it."
    elif environment.torch and "+cpu" in environment.torch:
        why, fix = f"torch {environment.torch} is a build without CUDA", "Install one for CUDA (pytorch.org says how)."
    else:
        why = "PyTorch sees no device"
        fix = "Update the driver to one for torch's CUDA; in a container, start it with --gpus all."
    return Check("driver", "limited", f"{loaded} is loaded, but {why}", fix)


def _arch(environment: Environment) -> Check:
    if environment.arch is None:
        return Check("arch", "ok", f"kernels are compiled for {', '.join(USUAL)} (--arch names others)")
    if environment.arch in ARCHS:
        return Check("arch", "ok", environment.arch)
    advice = f"Kernels are compiled for {', '.join(ARCHS)}; on this GPU use --device emulated."
    return Check("arch", "limited", f"{environment.arch} is none that the CuTe DSL compiles for", advice)


def profiling_check(environment: Environment) -> Check:
    """Nsight Compute, and whether it may read the counters; without it hints come from the emulated device's counts."""
    ncu = shutil.which("ncu")
    if ncu is None:
        advice = "Put Nsight Compute's ncu on the PATH to have kernels profiled; hints are given without it, too."
        return Check("ncu", "limited", "not on the PATH", advice)
    if environment.device == "none":
        return Check("ncu", "limited", f"{ncu}, and no CUDA device to profile on", "Nothing to do without a GPU.")
    return permission_check(ncu, _text(_PARAMETERS), is_administrator=os.geteuid() == 0)


def permission_check(ncu: str, parameters: str, *, is_administrator: bool) -> Check:
    """`parameters`: of NVIDIA's kernel module, as it tells them."""
    if _ADMINISTRATORS_ONLY not in parameters or is_administrator:
        return Check("ncu", "ok", ncu)
    advice = (
        "Put the line `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d and reboot."
    )
    return Check("ncu", "limited", f"{ncu} may not read the GPU's counters: they are for administrators", advice)


def disk_check(folders: Collection[Path]) -> Check:
    """The fullest of the disks that the store and scratch files lie on."""
    free = {folder: shutil.disk_usage(folder).free for folder in folders}
    folder = min(sorted(free), key=lambda each: free[each])
    found = f"{free[folder] / 2**30:.1f} GiB free in {folder}"
    if free[folder] >= _LITTLE:
        return Check("disk", "ok", found)
    advice = f"Free {_LITTLE >> 30} GiB of it: workers write their scratch files there (TMPDIR moves them)."
    return Check("disk", "missing" if free[folder] < _TOO_LITTLE else "limited", found, advice)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
