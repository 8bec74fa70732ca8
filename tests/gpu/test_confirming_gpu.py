"""Confirmations on a GPU: values of a large output in blocks, times against a clock outside, attacks on the judge."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.confirmation import PART
from cutesmith_evaluator.confirming_peers import BLOCKS, WHOLE
from cutesmith_evaluator.types import Claim, Confirmation, Task
from judged_candidates import ROWS, TASKS, honest
from native_attacks import TASK, attacker

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

HONEST = {candidate.name: candidate for candidate in honest()}
ROWS_OF_64 = 1 << 20  # 256 MiB of float32
LARGE = f"""

def get_inputs():
    return [torch.randn({ROWS_OF_64}, 64)]
"""


def confirmed(worker: Worker, path: Path, call_ms: float | None = None, task: Task = TASK) -> Confirmation:
    return worker.confirm(task, path, Claim("kept", call_ms), device="cuda", dynamic_dims=ROWS)


@pytest.fixture
def large(tmp_path: Path) -> Task:
    file = tmp_path / "task.py"
    file.write_text((TASKS / "scaled_task.py").read_text() + LARGE)
    return Task(str(file), "Scaled")


@pytest.mark.parametrize(
    "name", ["plain", "kernelbench", "a_view_is_all", "library_for_a_part", "two_kernels_one_host"]
)
def test_an_honest_kernel_is_confirmed(worker: Worker, name: str):
    candidate = HONEST[name]
    confirmation = confirmed(worker, candidate.path, task=candidate.task)
    assert (confirmation.ok, confirmation.findings) == (True, ())


def test_a_time_is_confirmed_and_a_false_one_is_not(worker: Worker, large: Task):
    path = HONEST["plain"].path
    timing = worker.time(large, path, arms=("candidate",), quick=True)
    (measured,) = [arm.median_ms for arm in timing.arms if arm.name == "candidate"]
    confirmation = confirmed(worker, path, measured, large)
    assert (confirmation.ok, confirmation.findings) == (True, ())
    assert ROWS_OF_64 * 64 > WHOLE
    assert confirmation.checks[0] == f"fresh inputs: {BLOCKS * PART} of {ROWS_OF_64 * 64} elements of output 0"
    false = confirmed(worker, path, measured / 20, large)
    print(f"measured {measured:.4f} ms; {false.findings}")
    assert (false.ok, [each.kind for each in false.findings]) == (False, ["time-not-confirmed"])


@pytest.mark.parametrize(
    "name", ["patches_code_in_memory", "swaps_a_method_of_torch", "copies_the_reference", "forges_the_verdict"]
)
def test_what_beats_the_judge_beside_it_is_not_confirmed(name: str, tmp_path: Path):
    path = attacker(name, tmp_path)
    with Worker(Path(sys.executable)) as worker:  # one that nobody else uses: it is in the attacker's hands
        fooled = worker.validate(TASK, path, device="cuda", quick=True)
        assert (fooled.ok, [each.message for each in fooled.findings if each.severity == "error"]) == (True, [])
        confirmation = confirmed(worker, path)
    assert (confirmation.ok, confirmation.findings[0].kind) == (False, "not-confirmed")


def test_a_result_made_after_the_clock_has_stopped_is_seen(worker: Worker, tmp_path: Path):
    confirmation = confirmed(worker, attacker("answers_before_it_works", tmp_path, right=True), 1e3)
    assert confirmation.ok is False
    assert "another than the one that was made while the clock ran" in confirmation.findings[0].message
