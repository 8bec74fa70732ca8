"""A class's view after a job, from the report that an agent sends."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from cutesmith_evaluator.types import Arm, Candidate, ErrorFigures, ErrorPair, Finding, Speedup, Timing
from cutesmith_server import sessions
from cutesmith_server.agent_process import Done
from cutesmith_server.jobs import ClassKey
from cutesmith_server.outlines import outline_of
from cutesmith_server.sessions import Session
from cutesmith_server.views import ClassView

TEXT = "from torch import nn\n\n\nclass A(nn.Module):\n    def forward(self, x):\n        return x\n"
GUARD = "        if a_cute.supports(self, x):\n            return a_cute.forward(self, x)\n"
ACCEPTED = TEXT.replace("        return x", GUARD + "        return x")
KEY = ClassKey(Path("/project/a.py"), "A")
OUTLINE = outline_of(TEXT)
DIGEST = OUTLINE.digest("A") or ""
ERROR = ErrorFigures(2e-7, 1.5e-7, 1.33, "max", ErrorPair(1e-7, 2e-7), ErrorPair(1e-7, 1.5e-7), True)


def timing(median_ms: float = 0.0634) -> Timing:
    arms = [
        Arm(name, each, each, each, 30) for name, each in (("candidate", median_ms), ("eager", 0.3), ("compile", 0.13))
    ]
    return Timing("NVIDIA H200", tuple(arms), 4200.0, 2**28, 0.98, 0.01)


def candidate(**changes: Any) -> Candidate:
    fields: dict[str, Any] = {"id": "0123456789ab", "origin": "recipe", "stage": "done", "ok": True} | changes
    return Candidate(**fields)


PROVED = candidate(precision="kept", error=ERROR, timing=timing(), speedup=Speedup(4.7, 2.06))


def report(best: Candidate | None, *findings: Finding, kernel: bool = True) -> dict[str, Any]:
    return {
        "task": {"file": "/project/a.py", "class": "A", "category": "pointwise", "ops": ["aten.relu.default"]},
        "device": "NVIDIA H200",
        "arch": "sm_90a",
        "environment": None,
        "candidates": [asdict(best)] if best else [],
        "best": best.id if best and best.ok is not False else None,
        "stopped": "Stopped because of this.",
        "findings": [asdict(finding) for finding in findings],
        "estimate_ms": None,
        "kernel": {"path": "/project/a_cute.py", "source": "x = 1\n"} if best and kernel else None,
        "patch": "--- a\n",
    }


def running() -> Session:
    return sessions.started(Session(), "optimize", DIGEST, queued=False)


def ended(data: dict[str, Any]) -> Session:
    return sessions.after(running(), Done(data, 0))


def view(session: Session, digest: str | None = DIGEST, text: str = TEXT, drift: str = "") -> ClassView:
    return ClassView(KEY.path.as_uri(), KEY, outline_of(text).named("A"), session, digest, drift)
