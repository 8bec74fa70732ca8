"""Where the server keeps what is the user's and not a project's: answers, marks, locks, jobs that are to go on."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path:
    """`$XDG_STATE_HOME/cutesmith`, by default `~/.local/state/cutesmith`; it may not exist yet."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "cutesmith"
