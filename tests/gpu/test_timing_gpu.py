"""Verdicts on speed on a GPU: equals, differences, conditions, ways to launch; and what profilers say of a kernel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.speedup import speedup
from cutesmith_evaluator.types import Task, Timing
from cutesmith_evaluator.worker.clock import Clock
from cutesmith_evaluator.worker.sensors import sensors
from cutesmith_evaluator.worker.timing import time_arms
from cutesmith_evaluator.worker.timing_sampling import sample_arms
from planted_candidates import QUALNAME, TASK, write_candidate, write_task

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

BIG = TASK.replace("torch.randn(64, 40)", "torch.randn(16384, 4096)").replace("[40]", "[4096]")
SAME = "def forward(module, x):\n    return torch.softmax(x * module.weight, dim=-1)\n"


def timed(folder: Path, candidate: str, *arms: str, **more: object) -> Timing:
    task = {"file": str(write_task(folder, BIG)), "qualname": QUALNAME}
    request = {"task": task, "candidate": str(write_candidate(folder, candidate, "cuda")), "arms": list(arms), **more}
    return time_arms(request, lambda _: None)


def test_equals_are_no_speedup_and_their_ratio_is_known_well(tmp_path: Path):
    found = timed(tmp_path, SAME, "candidate", "eager")
    assert speedup(found).eager is None
    ratio = next(each for each in found.ratios if (each.arm, each.base) == ("eager", "candidate"))
    assert ratio.ratio == pytest.approx(1.0, abs=0.02)
    assert ratio.high - ratio.low < 0.02


@pytest.mark.parametrize("ms", [0.03, 0.3, 3.0])
def test_three_percent_are_found_and_equals_are_not_told_apart(ms: float):
    clock = Clock(torch.device("cuda", 0))
    cycles = round(ms * 1e6)
    lengths = {"candidate": cycles, "eager": round(1.03 * cycles), "control": round(1.03 * cycles)}
    calls = {name: (lambda number=number: torch.cuda._sleep(number)) for name, number in lengths.items()}
    sampled = sample_arms(clock, calls, arm_s=1.0)
    found = Timing("", tuple(sampled.arms().values()), 1.0, 1, 1.0, sampled.noise(), (), sampled.ratios())
    assert speedup(found).eager == pytest.approx(1.03, abs=0.01)
    equals = dict.fromkeys(calls, calls["candidate"])
    again = sample_arms(clock, equals, arm_s=1.0, seed=1)
    found = Timing("", tuple(again.arms().values()), 1.0, 1, 1.0, again.noise(), (), again.ratios())
    assert speedup(found).eager is None


def test_launches_one_by_one_and_as_a_graph_are_given_apart(tmp_path: Path):
    found = timed(tmp_path, SAME, "candidate", "eager", "compile")
    assert [each.arm for each in found.launches] == ["candidate", "eager", "compile"]
    for each in found.launches:
        median = next(arm.median_ms for arm in found.arms if arm.name == each.arm)
        assert each.graph_ms == pytest.approx(median, rel=0.2)
        assert 0 < each.eager_ms < 3 * median + 0.2


def test_a_call_that_cannot_be_captured_still_has_a_verdict(tmp_path: Path):
    waiting = SAME.replace("    return", "    torch.cuda.synchronize()\n    return")
    found = timed(tmp_path, waiting, "candidate", "eager")
    assert {each.arm: each.graph_ms is None for each in found.launches} == {"candidate": True, "eager": False}
    assert found.arms


def test_max_autotune_is_an_arm_where_it_is_asked_for(tmp_path: Path):
    found = timed(tmp_path, SAME, "candidate", "eager", "max-autotune", quick=True)
    assert [arm.name for arm in found.arms] == ["candidate", "eager", "max-autotune", "control"]


def test_conditions_are_read_where_the_library_is_there(tmp_path: Path):
    found = timed(tmp_path, SAME, "candidate", "eager", quick=True)
    if sensors(torch.device("cuda", 0)) is None:
        assert all(arm.conditions is None for arm in found.arms)
    else:
        conditions = [arm.conditions for arm in found.arms]
        assert all(each is not None and each.readings > 2 and (each.sm_mhz or 0) > 300 for each in conditions)


def test_nsight_compute_measures_the_candidates_kernels_alone(tmp_path: Path, worker: Worker):
    task = Task(str(write_task(tmp_path, BIG)), QUALNAME)
    found = worker.profile(task, write_candidate(tmp_path, SAME, "cuda"))
    if shutil.which("ncu") is None:
        assert [finding.kind for finding in found.findings] == ["no-ncu"]
        return
    assert found.findings == ()
    assert 1 <= sum(kernel.launches for kernel in found.measured) <= 2  # a product and a softmax
    for kernel in found.measured:
        assert kernel.us > 50
        assert kernel.dram_bytes is not None
        assert kernel.dram_bytes > 1e8
        assert 0 < (kernel.dram_share or 0) <= 1
        assert kernel.registers
        assert kernel.stalls
