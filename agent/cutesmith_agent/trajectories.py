"""What models were asked and answered, with what became of it: one record a call, fit for training on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.store.location import file_key
from cutesmith_agent.store.store import Store
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate
from cutesmith_evaluator.wire import converter

UNUSABLE, COMPILED, RIGHT = 0.0, 0.2, 0.5  # rewards of what got so far and no further


def trajectories(store: Store, root: Path, file: Path | None, qualname: str | None) -> Iterator[dict[str, Any]]:
    """Records in the order of the calls: `prompt`, `reply`, `verdict` (of the candidate that the reply led to, or
    None) and `reward` (0..1), besides `job`, `file`, `class`, `step`, `purpose`, `model` and `dollars`."""
    scrub = Scrubber().value
    for job, path, name in store.calls.jobs(file_key(str(file)) if file else None, qualname):
        judged = {one.id: one for one in store.candidates(job)}
        where = Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else Path(path).name
        first = _first_ms(judged)
        for step, (_, call) in enumerate(store.calls.of(job), 1):
            candidate = judged.get(call.candidate or "")
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
                    "verdict": _verdict(candidate),
                    "reward": reward(candidate, first),
                    "dollars": call.dollars,
                }
            )


def _verdict(candidate: Candidate | None) -> dict[str, Any] | None:
    if candidate is None:
        return None
    return {name: value for name, value in converter().unstructure(candidate).items() if name != "path"}


def _first_ms(judged: dict[str, Candidate]) -> float | None:
    """The time of the job's first kernel that was right and timed: what speed is measured against."""
    times = (median_ms(one.timing) for one in judged.values() if one.ok and one.timing)
    return next((ms for ms in times if ms is not None), None)


def reward(candidate: Candidate | None, first_ms: float | None) -> float:
    """0 for what is no candidate or does not compile, 0.2 for what compiles and is wrong, 0.5 for what is right, and
    from there towards 1 with its speed over the job's first right kernel: 0.75 at twice that speed, 0.875 at four
    times."""
    if candidate is None or (candidate.ok is False and candidate.stage in ("propose", "guards", "compile")):
        return UNUSABLE
    if candidate.ok is not True:
        return COMPILED
    ms = median_ms(candidate.timing) if candidate.timing else None
    if ms is None or first_ms is None:
        return RIGHT
    return RIGHT + 0.5 * max(0.0, 1 - ms / first_ms)
