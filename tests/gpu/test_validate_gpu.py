"""The judge itself on a GPU: planted faults, precision, lost devices, big tasks, and clocks."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.client import Worker, WorkerError
from cutesmith_evaluator.speedup import speedup
from cutesmith_evaluator.types import Task, Timing
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.reference import load_reference
from cutesmith_evaluator.worker.timing import time_arms
from cutesmith_evaluator.worker.validate import validate
from planted_candidates import (
    AS_AN_OP,
    HONEST,
    QUALNAME,
    TASK,
    UNTRAINED,
    UNTRAINED_HONEST,
    patched_text,
    write_candidate,
    write_patched,
    write_task,
)
from planted_faults import FAULTS

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

BIG = TASK.replace("torch.randn(64, 40)", "torch.randn(16384, 4096)").replace("[40]", "[4096]")


def check(task: Path, candidate: Path, *, memory: int | None = None) -> Outcome:
    reference = load_reference(Task(str(task), QUALNAME))
    loaded = load_candidate(candidate, reference)
    return run_checks(reference, loaded, torch.device("cuda", 0), Plan(), lambda _: None, memory=memory)


def params(task: Path, candidate: Path, **more: object) -> dict[str, object]:
    return {"task": {"file": str(task), "qualname": QUALNAME}, "candidate": str(candidate), **more}


def timed(task: Path, candidate: Path, *arms: str, **more: object) -> Timing:
    return time_arms(params(task, candidate, arms=list(arms), **more), lambda _: None)


@pytest.mark.parametrize("name", HONEST)
def test_honest_candidates_pass_with_precision_kept(name: str, tmp_path: Path):
    outcome = check(write_task(tmp_path), write_candidate(tmp_path, HONEST[name], "cuda"))
    assert outcome.findings == []
    assert outcome.precision == "kept"
    assert "supports refuses the CPU, and inputs or parameters that require gradients" in outcome.checks


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found_and_said(name: str, tmp_path: Path):
    fault = FAULTS[name]
    outcome = check(write_task(tmp_path, fault.task), write_candidate(tmp_path, fault.source, "cuda"))
    assert not outcome.ok
    found = [finding for finding in outcome.findings if finding.kind == fault.kind]
    assert any(fault.words in finding.message for finding in found), outcome.findings


def test_a_candidate_that_reads_all_state_passes(tmp_path: Path):
    outcome = check(write_task(tmp_path, UNTRAINED), write_candidate(tmp_path, UNTRAINED_HONEST, "cuda"))
    assert outcome.findings == []
    assert "the task's inputs with other parameters and buffers" in outcome.checks


def test_supporting_cpu_tensors_is_found(tmp_path: Path):
    everywhere = HONEST["own_softmax"] + "\n\ndef supports(module, x):\n    return not torch.is_grad_enabled()\n"
    outcome = check(write_task(tmp_path), write_candidate(tmp_path, everywhere, "cuda"))
    assert any("tensors on the CPU" in finding.message for finding in outcome.findings)


CONVOLUTION = """
import torch
from torch import nn


class WeightedSoftmax(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, columns, 3, 3))

    def forward(self, x):
        return nn.functional.conv2d(x, self.weight)


def get_inputs():
    return [torch.randn(16, 64, 40, 40)]


def get_init_inputs():
    return [64]
"""
CONVOLVED = """
def explain(module, x):
    if x.device.type != DEVICE or x.dtype != torch.float32 or x.dim() != 4 or x.shape[1] != 64 or min(x.shape[2:]) < 3:
        return "x is not a float32 image of 64 channels"
    return "gradients are needed" if torch.is_grad_enabled() else None


def forward(module, x):
    return {forward}
