"""The loop on a scripted device: which requests it makes, what it offers in the end, and what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutesmith_agent.recipes.contract import Draft
from cutesmith_evaluator.types import Claim
from loop_rig import Rig, best
from scripted_evaluator import Script, draft


def test_the_fastest_draft_is_proved_in_its_final_bytes_and_offered(rig: Rig):
    before = rig.tree()
    done = rig.run(draft(Script(ms=2.0), t=1), draft(Script(ms=1.5), t=2), draft(Script(ms=1.8), t=3))
    report, final = done["report"], best(done["report"])
    assert done["exit"] == 0
    assert (final["ok"], final["stage"], final["precision"], final["schedule"]) == (True, "done", "kept", {"t": 2})
    gains = {"eager": pytest.approx(4 / 1.5), "compile": pytest.approx(2.2 / 1.5), "max_autotune": None}
    assert final["speedup"] == gains
    assert report["stopped"] == "Validated and timed after 3 of 3 schedules, all were tried."
    assert len(report["candidates"]) == 4
    kernel = report["kernel"]
    assert kernel["path"] == str(rig.root / "pkg" / "new_gelu_cute.py")
    assert Path(final["path"]).read_text() == kernel["source"]
    assert "Measured on NVIDIA H200 (driver 580.1), torch 2.13.0, CuTe DSL 4.8.1" in kernel["source"]
    assert "rms 2.0e-07, max 4.0e-07 (eager: 2.0e-07, 5.0e-07); precision kept." in kernel["source"]
    assert "1.5000 ms, 67% of the copy bandwidth (4200 GB/s); 2.67 × eager; 1.47 × torch.compile." in kernel["source"]
    last, confirming = rig.evaluator.requests[-2:]
    assert confirming.method == "confirm"
    assert last.method == "validate"
    assert last.kernel_text == kernel["source"]
    assert "from . import new_gelu_cute\n" in last.patched_text
    assert "if new_gelu_cute.supports(self, x):" in last.patched_text
    assert "+from . import new_gelu_cute" in report["patch"]
    assert "+++ b/pkg/gelu.py" in report["patch"]
    assert rig.tree() == before


def test_the_winner_is_profiled_once_it_is_measured(rig: Rig):
    final = best(rig.run(draft(Script(ms=2.0), t=1), draft(Script(ms=1.5), t=2))["report"])
    assert rig.evaluator.asked("profile") == ["{'t': 2}"]
    profile = final["profile"]
    assert [kernel["kernel"] for kernel in profile["measured"]] == ["kernel"]
    assert profile["limiter"] == "latency"
    assert profile["roofline"]["reached"] == pytest.approx(1 / 1.5)
    assert "9.0 warps wait for global memory" in " ".join(hint["message"] for hint in profile["hints"])


def test_max_autotune_is_timed_where_it_is_asked_for(rig: Rig):
    job = replace(rig.job, max_autotune=True)
    rig.run(draft(Script(ms=2.0), t=1), job=job)
    assert rig.evaluator.asked("time", arms=("candidate", "eager", "compile", "max-autotune"))
    assert not rig.evaluator.asked("time", arms=("candidate", "eager", "compile"))


def test_drafts_are_tried_quickly_and_the_winner_is_measured_fully_in_a_fresh_process(rig: Rig):
    rig.run(draft(Script(ms=2.0), t=1), draft(Script(ms=1.5), t=2))
    one, two = "{'t': 1}", "{'t': 2}"
    evaluator = rig.evaluator
    assert evaluator.asked("validate", quick=True) == [one, two, two]  # the last: the final bytes, and the patched file
    assert evaluator.asked("time", quick=True, arms=("candidate",)) == [one, two]
    assert evaluator.asked("validate", quick=False) == [two]
    assert evaluator.asked("time", quick=False, arms=("candidate", "eager", "compile")) == [two]
    assert [request.fresh for request in evaluator.requests if request.method == "time"] == [False, False, True]
    assert all(
        request.kwargs["dynamic_dims"] == (((0, 0),),) for request in evaluator.requests if request.method == "validate"
    )
    assert {request.kwargs.get("archs") for request in evaluator.requests if request.method == "compile"} == {
        ("sm_90a",)
    }


def test_the_roofline_ends_the_tuning(rig: Rig):
    report = rig.run(draft(Script(ms=1.0), t=1), draft(Script(ms=0.9), t=2))["report"]
    assert report["stopped"] == (
        "Validated and timed after 1 of 2 schedules, the best moves data at 100% of the copy bandwidth."
    )


def test_drafts_that_fail_die_or_hang_are_kept_with_their_findings_and_the_next_is_tried(rig: Rig):
    done = rig.run(
        draft(Script(compile="fails"), t=1),
        draft(Script(quick="dies"), t=2),
        draft(Script(quick="fails"), t=3),
        draft(Script(timing="hangs"), t=4),
        draft(Script(timing="fails"), t=5),
        draft(Script(), t=6),
    )
    candidates = done["report"]["candidates"]
    assert done["exit"] == 0
    assert [one["ok"] for one in candidates] == [False, False, False, False, False, True, True]
    assert [one["stage"] for one in candidates[:5]] == ["compile", "validate", "validate", "time", "time"]
    kinds = [finding["kind"] for one in candidates for finding in one["findings"]]
    assert kinds == ["compile-error", "worker-died", "wrong-values", "timeout", "output-drifts"]
    first = candidates[0]["findings"][0]
    assert (first["line"], first["file"]) == (7, candidates[0]["path"])
    assert candidates[0]["path"].endswith(f"{candidates[0]['id']}/new_gelu_cute.py")


def test_a_draft_that_is_no_kernel_file_never_reaches_the_worker(rig: Rig):
    source = "import torch\nimport cutlass\n\ndef supports(m): ...\n"
    done = rig.run(Draft(source, {"t": 1}), Draft("def (", {"t": 2}), draft(Script(), t=3))
    findings = [finding for one in done["report"]["candidates"][:2] for finding in one["findings"]]
    assert [(one["kind"], one["line"]) for one in findings] == [
        ("not-a-candidate", 1),
        ("early-import", 2),
        ("syntax-error", 1),
    ]
    assert rig.evaluator.asked("compile") == ["{'t': 3}"]


def test_a_winner_that_fails_its_last_proof_makes_room_for_the_next(rig: Rig):
    drafts = (
        draft(Script(ms=1.5, full="fails"), t=1),
        draft(Script(ms=1.6, patched="fails"), t=2),
        draft(Script(ms=1.7), t=3),
    )
    done = rig.run(*drafts)
    assert done["exit"] == 0
    assert best(done["report"])["schedule"] == {"t": 3}
    failed = [one for one in done["report"]["candidates"] if one["ok"] is False]
    assert [one["schedule"]["t"] for one in failed] == [1, 2]
    finding = failed[1]["findings"][-1]
    assert finding["file"] == str(rig.file)
    assert finding["message"] == f"{rig.file} gives other values."


def test_a_winner_that_is_not_confirmed_makes_room_for_the_next(rig: Rig):
    done = rig.run(draft(Script(ms=1.5, confirmed="fails"), t=1), draft(Script(ms=1.7), t=2))
    assert best(done["report"])["timing"]["arms"][0]["median_ms"] == 1.7
    assert rig.evaluator.asked("confirm") == ["{'t': 1}", "{'t': 2}"]
    claims = [each.kwargs["claim"] for each in rig.evaluator.requests if each.method == "confirm"]
    assert claims == [Claim("kept", 1.5), Claim("kept", 1.7)]


def test_when_all_fail_the_first_reason_is_given(rig: Rig):
    done = rig.run(draft(Script(compile="fails"), t=1), draft(Script(quick="fails"), t=2))
    assert done["exit"] == 3
    assert done["report"]["best"] is None
    assert done["report"]["kernel"] is None
    assert done["report"]["stopped"] == "No kernel: all 2 failed: It does not compile."


def test_when_the_only_one_fails_it_is_said_so(rig: Rig):
    done = rig.run(draft(Script(compile="fails"), t=1))
    assert done["report"]["stopped"] == "No kernel: the only one failed: It does not compile."


@pytest.mark.parametrize("proof", ["full", "patched"])
def test_drafts_that_were_not_proved_are_not_counted_as_failed(rig: Rig, proof: str):
    """The three fastest of five fail their last proof, whether before or after their header was written."""
    bad = [draft(Script(ms=1.5 + t / 10, **{proof: "fails"}), t=t) for t in range(3)]
    done = rig.run(draft(Script(compile="fails"), t=8), *bad, draft(Script(ms=9.0), t=9))
    assert done["exit"] == 3
    said, _, why = done["report"]["stopped"].partition(" proof: ")
    assert said == "No kernel: 4 of 5 failed, the fastest of them in their last"
    assert why.endswith("gives other values.")


def test_baselines_that_cannot_be_timed_are_no_fault_of_the_kernel(rig: Rig):
    done = rig.run(draft(Script(baselines="dies"), t=1))
    final = best(done["report"])
    assert done["exit"] == 0
    assert final["speedup"] == {"eager": None, "compile": None, "max_autotune": None}
    assert [(one["kind"], one["severity"]) for one in final["findings"]] == [("worker-died", "warning")]
    assert final["timing"]["arms"][0]["median_ms"] == 2.0


def test_a_kernel_that_gains_nothing_is_offered_and_said_to_be_so(rig: Rig):
    done = rig.run(draft(Script(ms=3.0, compile_ms=2.0), t=1))
    assert done["exit"] == 0
    (finding,) = done["report"]["findings"]
    assert finding["message"] == "The kernel takes 3 ms, torch.compile 2 ms: accepting it gains nothing there."
