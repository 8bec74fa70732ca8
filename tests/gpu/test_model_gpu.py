"""The model's rounds with times that a device measured: slower is not taken, faster is."""

from __future__ import annotations

from pathlib import Path

import pytest

import model_kernels as kernels
from flip_job import make_project, run_flip
from model_rig import KEY
from pipeline import KeptWorker, best_of
from scripted_messages import Act, ScriptedMessages, bottleneck, kernel, patch

pytestmark = pytest.mark.gpu

SIZE = 1 << 26  # elements: 512 MiB moved, far more than the launch costs
SLOW, SLOWER, FAST = "THREADS = 32 ", "THREADS = 16 ", "THREADS = 256 "


def test_it_ends_on_the_fastest_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not compile, one wrong by its tail, a right one, a slower one, a faster one."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    project = make_project(tmp_path, kernels.MODULE.replace("torch.randn(300)", f"torch.randn({SIZE} + 44)"))
    first = kernels.flip(kernels.UNKNOWN_NAME, kernels.NO_TAIL).replace(FAST, SLOW)
    acts: list[Act] = [
        kernel(first),
        patch(kernels.UNKNOWN_NAME, kernels.KNOWN_NAME, "names the function right"),
        patch(kernels.NO_TAIL, kernels.WITH_TAIL, "covers the tail"),
        *(bottleneck("smaller blocks"), _threads(SLOW, SLOWER, "smaller blocks")),
        *(bottleneck("larger blocks"), _threads(SLOW, FAST, "larger blocks")),
    ]
    with ScriptedMessages(acts) as endpoint, KeptWorker() as worker:
        report = run_flip(project, worker, endpoint)
        requests = endpoint.requests
    best = best_of(report)
    assert (best["ok"], best["origin"]) == (True, "llm")
    assert FAST in report["kernel"]["source"]
    assert [one["ok"] for one in report["candidates"]] == [False, False, True, True, True, True]
    assert "smaller blocks: right" in requests[5].moment
    assert SLOW in requests[5].moment, "the slower one was not gone on from"
    assert "all 2 rounds by the model" in report["stopped"]


def _threads(before: str, after: str, summary: str) -> Act:
    return patch(f"{before} # threads per block", f"{after} # threads per block", summary)
