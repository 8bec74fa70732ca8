"""A person's kernel, checked like a generated one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from cutesmith_evaluator.types import Claim
from loop_rig import Rig
from scripted_evaluator import NO_DEVICE, Script, draft

_Device = Literal["auto", "none"]


def checked(rig: Rig, source: str, device: _Device = "auto") -> dict[str, Any]:
    kernel = rig.root / "mine.py"
    kernel.write_text(source)
    return rig.run(job=replace(rig.job, kind="check", candidates=(str(kernel),), device=device))


def test_a_persons_kernel_is_judged_like_a_generated_one(rig: Rig):
    done = checked(rig, draft(Script(ms=1.5), t=1).source)
    (candidate,) = done["report"]["candidates"]
    assert done["exit"] == 0
    assert (candidate["origin"], candidate["ok"], candidate["precision"]) == ("user", True, "kept")
    assert candidate["path"] == str(rig.root / "mine.py")
    assert candidate["speedup"]["eager"] == pytest.approx(4 / 1.5)
    assert done["report"]["stopped"] == "mine.py was validated and timed."
    assert rig.evaluator.asked("validate") == ["{'t': 1}"]
    assert [each.method for each in rig.evaluator.requests[-4:]] == ["validate", "time", "confirm", "profile"]
    assert rig.evaluator.requests[-4].kwargs["quick"] is False
    assert rig.evaluator.requests[-2].kwargs == {"claim": Claim("kept", 1.5), "device": "cuda"}


@pytest.mark.parametrize(
    ("script", "stage"),
    [
        (Script(compile="fails"), "compile"),
        (Script(full="fails"), "validate"),
        (Script(timing="fails"), "time"),
        (Script(confirmed="fails"), "validate"),
    ],
)
def test_a_persons_kernel_that_fails_is_no_candidate(rig: Rig, script: Script, stage: str):
    done = checked(rig, draft(script, t=1).source)
    (candidate,) = done["report"]["candidates"]
    assert (done["exit"], candidate["ok"], candidate["stage"]) == (3, False, stage)
    assert done["report"]["stopped"].startswith(f"mine.py failed at {stage}: ")
    assert candidate["findings"][0]["file"] == str(rig.root / "mine.py")


def test_a_check_without_a_device_is_compiled_only(rig: Rig):
    rig.evaluator.environment = NO_DEVICE
    done = checked(rig, draft(Script(), t=1).source, device="none")
    assert (done["exit"], done["report"]["candidates"][0]["ok"]) == (4, None)
    assert (
        done["report"]["stopped"] == "mine.py compiles; it was not validated: no device was to be used (device none)."
    )


def test_a_check_of_no_file_is_refused(rig: Rig):
    done = rig.run(job=replace(rig.job, kind="check", candidates=(str(rig.root / "none.py"),)))
    assert (done["exit"], done["report"]["findings"][0]["kind"]) == (2, "unreadable-file")


def test_a_kernel_that_cannot_be_confirmed_is_not_said_to_be_right(rig: Rig):
    done = checked(rig, draft(Script(confirmed="unknown"), t=1).source)
    (candidate,) = done["report"]["candidates"]
    assert (done["exit"], candidate["ok"], candidate["stage"]) == (4, None, "validate")
    assert done["report"]["stopped"].startswith("mine.py compiles; it was not validated: ")
    assert "is not confirmed" in done["report"]["stopped"]
