"""What the user allows and asks of kernels in pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

from cutesmith_agent.job import Job


def allows_lowered(job: Job, root: Path) -> bool:
    """Whether a kernel may be less precise than its module: the job says so, or the project's pyproject.toml names the
    class (`[tool.cutesmith] allow_lowered_precision = ["Block"]`). The precision is said all the same."""
    named = _setting(root, "allow_lowered_precision")
    return job.allow_lowered or (isinstance(named, list) and job.task.qualname in named)


def wants_ieee(root: Path) -> bool:
    """Whether fp32 products must be computed in fp32 arithmetic, and not through parts of a narrower type, though they
    keep the precision (`[tool.cutesmith] precision = "ieee"`)."""
    return _setting(root, "precision") == "ieee"


def _setting(root: Path, name: str) -> object:
    """Of `[tool.cutesmith]`; None where the file has none, or cannot be read."""
    try:
        table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return None
    tool = table.get("tool")
    ours = tool.get("cutesmith") if isinstance(tool, dict) else None
    return ours.get(name) if isinstance(ours, dict) else None
