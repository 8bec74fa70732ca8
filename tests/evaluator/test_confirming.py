"""A candidate that reaches the judge beside it reaches none in another process. Emulated device; no static guards."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cutesmith_evaluator import confirming_race
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.processes import descendants, has_ended
from cutesmith_evaluator.types import Claim, Confirmation, Finding, Task
from judged_candidates import ROWS, TASKS, honest
from native_attacks import TASK, attacker

DRAWN_ANEW = """

def get_inputs():
    generator = torch.Generator()
    generator.seed()
    return [torch.randn(6, 64, generator=generator)]
"""
HANGS = """
import torch


def supports(module, *inputs):
    return True


def explain(module, *inputs):
    return None


def warm_up(module, *inputs):
    pass


def forward(module, *inputs):
    while True:
        pass
"""
HONEST = {candidate.name: candidate for candidate in honest()}


def confirmed(worker: Worker, path: Path, call_ms: float | None = None) -> Confirmation:
    return worker.confirm(TASK, path, Claim("kept", call_ms), device="emulated", dynamic_dims=ROWS)


def the_finding(confirmation: Confirmation) -> Finding:
    assert confirmation.ok is False
    finding = confirmation.findings[0]
    assert finding.severity == "error"
    assert finding.message.endswith(".")
    return finding


@pytest.mark.parametrize(
    "name", ["patches_code_in_memory", "swaps_a_method_of_torch", "copies_the_reference", "forges_the_verdict"]
)
def test_what_beats_the_judge_beside_it_is_not_confirmed(name: str, tmp_path: Path):
    path = attacker(name, tmp_path)
    with Worker(Path(sys.executable)) as worker:  # one that nobody else uses: it is in the attacker's hands
        fooled = worker.validate(TASK, path, device="emulated", quick=True)
        assert (fooled.ok, [each for each in fooled.findings if each.severity == "error"]) == (True, [])
        finding = the_finding(confirmed(worker, path))
    assert finding.kind == "not-confirmed"
    assert finding.file == str(path)


def test_a_process_that_says_it_computed_hardly_anything_is_not_confirmed(worker: Worker, tmp_path: Path):
    finding = the_finding(confirmed(worker, attacker("says_it_computed_little", tmp_path, right=True)))
    assert finding.kind == "not-confirmed"
    assert "only 1 of 384 elements of the output were computed" in finding.message


def test_a_result_made_after_the_clock_has_stopped_is_seen(worker: Worker, tmp_path: Path):
    finding = the_finding(confirmed(worker, attacker("answers_before_it_works", tmp_path, right=True), call_ms=1e3))
    assert "the output is another than the one that was made while the clock ran" in finding.message


def test_a_replay_of_nothing_is_seen_and_one_that_works_is_right(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Where there is no CUDA graph an attacker speaks for one: what a replay gives is judged by the inputs it had."""
    for name, few in (("ROUNDS", 1), ("MORE_ROUNDS", 1), ("CALLS", 2), ("REPLAYED", 4)):
        monkeypatch.setattr(confirming_race, name, few)
    path = attacker("replays_nothing", tmp_path, right=True)
    finding = the_finding(confirmed(worker, path, call_ms=0.4))
    assert finding.kind == "not-confirmed"
    assert "On inputs of a timed call" in finding.message
    path.write_text(path.read_text().replace("WORKS = False", "WORKS = True"))
    confirmation = confirmed(worker, path, call_ms=0.4)
    assert [each.kind for each in confirmation.findings] in ([], ["time-not-confirmed"]), "no emulated call is fast"
    timed = [each for each in confirmation.checks if each.startswith("inputs of a timed call: 384 of 384 elements")]
    words = "two of each of one or two rounds, and one of each of as many replays: one that is fast enough is the last"
    assert 2 * 1 + 1 <= len(timed) <= 2 * 2 + 2, words


def test_an_honest_kernel_is_confirmed_and_a_time_that_no_other_clock_has_seen_is_not(worker: Worker):
    confirmation = confirmed(worker, HONEST["plain"].path, call_ms=1e-3)
    assert len(confirmation.checks) == 3 + 9 * 2  # calls in turns, and two of each round against the clock, with more
    assert {each.partition(": ")[2] for each in confirmation.checks} == {"384 of 384 elements of output 0"}
    (finding,) = confirmation.findings
    assert (confirmation.ok, finding.kind) == (False, "time-not-confirmed")
    assert "but 0.001 ms by the events in the candidate's own" in finding.message


def test_inputs_that_are_other_in_each_process_are_said_to_be_so(worker: Worker, tmp_path: Path):
    task = tmp_path / "task.py"
    task.write_text((TASKS / "scaled_task.py").read_text() + DRAWN_ANEW)
    confirmation = worker.confirm(
        Task(str(task), "Scaled"), HONEST["plain"].path, Claim("kept"), device="emulated", dynamic_dims=ROWS
    )
    (finding,) = confirmation.findings
    assert (confirmation.ok, finding.kind, finding.severity) == (None, "not-confirmed", "information")
    assert "draw them with torch's, random's or numpy's own generators" in finding.message


def test_what_takes_too_long_is_not_confirmed_and_not_refused_either(worker: Worker, tmp_path: Path):
    path = tmp_path / "hangs_cute.py"
    path.write_text(HANGS)
    confirmation = worker.confirm(TASK, path, Claim("kept"), device="emulated", dynamic_dims=ROWS, deadline_s=8.0)
    (finding,) = confirmation.findings
    assert (confirmation.ok, finding.kind, finding.severity) == (None, "not-confirmed", "information")
    assert "could not be confirmed in processes of their own: Stopped after" in finding.message


def test_processes_that_were_started_beforehand_confirm_once_and_are_replaced_where_they_ended():
    others = set(descendants(os.getpid()))  # of tests that share this process
    with Worker(Path(sys.executable)) as worker:
        worker.expect_confirmation()
        expected = set(descendants(os.getpid())) - others
        for pid in expected:
            with suppress(ProcessLookupError):  # in a sandbox it ended with its parent
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: all(map(has_ended, expected & set(descendants(os.getpid())))))
        assert confirmed(worker, HONEST["plain"].path).ok is True
        assert not set(descendants(os.getpid())) & expected
        worker.expect_confirmation()
        waiting = set(descendants(os.getpid())) - others
        assert confirmed(worker, HONEST["plain"].path).ok is True
        worker.expect_confirmation()
        again = set(descendants(os.getpid())) - others
        assert not again & waiting
    assert not set(descendants(os.getpid())) & again


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
