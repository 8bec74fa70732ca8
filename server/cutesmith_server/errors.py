"""What the server raises when it does not do what was asked. `str()` is one sentence for a person."""

from __future__ import annotations


class RefusedError(Exception):
    """Nothing was done: what happened, where, what to do."""
