"""What is known of a class beside its jobs: how real runs called it, and what its accepted kernel was proved with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cutesmith_agent.store.captures import Capture


@dataclass(frozen=True)
class Background:
    """`moved`: one sentence on what is another than the accepted kernel was proved with, or "". `imports_changed`: the
    same of a file that the class's file imports; `imported`: all of these."""

    capture: Capture | None = None
    moved: str = ""
    imports_changed: str = ""
    imported: frozenset[str] = frozenset()


NOTHING = Background()
