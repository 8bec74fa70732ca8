"""Random editor sessions (tests/helpers/editor_machine.py), as FUZZ_STEPS and FUZZ_SEED say: `make fuzz-editor`.

Two thousand steps of them are among the tests that every change runs (test_two_kernels.py)."""

from __future__ import annotations

import os

import pytest

from editor_machine import run_sessions


@pytest.mark.timeout(0)
def test_random_sessions_lose_no_edit_and_misplace_no_kernel(pair_jobs, monkeypatch):
    monkeypatch.setenv("CUTESMITH_SANDBOX", "0")  # a shell script is no Python to keep in one
    wanted, seed = int(os.environ.get("FUZZ_STEPS", "2000")), int(os.environ.get("FUZZ_SEED", "0"))
    ran = run_sessions(wanted, seed, *pair_jobs)
    print(f"{ran.steps} steps, seed {seed}: {dict(ran.done)}")
    assert ran.steps >= wanted // 2
