"""What models were asked and answered, with what became of it: one record a call, fit for training on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.store.calls import Call, Outcome
from cutesmith_agent.store.location import file_key
from cutesmith_agent.store.store import Store
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate
from cutesmith_evaluator.wire import converter

# Rewards of what got so far and no further.
UNUSABLE, BROKEN, RAN, RIGHT, AGREED = 0.0, 0.1, 0.2, 0.5, 1.0


def trajectories(store: Store, root: Path, file: Path | None, qualname: str | None) -> Iterator[dict[str, Any]]:
    """Records in the order of the calls: `prompt`, `reply`, `outcome` (what the reply amounted to), `verdict` on it and
    `reward` (0..1; both None where nothing is known), besides `job`, `file`, `class`, `step`, `purpose`, `model`,
    `dollars`."""
    scrub = Scrubber().value
    for job, path, name in store.calls.jobs(file_key(str(file)) if file else None, qualname):
        judged = _Judged.of(store.candidates(job))
        where = Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else Path(path).name
        for step, (_, call) in enumerate(store.calls.of(job), 1):
            yield scrub(
                {
                    "job": job,
                    "file": where,
                    "class": name,
                    "step": step,
                    "purpose": call.purpose,
                    "model": call.model,
                    "prompt": "\n\n".join(call.prompt),
                    "reply": call.reply,
                    "outcome": call.outcome.kind if call.outcome else None,
                    "verdict": judged.verdict(call),
                    "reward": judged.reward(call),
                    "dollars": call.dollars,
                }
            )


@dataclass(frozen=True)
class _Judged:
    """A job's candidates, each with the last verdict on it: of its final proof, where it came to that."""

    candidates: dict[str, Candidate]
    first_ms: float | None  # of the job's first kernel that was right and timed: what speed is measured against

    @classmethod
    def of(cls, candidates: tuple[Candidate, ...]) -> _Judged:
        proved = {one.draft: one for one in candidates if one.draft is not None}
        times = (median_ms(one.timing) for one in candidates if one.ok and one.timing)
        first = next((ms for ms in times if ms is not None), None)
        return cls({one.id: proved.get(one.id, one) for one in candidates}, first)

    def verdict(self, call: Call) -> dict[str, Any] | None:
        if (outcome := call.outcome) is None:
            return None
        if outcome.kind in ("candidate", "plan"):
            candidate = self.candidates.get(call.candidate or "")
            return None if candidate is None else _told(candidate)
        findings = [{"kind": outcome.kind, "message": outcome.reason, "severity": "error"}] if outcome.reason else []
        return {"ok": _ok(outcome), "stage": "answer", "findings": findings}

    def reward(self, call: Call) -> float | None:
        if (outcome := call.outcome) is None:
            return None
        if outcome.kind in ("candidate", "plan"):
            candidate = self.candidates.get(call.candidate or "")
            return None if candidate is None else reward(candidate, self.first_ms)
        if outcome.kind in ("reference", "checks"):
            return {True: AGREED, False: BROKEN, None: RAN}[outcome.ok]
        return None if outcome.kind == "unclear" else UNUSABLE


def _ok(outcome: Outcome) -> bool | None:
    return False if outcome.kind in ("unusable", "declined") else outcome.ok


def _told(candidate: Candidate) -> dict[str, Any]:
    return {name: value for name, value in converter().unstructure(candidate).items() if name != "path"}


def reward(candidate: Candidate, first_ms: float | None) -> float:
    """0.1 for what does not compile, 0.2 for what compiles and is wrong or was not run, 0.5 for what is right, and from
    there towards 1 with its speed over the job's first right kernel: 0.75 at twice that speed, 0.875 at four times."""
    if candidate.ok is False and candidate.stage in ("propose", "guards", "compile"):
        return BROKEN
    if candidate.ok is not True:
        return RAN
    ms = median_ms(candidate.timing) if candidate.timing else None
    if ms is None or first_ms is None:
        return RIGHT
    return RIGHT + 0.5 * max(0.0, 1 - ms / first_ms)
