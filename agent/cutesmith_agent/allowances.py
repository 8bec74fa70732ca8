"""What the user allows a class's kernel that is a failure otherwise."""

from __future__ import annotations

import tomllib
from pathlib import Path

from cutesmith_agent.job import Job


def allows_lowered(job: Job, root: Path) -> bool:
    """Whether a kernel may be less precise than its module: the job says so, or the project's pyproject.toml names the
    class (`[tool.cutesmith] allow_lowered_precision = ["Block"]`). The precision is said all the same."""
    return job.allow_lowered or job.task.qualname in _named(root)


def _named(root: Path) -> list[object]:
    """Empty where the file has no such list, or cannot be read: nothing is allowed by mistake."""
    try:
        table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return []
    tool = table.get("tool")
    ours = tool.get("cutesmith") if isinstance(tool, dict) else None
    found = ours.get("allow_lowered_precision") if isinstance(ours, dict) else None
    return found if isinstance(found, list) else []
