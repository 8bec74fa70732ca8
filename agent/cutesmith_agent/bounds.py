"""What a worker may take, where the environment or the project's `[tool.cutesmith]` says less than what is usual."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cutesmith_evaluator.client import Limits

_VARIABLES = {"deadline_s": "CUTESMITH_DEADLINE_S", "memory_gb": "CUTESMITH_MEMORY_GB"}
_LEAST = {"deadline_s": 1.0, "memory_gb": 1.0}  # with less no worker comes up


class BoundsError(ValueError):
    """A setting cannot be used. `str()` is one sentence for a person."""


def worker_limits(root: Path, environment: Mapping[str, str] = os.environ) -> Limits:
    """`deadline_s`: seconds for each request about a candidate (compile, validate, time). `memory_gb`: GiB of a worker
    with all it starts. The environment comes before the project at `root`. Raises BoundsError."""
    found = _from_project(root) | {name: environment[key] for name, key in _VARIABLES.items() if environment.get(key)}
    wanted = {name: _number(name, value) for name, value in found.items()}
    usual = Limits()
    memory = int(wanted["memory_gb"] * 2**30) if "memory_gb" in wanted else usual.memory_bytes
    return Limits(memory_bytes=min(memory, usual.memory_bytes), request_s=wanted.get("deadline_s"))


def _from_project(root: Path) -> dict[str, Any]:
    """What cannot be read is told where the project's settings are needed."""
    try:
        read = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    table = read.get("tool", {}).get("cutesmith", {})
    return {name: table[name] for name in _VARIABLES if isinstance(table, dict) and name in table}


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not _LEAST[name] <= number < float("inf"):
        told = f"{name} of [tool.cutesmith] or {_VARIABLES[name]}"
        raise BoundsError(f"{told} is {value!r}: it must be a number of at least {_LEAST[name]:.0f}.")
    return number
