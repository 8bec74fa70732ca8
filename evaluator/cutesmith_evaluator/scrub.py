"""The environment a worker gets: what Python, torch, CUDA and compilers need, and never a secret."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_SYSTEM = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}
_PYTHON = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"}
_COMPILERS = {"CC", "CXX", "CUDACXX"}
_NAMES = _SYSTEM | _PYTHON | _COMPILERS
_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "TORCH_", "TORCHINDUCTOR_", "TRITON_", "CUTE_DSL_", "OMP_", "MKL_", "XDG_")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


def scrubbed_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The allowed part of `environment`, unbuffered and with a Python traceback on crashes.

    Threads of torch's that have nothing to do sleep, unless the user has it otherwise: on a busy machine their waiting
    takes more of the processors than their work.
    """
    allowed = {name: value for name, value in environment.items() if _is_allowed(name)}
    if "PYTHONPATH" in allowed:
        allowed["PYTHONPATH"] = _from_anywhere(allowed["PYTHONPATH"])
    return {"OMP_WAIT_POLICY": "passive", **allowed, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}


def _from_anywhere(paths: str) -> str:
    """What is relative means this process's folder; the worker's is another. Nothing, where this folder is gone."""
    try:
        return os.pathsep.join(map(os.path.abspath, paths.split(os.pathsep))) if paths else ""
    except OSError:
        return os.pathsep.join(filter(os.path.isabs, paths.split(os.pathsep)))


def _is_allowed(name: str) -> bool:
    return (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(name)
