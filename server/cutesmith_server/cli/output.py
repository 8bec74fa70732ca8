"""Where the command line prints: results on stdout, refusals and progress on stderr."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def print_json(value: Any) -> None:
    """The one JSON object of `--json`."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def console() -> Console:
    from rich.console import Console

    return Console(highlight=False)
