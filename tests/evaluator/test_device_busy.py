"""A device that others use: waited for with a message and a bound, and said where they do not end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.deadline import WAITING_FOR_DEVICE, Deadline
from cutesmith_evaluator.turns import busy_finding, turn
from cutesmith_evaluator.worker.device_load import await_device

HOLDS = """
import sys
from cutesmith_evaluator.turns import turn
with turn(alone={}):
    print(1, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the lock files, also in other processes."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def other_process(*, alone: bool) -> subprocess.Popen[str]:
    """Another process in its turn, until its standard input is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS.format(alone)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    return process


@pytest.mark.parametrize(("theirs", "ours", "waits"), [(0, 0, False), (0, 1, True), (1, 0, True), (1, 1, True)])
def test_many_validate_and_one_measures_alone(theirs: int, ours: int, waits: bool):
    said: list[str] = []
    with other_process(alone=bool(theirs)) as process:
        with turn(alone=bool(ours), on_progress=said.append, wait_s=0.3) as is_ours:
            assert is_ours is not waits
        assert any("another CuteSmith job" in each for each in said) is waits
        process.kill()
        process.wait()
        with turn(alone=bool(ours), wait_s=5.0) as is_ours:
            assert is_ours  # a dead process has given its turn back


def test_every_device_has_its_own_turn(monkeypatch: pytest.MonkeyPatch):
    with other_process(alone=True) as process:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        with turn(alone=True, wait_s=0.0) as is_ours:
            assert is_ours
        process.kill()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "../7")
    (tmp_path / f"cutesmith-device-{os.getuid()}-___7.lock").symlink_to(tmp_path / "precious")
    with turn(alone=True) as is_ours:
        assert is_ours
    assert not (tmp_path / "precious").exists()


def test_the_finding_says_what_to_do():
    finding = busy_finding()
    assert (finding.kind, finding.severity) == ("device-busy", "warning")
    assert "check again" in finding.message


@pytest.mark.parametrize(("readings", "finds"), [([], False), (["90 % busy"], False), (["90 % busy"] * 1000, True)])
def test_other_programs_are_waited_for(readings: list[str], finds: bool):
    said: list[str] = []
    left = list(readings)
    load = lambda: left.pop() if left else None  # noqa: E731
    finding = await_device(torch.device("cuda", 0), said.append, 0.05, load)
    assert (finding is not None) is finds
    assert bool(said) is bool(readings)
    assert finding is None or "90 % busy" in finding.message


def test_waiting_for_a_device_is_not_a_candidates_time_but_bounded():
    """A candidate was called too slow as another program kept the device busy; the words could be a candidate's own."""
    deadline = Deadline(0.2, os.getpid(), most_waited_s=1.0)
    waiting = f"{WAITING_FOR_DEVICE}: another program keeps it 99 % busy"
    for doing, passes in ((waiting, False), ("validating", True)):
        for _ in range(6):
            time.sleep(0.05)
            deadline.look(doing)
        assert deadline.has_passed is passes
    endless = Deadline(0.2, os.getpid(), most_waited_s=0.1)
    for _ in range(10):
        time.sleep(0.05)
        endless.look(waiting)
    assert endless.has_passed