"""


@pytest.mark.parametrize(
    ("forward", "precision"),
    [
        ("torch.nn.functional.conv2d(x, module.weight)", "as eager"),
        ("torch.nn.functional.conv2d(x.double(), module.weight.double()).float()", "kept"),
        ("torch.nn.functional.conv2d(x.bfloat16(), module.weight.bfloat16()).float()", "lowered"),
    ],
)
def test_a_convolution_in_tf32_is_as_eager(forward: str, precision: str, tmp_path: Path):
    candidate = write_candidate(tmp_path, CONVOLVED.format(forward=forward), "cuda")
    assert check(write_task(tmp_path, CONVOLUTION), candidate).precision == precision


def test_values_that_end_the_process_are_not_drawn(tmp_path: Path):
    """binary_cross_entropy asserts on the device that its input is a probability."""
    source = BIG.replace("torch.softmax(x * self.weight, dim=-1)", "nn.functional.binary_cross_entropy(x, x.round())")
    source = source.replace("torch.randn(16384, 4096)", "torch.rand(256, 40)").replace("[4096]", "[40]")
    candidate = "def forward(module, x):\n    return torch.nn.functional.binary_cross_entropy(x, x.round())\n"
    outcome = check(write_task(tmp_path, source), write_candidate(tmp_path, candidate, "cuda"))
    assert "no normal inputs: the module itself refuses such values" in outcome.checks
    assert "uniform [0, 1) inputs" in outcome.checks
    assert outcome.ok, outcome.findings


def test_float64_in_slices_gives_the_same_figures(tmp_path: Path):
    task, candidate = write_task(tmp_path), write_candidate(tmp_path, HONEST["own_softmax"], "cuda")
    whole, sliced = check(task, candidate), check(task, candidate, memory=50_000)
    assert any("in slices of" in label for label in sliced.checks)
    assert whole.error is not None
    assert sliced.error is not None
    assert sliced.error.candidate == pytest.approx(whole.error.candidate, rel=1e-3)


def test_a_patched_class_runs_the_kernel_on_the_device_and_the_original_elsewhere(tmp_path: Path):
    switched = AS_AN_OP + "\nimport os\nif os.environ.get('CUTESMITH_DISABLE') == '1':\n    DEVICE = 'none'\n"
    task, candidate = write_task(tmp_path), write_candidate(tmp_path, switched, "cuda")
    patched = write_patched(tmp_path / "scratch", candidate, patched_text())
    verdict = validate(params(task, candidate, patched=str(patched)), lambda _: None)
    assert verdict.ok, verdict.findings
    assert "patched class: the kernel's bits under torch.compile, in one graph" in verdict.checks
    assert "patched class: the original's bits with gradients on the device" in verdict.checks
    assert "patched class: the original's bits on the CPU with CUTESMITH_DISABLE=1" in verdict.checks


def test_a_lost_device_ends_the_request_and_not_the_next_one(tmp_path: Path, worker: Worker):
    task = Task(str(write_task(tmp_path)), QUALNAME)
    faulty = "def forward(module, x):\n    return x[torch.full((64,), 10**9, device=x.device)]\n"
    with pytest.raises(WorkerError, match="CUDA"):
        worker.validate(task, write_candidate(tmp_path, faulty, "cuda"))
    verdict = worker.validate(task, write_candidate(tmp_path, HONEST["own_softmax"], "cuda"))
    assert verdict.ok, verdict.findings


def test_a_task_of_17_gb_in_and_out_is_validated_in_time(tmp_path: Path):
    source = BIG.replace("torch.softmax(x * self.weight, dim=-1)", "torch.tanh(x)").replace(
        "16384, 4096", "65536, 65536"
    )
    source = source.replace("[4096]", "[65536]")
    task = write_task(tmp_path, source)
    candidate = write_candidate(tmp_path, "def forward(module, x):\n    return torch.tanh(x)\n", "cuda")
    begin = time.monotonic()
    outcome = check(task, candidate)
    passed = time.monotonic() - begin
    assert outcome.ok, outcome.findings
    assert outcome.precision == "kept"
    assert any("in slices of" in label for label in outcome.checks)
    assert passed < 60, outcome.checks


def test_a_duplicate_of_eager_is_within_the_noise(tmp_path: Path):
    same = "def forward(module, x):\n    return torch.softmax(x * module.weight, dim=-1)\n"
    timing = timed(write_task(tmp_path, BIG), write_candidate(tmp_path, same, "cuda"), "candidate", "eager")
    assert [arm.name for arm in timing.arms] == ["candidate", "eager", "control"]
    assert timing.noise < 0.02
    assert speedup(timing).eager is None
    assert 0.1 < timing.fraction_of_copy < 1.1
    assert any(finding.kind == "launch-overhead" for finding in timing.findings)


def test_a_slower_candidate_is_told_by_how_much(tmp_path: Path):
    once = "torch.softmax(x * module.weight, -1)"
    twice = f"def forward(module, x):\n    {once}\n    return {once}\n"
    timing = timed(write_task(tmp_path, BIG), write_candidate(tmp_path, twice, "cuda"), "candidate", "eager", "compile")
    found = speedup(timing)
    assert found.eager == pytest.approx(0.5, abs=0.05)
    assert found.compile is not None
    assert found.compile < 0.5


def test_quick_timing_is_quick(tmp_path: Path):
    candidate = write_candidate(tmp_path, HONEST["own_softmax"], "cuda")
    begin = time.monotonic()
    timing = timed(write_task(tmp_path, BIG), candidate, "candidate", "eager", quick=True)
    assert timing.arms
    assert time.monotonic() - begin < 10


def test_work_on_another_stream_voids_the_timing(tmp_path: Path):
    elsewhere = """
stream = torch.cuda.Stream() if torch.cuda.is_available() else None


def forward(module, x):
    with torch.cuda.stream(stream):
        out = torch.softmax(x * module.weight, dim=-1)
    return out
"""
    timing = timed(write_task(tmp_path, BIG), write_candidate(tmp_path, elsewhere, "cuda"), "candidate", "eager")
    assert timing.arms == ()
    assert {"timing-disagrees", "output-drifts"} & {finding.kind for finding in timing.findings}


def test_an_output_that_changes_with_the_calls_voids_the_timing(tmp_path: Path):
    tiring = """
calls = [0]


def forward(module, x):
    calls[0] += 1
    return torch.softmax(x * module.weight, dim=-1) if calls[0] < 50 else torch.empty_like(x)
"""
    timing = timed(write_task(tmp_path, BIG), write_candidate(tmp_path, tiring, "cuda"), "candidate", "eager")
    assert timing.arms == ()
    assert "output-drifts" in {finding.kind for finding in timing.findings}
