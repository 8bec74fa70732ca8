"""Random editor sessions (tests/helpers/editor_machine.py); FUZZ_STEPS and FUZZ_SEED set how many and which.

Not among the tests that every change runs: minutes on a busy machine. `make fuzz-editor` runs it."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from editor_machine import EditorMachine

STEPS_EACH = 200


@pytest.mark.timeout(0 if "FUZZ_STEPS" in os.environ else 300)
def test_random_sessions_lose_no_edit_and_misplace_no_kernel(pair_jobs):
    EditorMachine.project, EditorMachine.pristine = pair_jobs
    EditorMachine.steps = 0
    EditorMachine.done.clear()
    wanted, seed = int(os.environ.get("FUZZ_STEPS", "2000")), int(os.environ.get("FUZZ_SEED", "0"))
    hypothesis.seed(seed)(EditorMachine)
    run_state_machine_as_test(
        EditorMachine,
        settings=settings(
            max_examples=max(wanted // STEPS_EACH, 1),
            stateful_step_count=STEPS_EACH,
            deadline=None,
            database=None,
            phases=[Phase.generate] if "FUZZ_STEPS" in os.environ else [Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{EditorMachine.steps} steps, seed {seed}: {dict(EditorMachine.done)}")
    if wanted >= 2000:
        assert {"accept", "reject", "remove", "review", "generate", "cancel"} <= EditorMachine.done.keys()
    assert EditorMachine.steps >= wanted // 2
    assert Path(EditorMachine.project).exists()
