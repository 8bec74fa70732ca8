"""The guards on a GPU: cheats that show only there, and no honest kernel rejected."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.sandbox import sandbox
from judged_candidates import ROWS, cheats, honest

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

CHEATS = {cheat.name: cheat for cheat in cheats()}
HONEST = {candidate.name: candidate for candidate in honest()}
BY_THE_DEVICE = {"unwritten-output": "not-repeatable"}  # what the emulated device names more exactly
ON_CUDA = sorted(
    name
    for name, cheat in CHEATS.items()
    if cheat.kinds("dynamic") and not cheat.kinds("dynamic") & {"out-of-bounds"}  # memory that is anybody's on a GPU
)
TIMED = ("counts_warm_ups", "drifts_after_checks", "counts_in_an_iterator")


@pytest.mark.parametrize("name", ON_CUDA)
def test_a_cheat_is_rejected_on_the_device(worker: Worker, name: str):
    cheat = CHEATS[name]
    verdict = worker.validate(cheat.task, cheat.path, device="cuda", dynamic_dims=ROWS)
    found = {finding.kind for finding in verdict.findings if finding.severity == "error"}
    assert verdict.ok is False
    wanted = {BY_THE_DEVICE.get(kind, kind) for kind in cheat.kinds("dynamic")}
    assert found & (wanted | {"wrong-values"}), verdict.findings


@pytest.mark.parametrize("name", HONEST)
def test_no_honest_kernel_is_rejected_on_the_device(worker: Worker, name: str):
    candidate = HONEST[name]
    verdict = worker.validate(candidate.task, candidate.path, device="cuda", quick=name != "plain", dynamic_dims=ROWS)
    told = {finding.kind for finding in verdict.findings if finding.severity == "information"}
    assert (verdict.ok, verdict.precision, len(verdict.findings)) == (True, "kept", len(told)), verdict.findings
    assert told <= {"degenerate-task"}  # for the algebra that collapses


@pytest.mark.parametrize("name", TIMED)
def test_a_cheat_on_the_clock_voids_its_timing(worker: Worker, name: str):
    cheat = CHEATS[name]
    timing = worker.time(cheat.task, cheat.path, arms=("candidate", "eager"))
    assert timing.arms == ()
    assert {"output-drifts", "timing-disagrees"} & {finding.kind for finding in timing.findings}


def test_the_device_is_there_in_the_sandbox(worker: Worker, tmp_path: Path):
    """Or else there is no sandbox: trying it has shown that CUDA does not start inside."""
    assert sandbox().is_on or sandbox().reason
    assert worker.hello().device != "none"
