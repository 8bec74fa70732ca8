"""The loop where there is no device, it must not be used, or no worker starts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutesmith_evaluator.client import WorkerUnavailable
from loop_rig import Rig, best
from scripted_evaluator import BYTES, H200, NO_DEVICE, Request, Script, draft


def test_without_a_device_the_first_that_compiles_is_offered_as_compiled(rig: Rig):
    rig.evaluator.environment = NO_DEVICE
    drafts = (draft(Script(compile="fails"), t=1), draft(Script(), t=2), draft(Script(), t=3))
    done = rig.run(*drafts, job=replace(rig.job, device="none"))
    report, final = done["report"], best(done["report"])
    assert done["exit"] == 4
    assert (final["ok"], final["stage"], final["schedule"]) == (None, "compile", {"t": 2})
    assert {one["arch"] for one in final["resources"]} == {"sm_90a", "sm_80", "sm_100a"}
    assert [one["kind"] for one in final["findings"]] == ["no-device"]
    assert report["estimate_ms"] == pytest.approx(BYTES / 4.2e12 * 1e3)
    assert (
        "not validated: no device was to be used (device none); at best 1 ms, an estimate: 4200.0 MB"
        in report["stopped"]
    )
    assert "Compiled for sm_90a, sm_80, sm_100a" in report["kernel"]["source"]
    assert "not validated: no device." in report["kernel"]["source"]
    assert rig.evaluator.asked("time") == []
    last = rig.evaluator.requests[-1]
    assert (last.method, last.kernel_text) == ("validate", report["kernel"]["source"])


def test_without_a_device_auto_takes_the_emulated_one(rig: Rig):
    rig.evaluator.environment = NO_DEVICE
    done = rig.run(draft(Script(quick="fails"), t=1), draft(Script(), t=2), draft(Script(), t=3))
    report, final = done["report"], best(done["report"])
    assert done["exit"] == 0
    assert (final["ok"], final["stage"], final["schedule"], final["device"]) == (True, "validate", {"t": 2}, "emulated")
    assert "Right on the emulated device, compiled for sm_90a, sm_80, sm_100a, not timed" in report["stopped"]
    assert "an estimate: 4200.0 MB" in report["stopped"]
    assert "Right on the emulated device" in report["kernel"]["source"]
    assert rig.evaluator.asked("time") == []
    asked = [one.kwargs for one in rig.evaluator.requests if one.method == "validate"]
    assert {(one["device"], one["arch"]) for one in asked} == {("emulated", "sm_90a")}


def test_what_the_emulated_device_cannot_confirm_is_offered_as_compiled(rig: Rig):
    rig.evaluator.environment = NO_DEVICE
    done = rig.run(draft(Script(confirmed="unknown"), t=1))
    final = best(done["report"])
    assert (done["exit"], final["ok"]) == (4, None)
    assert "not-confirmed" in {finding["kind"] for finding in final["findings"]}
    assert "not validated" in done["report"]["stopped"]
    assert "Right on" not in done["report"]["kernel"]["source"]


def test_device_none_leaves_a_device_alone(rig: Rig):
    done = rig.run(draft(Script(), t=1), job=replace(rig.job, device="none", archs=("sm_80",)))
    assert done["exit"] == 4
    assert rig.evaluator.asked("time") == []
    assert all(one.kwargs["device"] == "none" for one in rig.evaluator.requests if one.method == "validate")
    assert {one.kwargs["archs"] for one in rig.evaluator.requests if one.method == "compile"} == {("sm_80",)}


def test_device_cuda_without_one_is_refused(rig: Rig):
    rig.evaluator.environment = NO_DEVICE
    done = rig.run(draft(Script(), t=1), job=replace(rig.job, device="cuda"))
    assert done["exit"] == 2
    assert done["report"]["stopped"] == "python sees no CUDA device: use device auto, emulated or none."


@pytest.mark.parametrize(("field", "name"), [("torch", "torch"), ("dsl", "nvidia-cutlass-dsl")])
def test_an_interpreter_without_what_is_needed_is_refused(rig: Rig, field: str, name: str):
    rig.evaluator.environment = replace(H200, **{field: None})
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 2
    assert done["report"]["stopped"].startswith(f"python has no {name}: install it there")


def test_no_worker_at_all_is_unusable_input(rig: Rig):
    def refuse(request: Request) -> None:
        raise WorkerUnavailable("No worker starts in python: choose another interpreter.")

    rig.evaluator.interrupt = refuse
    done = rig.run(draft(Script(), t=1))
    assert (done["exit"], done["report"]["findings"][0]["kind"]) == (2, "worker-unavailable")
