"""Where the command line prints: results on stdout, refusals and progress on stderr."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


_LOG_WIDTH = 160


def print_json(value: Any) -> None:
    """The one JSON object of `--json`."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def console(*, stderr: bool = False) -> Console:
    """Of the terminal's width; wide where there is none, so that logs are not folded."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else _LOG_WIDTH)


def from_here(file: str | Path) -> str:
    """The path as one would type it in this folder."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
