"""The report a job ends with: what `cutesmith optimize --json` prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cutesmith_agent.describe.proposal import Proposal
from cutesmith_agent.printable import printable
from cutesmith_agent.secrets import Scrubber
from cutesmith_evaluator.types import Candidate, Environment, Finding, Graph, Task
from cutesmith_evaluator.wire import converter

USABLE, UNUSABLE_INPUT, NO_CANDIDATE, COMPILED_ONLY, NEEDS_APPROVAL = 0, 2, 3, 4, 5  # exit statuses


@dataclass(frozen=True)
class Kernel:
    """The file that accepting writes."""

    path: Path
    source: str


@dataclass(frozen=True)
class ModelUse:
    """What a job asked of a model. `uncached` input tokens were read anew, `cached` ones found kept on the server.

    `dollars` None: its price is not known. `candidates`: dollars by the candidate that the calls led to. `unsettled`:
    how many of the calls were cut off before what they took was known; they count with the most they may have taken."""

    name: str
    calls: int
    uncached: int
    cached: int
    output: int
    dollars: float | None
    prices: str  # where from, and of which day
    candidates: dict[str, float | None]
    unsettled: int = 0


def _shown(proposal: Proposal, scrubber: Scrubber) -> Proposal:
    return replace(proposal, patch=scrubber.text(proposal.patch), summary=printable(proposal.summary))


@dataclass(frozen=True)
class Report:
    """How a job ended. `best` is a candidate's id; `stopped` one sentence."""

    task: Task
    stopped: str
    environment: Environment | None = None
    arch: str | None = None
    graph: Graph | None = None
    candidates: tuple[Candidate, ...] = ()
    best: str | None = None
    findings: tuple[Finding, ...] = ()
    estimate_ms: float | None = None
    kernel: Kernel | None = None
    patch: str | None = None
    model: ModelUse | None = None
    reference: Proposal | None = None  # for a class that was only described: to be approved before there is a kernel
    unusable: bool = field(default=False)  # the input, not the candidates, is at fault

    def scrubbed(self, scrubber: Scrubber) -> Report:
        """The same without secrets in its words and its patch (accepting makes its own). The kernel's source stays as
        it is: it was proved byte for byte, and nothing secret went into it."""
        return replace(
            self,
            stopped=printable(scrubber.text(self.stopped)),
            findings=scrubber.findings(self.findings),
            candidates=tuple(map(scrubber.candidate, self.candidates)),
            patch=scrubber.text(self.patch) if self.patch else self.patch,
            reference=_shown(self.reference, scrubber) if self.reference else None,
        )

    @property
    def exit(self) -> int:
        best = next((candidate for candidate in self.candidates if candidate.id == self.best), None)
        if best is not None:
            return USABLE if best.ok else COMPILED_ONLY
        if self.reference is not None:
            return NEEDS_APPROVAL
        return UNUSABLE_INPUT if self.unusable else NO_CANDIDATE

    @property
    def _device(self) -> str:
        """Where the best candidate was validated, or without one the last that ran; else what the worker has."""
        told = [one for one in reversed(self.candidates) if self.best in (None, one.id)]
        ran = next((one.device for one in told if one.device is not None), None)
        return ran or (self.environment.device if self.environment else "none")

    def to_json(self) -> dict[str, Any]:
        graph = self.graph
        return {
            "task": {
                "file": self.task.file,
                "class": self.task.qualname,
                "category": graph.category if graph else None,
                "ops": [node.op for node in graph.nodes] if graph else [],
            },
            "device": self._device,
            "arch": self.arch,
            "environment": asdict(self.environment) if self.environment else None,
            "candidates": [converter().unstructure(candidate) for candidate in self.candidates],
            "best": self.best,
            "stopped": self.stopped,
            "findings": [converter().unstructure(finding) for finding in self.findings],
            "estimate_ms": self.estimate_ms,
            "kernel": {"path": str(self.kernel.path), "source": self.kernel.source} if self.kernel else None,
            "patch": self.patch,
            "model": asdict(self.model) if self.model else None,
            "reference": converter().unstructure(self.reference) if self.reference else None,
        }
