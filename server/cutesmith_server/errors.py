"""What the server raises when it does not do what was asked. `str()` is one sentence for a person."""

from __future__ import annotations


class RefusedError(Exception):
    """Nothing was done: what happened, where, what to do. `exit` is the command line's status for it."""

    def __init__(self, message: str, *, exit: int = 3) -> None:
        super().__init__(message)
        self.exit = exit
