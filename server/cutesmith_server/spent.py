"""What models cost since the server began."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Spent:
    """`dollars`: None once a job asked a model whose price is not known."""

    def __init__(self) -> None:
        self.dollars: float | None = 0.0

    def add(self, report: Mapping[str, Any]) -> None:
        """The end of a job, by its report."""
        if not isinstance(model := report.get("model"), Mapping):
            return
        match self.dollars, model.get("dollars"):
            case (float() as before, int() | float() as more):
                self.dollars = before + more
            case _:
                self.dollars = None
