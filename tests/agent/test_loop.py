"""The loop on a scripted device: which requests it makes, what it offers in the end, and what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from cutesmith_agent.job import Job
from cutesmith_agent.loop import Proposer
from cutesmith_agent.recipes.contract import Draft
from cutesmith_agent.running import run_job
from cutesmith_agent.store.opening import open_store
from cutesmith_evaluator.client import WorkerUnavailable
from cutesmith_evaluator.types import Finding, Inspection, Task
from scripted_evaluator import (
    BYTES,
    H200,
    NO_DEVICE,
    Request,
    Script,
    ScriptedEvaluator,
    draft,
    proposing,
    with_header,
)

MODULE = (
    "import torch\nfrom torch import nn\n\n\nclass NewGELU(nn.Module):\n    def forward(self, x):\n        return x\n"
)


@dataclass
class Rig:
    """A project in a folder with one module, an evaluator, and what a job in it said."""

    root: Path
    evaluator: ScriptedEvaluator = field(default_factory=ScriptedEvaluator)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def file(self) -> Path:
        return self.root / "pkg" / "gelu.py"

    @property
    def job(self) -> Job:
        return Job("optimize", Task(str(self.file), "NewGELU"), str(self.root), "python")

    def run(self, *drafts: Draft, job: Job | None = None, findings: tuple[Finding, ...] = ()) -> dict[str, Any]:
        """The "done" event."""
        proposer = Proposer(proposing(*drafts, findings=findings), with_header)
        run_job(job or self.job, lambda: self.evaluator, proposer, self.events.append)
        json.dumps(self.events)
        assert self.events[-1]["event"] == "done"
        return self.events[-1]

    def tree(self) -> dict[str, bytes]:
        files = [path for path in self.root.rglob("*") if path.is_file() and ".cutesmith" not in path.parts]
        return {str(path): path.read_bytes() for path in files}


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    root = tmp_path / "project"
    (root / "pkg").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "pkg" / "__init__.py").write_text("")
    (root / "pkg" / "blocks.py").write_text("X = 1\n")
    (root / "pkg" / "gelu.py").write_text(MODULE)
    return Rig(root)


def best(report: dict[str, Any]) -> dict[str, Any]:
    (found,) = [one for one in report["candidates"] if one["id"] == report["best"]]
    return found


def test_the_fastest_draft_is_proved_in_its_final_bytes_and_offered(rig: Rig):
    before = rig.tree()
    done = rig.run(draft(Script(ms=2.0), t=1), draft(Script(ms=1.5), t=2), draft(Script(ms=1.8), t=3))
    report, final = done["report"], best(done["report"])
    assert done["exit"] == 0
    assert (final["ok"], final["stage"], final["precision"], final["schedule"]) == (True, "done", "kept", {"t": 2})
    assert final["speedup"] == {"eager": pytest.approx(4 / 1.5), "compile": pytest.approx(2.2 / 1.5)}
    assert report["stopped"] == "Validated and timed after 3 of 3 schedules, all were tried."
    assert len(report["candidates"]) == 4
    kernel = report["kernel"]
    assert kernel["path"] == str(rig.root / "pkg" / "new_gelu_cute.py")
    assert Path(final["path"]).read_text() == kernel["source"]
    assert "Measured on NVIDIA H200 (driver 580.1), torch 2.13.0, CuTe DSL 4.8.1" in kernel["source"]
    assert "rms 2.0e-07, max 4.0e-07 (eager: 2.0e-07, 5.0e-07); precision kept." in kernel["source"]
    assert "1.5000 ms, 67% of the copy bandwidth (4200 GB/s); 2.67 × eager; 1.47 × torch.compile." in kernel["source"]
    last = rig.evaluator.requests[-1]
    assert last.method == "validate"
    assert last.kernel_text == kernel["source"]
    assert "from . import new_gelu_cute\n" in last.patched_text
    assert "if new_gelu_cute.supports(self, x):" in last.patched_text
    assert "+from . import new_gelu_cute" in report["patch"]
    assert "+++ b/pkg/gelu.py" in report["patch"]
    assert rig.tree() == before


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
    report = rig.run(draft(Script(ms=1.01), t=1), draft(Script(ms=1.0), t=2))["report"]
    assert report["stopped"] == (
        "Validated and timed after 1 of 2 schedules, the best moves data at 99% of the copy bandwidth."
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


def test_when_all_fail_the_first_reason_is_given(rig: Rig):
    done = rig.run(draft(Script(compile="fails"), t=1), draft(Script(quick="fails"), t=2))
    assert done["exit"] == 3
    assert done["report"]["best"] is None
    assert done["report"]["kernel"] is None
    assert done["report"]["stopped"] == "No kernel: none of 2 failed: It does not compile."


def test_baselines_that_cannot_be_timed_are_no_fault_of_the_kernel(rig: Rig):
    done = rig.run(draft(Script(baselines="dies"), t=1))
    final = best(done["report"])
    assert done["exit"] == 0
    assert final["speedup"] == {"eager": None, "compile": None}
    assert [(one["kind"], one["severity"]) for one in final["findings"]] == [("worker-died", "warning")]
    assert final["timing"]["arms"][0]["median_ms"] == 2.0


def test_a_kernel_that_gains_nothing_is_offered_and_said_to_be_so(rig: Rig):
    done = rig.run(draft(Script(ms=3.0, compile_ms=2.0), t=1))
    assert done["exit"] == 0
    (finding,) = done["report"]["findings"]
    assert (
        finding["message"] == "The kernel takes 3.0000 ms, torch.compile 2.0000 ms: accepting it gains nothing there."
    )


def test_without_a_device_the_first_that_compiles_is_offered_as_compiled(rig: Rig):
    rig.evaluator.environment = NO_DEVICE
    done = rig.run(draft(Script(compile="fails"), t=1), draft(Script(), t=2), draft(Script(), t=3))
    report, final = done["report"], best(done["report"])
    assert done["exit"] == 4
    assert (final["ok"], final["stage"], final["schedule"]) == (None, "compile", {"t": 2})
    assert {one["arch"] for one in final["resources"]} == {"sm_90a", "sm_80", "sm_100a"}
    assert [one["kind"] for one in final["findings"]] == ["no-device"]
    assert report["estimate_ms"] == pytest.approx(BYTES / 4.2e12 * 1e3)
    assert (
        "not validated: there is no device to tune on; at best 1.0000 ms, an estimate: 4200.0 MB" in report["stopped"]
    )
    assert "Compiled for sm_90a, sm_80, sm_100a" in report["kernel"]["source"]
    assert "not validated: no device." in report["kernel"]["source"]
    assert rig.evaluator.asked("time") == []
    last = rig.evaluator.requests[-1]
    assert (last.method, last.kernel_text) == ("validate", report["kernel"]["source"])


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
    assert done["report"]["stopped"] == "python sees no CUDA device: use device auto or none."


@pytest.mark.parametrize(("field", "name"), [("torch", "torch"), ("dsl", "nvidia-cutlass-dsl")])
def test_an_interpreter_without_what_is_needed_is_refused(rig: Rig, field: str, name: str):
    rig.evaluator.environment = replace(H200, **{field: None})
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 2
    assert done["report"]["stopped"].startswith(f"python has no {name}: install it there")


def test_a_module_no_recipe_covers_is_answered_with_the_op(rig: Rig):
    done = rig.run(findings=(Finding("no-recipe", "No recipe covers aten.sort.default.", 6, str(rig.file)),))
    assert done["exit"] == 3
    assert done["report"]["stopped"] == "No recipe covers aten.sort.default."
    assert done["report"]["findings"][0]["line"] == 6


def test_a_module_that_cannot_be_traced_is_unusable_input(rig: Rig):
    finding = Finding("no-inputs", "There are no inputs; add get_inputs().", 5, str(rig.file))
    rig.evaluator.inspection = Inspection(H200, None, ("x",), (finding,))
    done = rig.run(draft(Script(), t=1))
    assert (done["exit"], done["report"]["stopped"]) == (2, finding.message)
    assert done["report"]["device"] == "NVIDIA H200"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MODULE.replace("(self, x):\n        return", "(self, x): return"), "shares a line with its body"),
        (MODULE.replace("(self, x)", "(self, x, **kwargs)"), "takes **kwargs"),
        (MODULE + "\n\nclass NewGELU(nn.Module): pass\n", "more than once"),
        (MODULE.replace("NewGELU", "Other"), "no class NewGELU"),
        (MODULE + "\nx = (\n", "syntax error"),
    ],
)
def test_a_file_that_cannot_take_a_kernel_is_refused_before_any_work(rig: Rig, text: str, reason: str):
    rig.file.write_text(text)
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 2
    assert reason in done["report"]["stopped"]
    assert rig.evaluator.asked("compile") == []


def test_a_missing_file_is_refused(rig: Rig):
    rig.file.unlink()
    done = rig.run(draft(Script(), t=1))
    assert (done["exit"], done["report"]["stopped"]) == (
        2,
        f"{rig.file} cannot be read (No such file or directory); save it first.",
    )


@pytest.mark.parametrize("content", [b"# coding: utf-8\n\xff", b"# coding: klingon\n", MODULE.encode("utf-16")])
def test_a_file_that_cannot_be_decoded_is_refused(rig: Rig, content: bytes):
    rig.file.write_bytes(content)
    done = rig.run(draft(Script(), t=1))
    assert (done["exit"], done["report"]["findings"][0]["kind"]) == (2, "unreadable-file")


def test_text_that_cannot_be_encoded_is_refused(rig: Rig):
    done = rig.run(draft(Script(), t=1), job=replace(rig.job, source=MODULE + "# \ud800\n"))
    assert (done["exit"], done["report"]["findings"][0]["kind"]) == (2, "unreadable-file")


def test_no_worker_at_all_is_unusable_input(rig: Rig):
    def refuse(request: Request) -> None:
        raise WorkerUnavailable("No worker starts in python: choose another interpreter.")

    rig.evaluator.interrupt = refuse
    done = rig.run(draft(Script(), t=1))
    assert (done["exit"], done["report"]["findings"][0]["kind"]) == (2, "worker-unavailable")


def test_unsaved_text_is_what_is_inspected_patched_and_diffed(rig: Rig):
    unsaved = MODULE.replace("return x", "return x * 2  # ü").replace("\n", "\r\n")
    finding = Finding("note", "Something.", 6, None, "information")

    def place(request: Request) -> None:
        if request.method == "inspect":
            assert request.text == unsaved

    rig.evaluator.interrupt = place
    rig.evaluator.inspection = Inspection(
        H200, ScriptedEvaluator().inspect(Task(str(rig.file), "")).graph, ("x",), (finding,)
    )
    done = rig.run(draft(Script(), t=1), job=replace(rig.job, source=unsaved))
    assert done["exit"] == 0
    assert "return x * 2  # ü\r\n" in rig.evaluator.requests[-1].patched_text
    assert "+    def" not in done["report"]["patch"]
    assert "+        if new_gelu_cute.supports(self, x):\r\n" in done["report"]["patch"]
    assert rig.file.read_text() == MODULE


def test_a_kernel_that_is_there_already_is_not_its_own_reference(rig: Rig):
    guard = "        if new_gelu_cute.supports(self, x):\n            return new_gelu_cute.forward(self, x)\n"
    text = MODULE.replace("nn\n", "nn\n\nfrom . import new_gelu_cute\n", 1).replace(
        "        return x", guard + "        return x"
    )
    rig.file.write_text(text)
    (rig.root / "pkg" / "new_gelu_cute.py").write_text("# the accepted one\n")
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 0
    assert rig.evaluator.requests[0].text == MODULE
    assert rig.evaluator.requests[-1].patched_text == text
    assert done["report"]["kernel"]["path"] == str(rig.root / "pkg" / "new_gelu_cute.py")
    assert done["report"]["patch"] == ""


def test_a_strangers_file_of_the_kernels_name_is_not_replaced(rig: Rig):
    (rig.root / "pkg" / "new_gelu_cute.py").write_text("# mine\n")
    report = rig.run(draft(Script(), t=1))["report"]
    assert report["kernel"]["path"] == str(rig.root / "pkg" / "new_gelu_gelu_cute.py")
    assert "from . import new_gelu_gelu_cute" in report["patch"]
    (rig.root / "pkg" / "new_gelu_cute.py").write_text(report["kernel"]["source"])
    report = rig.run(draft(Script(), t=1))["report"]
    assert report["kernel"]["path"] == str(rig.root / "pkg" / "new_gelu_cute.py")


def test_every_step_is_a_row(rig: Rig):
    rig.run(draft(Script(ms=2.0), t=1), draft(Script(ms=1.5), t=2))
    with open_store(rig.root).store as store:
        job = store.latest(str(rig.file), "NewGELU")
        assert job is not None
        assert job.report == rig.events[-1]["report"]
        stages = [step.stage for step in store.transitions(job.id)]
        trial = ["propose", "compile", "validate", "time", "time"]
        assert stages == ["propose"] * 3 + trial * 2 + ["validate", "validate", "time", "validate", "done"]
        assert [one.id for one in store.candidates(job.id)] == [one["id"] for one in job.report["candidates"]]
    fractions = [event["fraction"] for event in rig.events if event["event"] == "stage"]
    assert fractions == sorted(fractions)


class PulledPlugError(BaseException):
    """The job is killed at this point."""


def pull_plug_at(method: str, tag: str, **kwargs: object) -> Callable[[Request], None]:
    def interrupt(request: Request) -> None:
        if (request.method, request.tag) == (method, tag) and kwargs.items() <= request.kwargs.items():
            raise PulledPlugError

    return interrupt


def test_an_interrupted_job_goes_on_where_it_was(rig: Rig):
    drafts = (draft(Script(ms=2.0), t=1), draft(Script(quick="fails"), t=2), draft(Script(ms=1.5), t=3))
    rig.evaluator.interrupt = pull_plug_at("time", "{'t': 3}", quick=True)
    with pytest.raises(PulledPlugError):
        rig.run(*drafts)
    rig.evaluator = ScriptedEvaluator()
    done = rig.run(*drafts, job=replace(rig.job, resume=True))
    assert rig.evaluator.asked("compile") == ["{'t': 3}"]
    assert rig.evaluator.asked("validate", quick=True) == ["{'t': 3}"] * 2  # the draft and the final bytes
    assert done["exit"] == 0
    assert [one["ok"] for one in done["report"]["candidates"]] == [True, False, True, True]
    assert best(done["report"])["schedule"] == {"t": 3}


def test_what_was_judged_elsewhere_or_before_an_edit_is_judged_anew(rig: Rig):
    drafts = (draft(Script(ms=2.0), t=1), draft(Script(ms=1.5), t=2))
    rig.evaluator.interrupt = pull_plug_at("time", "{'t': 2}", quick=True)
    with pytest.raises(PulledPlugError):
        rig.run(*drafts)
    rig.evaluator = ScriptedEvaluator(environment=replace(H200, torch="2.14.0"))
    rig.evaluator.interrupt = pull_plug_at("time", "{'t': 2}", quick=True)
    with pytest.raises(PulledPlugError):
        rig.run(*drafts, job=replace(rig.job, resume=True))
    assert rig.evaluator.asked("compile") == ["{'t': 1}", "{'t': 2}"]
    rig.evaluator = ScriptedEvaluator()
    rig.run(*drafts, job=replace(rig.job, resume=True, source=MODULE.replace("return x", "return x + 1")))
    assert rig.evaluator.asked("compile") == ["{'t': 1}", "{'t': 2}"]


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


def test_a_store_that_cannot_be_written_is_said_and_the_job_goes_on(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(rig.root.parent / "state"))
    (rig.root / ".cutesmith").write_text("in the way")
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 0
    assert "results are kept in" in done["report"]["findings"][-1]["message"]
    assert str(rig.root.parent / "state") in best(done["report"])["path"]


def checked(rig: Rig, source: str) -> dict[str, Any]:
    kernel = rig.root / "mine.py"
    kernel.write_text(source)
    return rig.run(job=replace(rig.job, kind="check", candidate=str(kernel)))


def test_a_persons_kernel_is_judged_like_a_generated_one(rig: Rig):
    done = checked(rig, draft(Script(ms=1.5), t=1).source)
    (candidate,) = done["report"]["candidates"]
    assert done["exit"] == 0
    assert (candidate["origin"], candidate["ok"], candidate["precision"]) == ("user", True, "kept")
    assert candidate["path"] == str(rig.root / "mine.py")
    assert candidate["speedup"]["eager"] == pytest.approx(4 / 1.5)
    assert done["report"]["stopped"] == "mine.py was validated and timed."
    assert rig.evaluator.asked("validate") == ["{'t': 1}"]
    assert rig.evaluator.requests[-1].kwargs["quick"] is False


@pytest.mark.parametrize(
    ("script", "stage"),
    [(Script(compile="fails"), "compile"), (Script(full="fails"), "validate"), (Script(timing="fails"), "time")],
)
def test_a_persons_kernel_that_fails_is_no_candidate(rig: Rig, script: Script, stage: str):
    done = checked(rig, draft(script, t=1).source)
    (candidate,) = done["report"]["candidates"]
    assert (done["exit"], candidate["ok"], candidate["stage"]) == (3, False, stage)
    assert done["report"]["stopped"].startswith(f"mine.py failed at {stage}: ")
    assert candidate["findings"][0]["file"] == str(rig.root / "mine.py")


def test_a_check_without_a_device_is_compiled_only(rig: Rig):
    rig.evaluator.environment = NO_DEVICE
    done = checked(rig, draft(Script(), t=1).source)
    assert (done["exit"], done["report"]["candidates"][0]["ok"]) == (4, None)
    assert done["report"]["stopped"] == "mine.py compiles; it was not validated: no device."


def test_a_check_of_no_file_is_refused(rig: Rig):
    done = rig.run(job=replace(rig.job, kind="check", candidate=str(rig.root / "none.py")))
    assert (done["exit"], done["report"]["findings"][0]["kind"]) == (2, "unreadable-file")
