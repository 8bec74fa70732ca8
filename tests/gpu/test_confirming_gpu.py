"""Confirmations on a GPU: values of a large output in blocks, times against a clock outside, attacks on the judge."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.confirmation import PART
from cutesmith_evaluator.confirming_peers import BLOCKS, WHOLE
from cutesmith_evaluator.types import Claim, Confirmation, Task
from judged_candidates import ROWS, TASKS, honest, kernel_without_forward
from native_attacks import TASK, attacker

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

HONEST = {candidate.name: candidate for candidate in honest()}
ROWS_OF_64 = 1 << 20  # 256 MiB of float32
LONG_ENOUGH = 1 << 18  # rows of a call that takes so long that a busy host tells it from next to nothing
SIZED = """

def get_inputs():
    return [torch.randn({rows}, 64)]
"""
LIBRARY_ALONE = """

def forward(module, x):
    return torch.relu(x) * module.weight
"""


def confirmed(worker: Worker, path: Path, call_ms: float | None = None, task: Task = TASK) -> Confirmation:
    return worker.confirm(task, path, Claim("kept", call_ms), device="cuda", dynamic_dims=ROWS)


def scaled(folder: Path, rows: int) -> Task:
    file = folder / "task.py"
    file.write_text((TASKS / "scaled_task.py").read_text() + SIZED.format(rows=rows))
    return Task(str(file), "Scaled")


def measured_ms(worker: Worker, task: Task, path: Path) -> float:
    timing = worker.time(task, path, arms=("candidate",), quick=True)
    (measured,) = [arm.median_ms for arm in timing.arms if arm.name == "candidate"]
    return measured


@pytest.fixture
def large(tmp_path: Path) -> Task:
    return scaled(tmp_path, ROWS_OF_64)


@contextmanager
def busy_host() -> Iterator[None]:
    """Twice as many processes as processors, none of which ever waits."""
    count = 2 * (os.cpu_count() or 1)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.mark.parametrize(
    "name", ["plain", "kernelbench", "a_view_is_all", "library_for_a_part", "two_kernels_one_host"]
)
def test_an_honest_kernel_is_confirmed(worker: Worker, name: str):
    candidate = HONEST[name]
    confirmation = confirmed(worker, candidate.path, task=candidate.task)
    assert (confirmation.ok, confirmation.findings) == (True, ())


def test_a_time_is_confirmed_and_a_false_one_is_not(worker: Worker, large: Task):
    path = HONEST["plain"].path
    measured = measured_ms(worker, large, path)
    confirmation = confirmed(worker, path, measured, large)
    assert (confirmation.ok, confirmation.findings) == (True, ())
    assert ROWS_OF_64 * 64 > WHOLE
    assert confirmation.checks[0] == f"fresh inputs: {BLOCKS * PART} of {ROWS_OF_64 * 64} elements of output 0"
    false = confirmed(worker, path, measured / 20, large)
    print(f"measured {measured:.4f} ms; {false.findings}")
    assert (false.ok, [each.kind for each in false.findings]) == (False, ["time-not-confirmed"])


@pytest.mark.parametrize("rows", [6, 5000, LONG_ENOUGH])
def test_microseconds_are_confirmed_and_a_tenth_of_what_can_be_told_is_not(worker: Worker, tmp_path: Path, rows: int):
    """5000 rows: an output of several dimensions that is no whole number of parts, nor one of them."""
    path, task = HONEST["plain"].path, scaled(tmp_path, rows)
    measured = measured_ms(worker, task, path)
    confirmation = confirmed(worker, path, measured, task)
    print(f"{rows} rows: measured {measured * 1e3:.1f} µs; {confirmation.checks[-2:]}")
    assert (confirmation.ok, confirmation.findings) == (True, ())
    low, high = map(float, re.findall(r"[0-9.]+(?= to | ms each)", confirmation.checks[-2]))
    assert confirmation.checks[-2].startswith("64 calls in a CUDA graph: ")
    assert low <= 1.5 * measured + 0.05
    assert high >= measured / 2
    assert confirmation.checks[-1] == "a call launches 1 kernels, 1 of them of plain.py"
    if rows < LONG_ENOUGH:
        return
    false = confirmed(worker, path, measured / 10, task)
    print(f"a tenth: {false.checks[-2:]} {false.findings}")
    assert (false.ok, [each.kind for each in false.findings]) == (False, ["time-not-confirmed"])


def test_a_true_time_is_confirmed_on_a_busy_host(worker: Worker, tmp_path: Path):
    for rows in (6, 1 << 14):
        task = scaled(tmp_path, rows)
        measured = measured_ms(worker, task, HONEST["plain"].path)
        with busy_host():
            confirmation = confirmed(worker, HONEST["plain"].path, measured, task)
        print(f"{rows} rows, busy: measured {measured * 1e3:.1f} µs; {confirmation.checks[-2:]}")
        assert (confirmation.ok, confirmation.findings) == (True, ())


@pytest.mark.parametrize(("name", "own"), [("two_kernels_one_host", 2), ("library_for_a_part", 1), ("kernelbench", 1)])
def test_what_a_call_launches_is_counted_by_the_driver(worker: Worker, name: str, own: int):
    candidate = HONEST[name]
    confirmation = confirmed(worker, candidate.path, 0.1, candidate.task)
    assert (confirmation.ok, confirmation.findings) == (True, ())
    assert f", {own} of them of {name}.py" in confirmation.checks[-1]


def test_a_file_whose_kernels_never_run_is_not_confirmed(worker: Worker, tmp_path: Path):
    path = tmp_path / "library_cute.py"
    path.write_text(kernel_without_forward() + LIBRARY_ALONE)
    confirmation = confirmed(worker, path, 0.1)
    assert (confirmation.ok, [each.kind for each in confirmation.findings]) == (False, ["not-confirmed"])
    assert "launches none of its kernels (scaled_kernel)" in confirmation.findings[0].message
    print(confirmation.findings[0].message)


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
