"""One row of `cutesmith doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "missing", "limited"]


@dataclass(frozen=True)
class Check:
    """One thing that is used. `missing`: no kernel can be made; `limited`: something is left out. `advice`: the fix."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""
