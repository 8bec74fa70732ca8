"""Tasks whose inputs and outputs fill 60 % of the device's memory are compared with float64 all the same."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.reference import load_reference
from planted_candidates import QUALNAME, TASK, write_candidate, write_task

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

COLUMNS, SHARE = 16384, 0.6
AT_MOST_S = 60.0


@pytest.fixture(autouse=True)
def empty_device() -> Iterator[None]:
    """What earlier tests of this process left there goes first."""
    gc.collect()
    torch.cuda.empty_cache()
    yield
    gc.collect()
    torch.cuda.empty_cache()


def check(folder: Path, expression: str, forward: str) -> tuple[Outcome, float]:
    """The outcome for fp32 inputs and outputs of SHARE of the device's memory, and the seconds it took."""
    rows = int(torch.cuda.get_device_properties(0).total_memory * SHARE / (2 * 4 * COLUMNS))
    source = TASK.replace("torch.softmax(x * self.weight, dim=-1)", expression).replace("[40]", f"[{COLUMNS}]")
    task = write_task(folder, source.replace("64, 40", f"{rows}, {COLUMNS}"))
    reference = load_reference(Task(str(task), QUALNAME))
    candidate = load_candidate(write_candidate(folder, forward, "cuda"), reference)
    begin = time.monotonic()
    outcome = run_checks(reference, candidate, torch.device("cuda", 0), Plan(), lambda _: None)
    return outcome, time.monotonic() - begin


def test_a_separable_task_is_measured_in_slices(tmp_path: Path):
    outcome, passed = check(tmp_path, "torch.tanh(x)", "def forward(module, x):\n    return torch.tanh(x)\n")
    assert outcome.findings == []
    assert outcome.precision == "kept"
    assert {"the task's inputs, seed 0", "wide range inputs"} <= outcome.by_check.keys(), outcome.checks
    assert any("float64 reference: on the device in slices of" in label for label in outcome.checks), outcome.checks
    assert not any("memory does not suffice" in label for label in outcome.checks), outcome.checks
    assert passed < AT_MOST_S, passed


def test_the_last_elements_are_looked_at_too(tmp_path: Path):
    wrong = "def forward(module, x):\n    y = torch.tanh(x)\n    y[-1, -3:] += 1\n    return y\n"
    outcome, passed = check(tmp_path, "torch.tanh(x)", wrong)
    assert "only the tail, the last 3 elements" in outcome.findings[0].message, outcome.findings
    assert passed < AT_MOST_S, passed


def test_a_task_whose_rows_depend_on_each_other_is_measured_on_smaller_sizes(tmp_path: Path):
    outcome, passed = check(
        tmp_path, "torch.softmax(x, dim=0)", "def forward(module, x):\n    return torch.softmax(x, dim=0)\n"
    )
    assert outcome.findings == []
    assert outcome.precision == "kept"
    assert any("none at the task's own sizes" in label for label in outcome.checks), outcome.checks
    assert "the task's inputs, seed 0" in outcome.checks
    assert "the task's inputs, seed 0" not in outcome.by_check
    assert outcome.by_check
    assert passed < AT_MOST_S, passed
