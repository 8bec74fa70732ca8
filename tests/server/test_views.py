"""What lens, diagnostics, hover and terminal say of each state, from the reports that agents send."""

from __future__ import annotations

import io
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types
from rich.console import Console

from class_views import ACCEPTED, DIGEST, OUTLINE, PROVED, TEXT, candidate, ended, report, running, timing, view
from cutesmith_evaluator.types import (
    Finding,
    Resources,
    Speedup,
)
from cutesmith_server import sessions
from cutesmith_server.agent_process import CandidateJudged, Died, Done, StageReached
from cutesmith_server.cli.shown import show_report
from cutesmith_server.diagnostics import Shown, diagnostics
from cutesmith_server.documents import Text
from cutesmith_server.hover import hover_text
from cutesmith_server.jobs import Cancelled, Paused
from cutesmith_server.lenses import lenses
from cutesmith_server.outlines import outline_of
from cutesmith_server.report import read_report
from cutesmith_server.sessions import Session
from cutesmith_server.views import ClassView


def titles(shown: ClassView) -> list[str]:
    return [lens.command.title for lens in lenses(shown, Text(TEXT)) if lens.command]


def found(shown: ClassView, *, with_related: bool = True) -> list[types.Diagnostic]:
    return diagnostics(shown, OUTLINE, Text(TEXT), Shown(related=with_related, links=False))


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (PROVED, "2.1× vs torch.compile"),
        (candidate(timing=timing(), speedup=Speedup(1.3, None)), "1.30× vs eager, level with torch.compile"),
        (candidate(timing=timing(), speedup=Speedup(None, None)), "no faster than PyTorch"),
        (candidate(timing=timing(), speedup=Speedup(2.0, 0.93)), "0.93× vs torch.compile"),
        (candidate(), "validated, not timed"),
        (candidate(ok=None, stage="compile"), "compiled, not validated"),
    ],
)
def test_a_kernel_on_offer_is_headed_by_its_figure(best, said):
    shown = view(ended(report(best)))
    assert titles(shown) == [said, "Review", "Accept", "Reject"]
    (diagnostic,) = found(shown)
    assert diagnostic.message == f"CuTe kernel for A: {said}."
    assert diagnostic.code == ("kernel-compiled" if best.ok is None else "kernel-ready")
    assert diagnostic.range == types.Range(types.Position(3, 6), types.Position(3, 7))


def test_the_hover_tells_errors_timing_and_where_it_ran():
    resources = (Resources("a_kernel", "sm_90a", 26, 128, 0),)
    shown = hover_text(view(ended(report(candidate(**vars(PROVED) | {"resources": resources})))))
    for expected in (
        "Ran on: NVIDIA H200.",
        "Against fp64: max error 2e-07 (eager 1.5e-07, 1.3×).",
        "candidate 0.0634 ms · eager 0.3 ms · compile 0.13 ms · 98% of copy bandwidth",
        "a_kernel on sm_90a: 26 registers, 128 B of shared memory, 0 B spilled.",
        "requires grad",
    ):
        assert expected in shown


def test_a_measured_report_fits_a_terminal_of_eighty_columns():
    stream = io.StringIO()
    scheduled = candidate(**vars(PROVED) | {"schedule": {"threads": 256, "vector": 4}, "compile_s": 0.25})
    show_report(read_report(report(scheduled)), Console(file=stream, width=80))
    printed = stream.getvalue()
    row = next(line for line in printed.splitlines() if line.startswith(PROVED.id))
    for figure in ("done", "passed (kept)", "2e-07 (max)", "1.5e-07", "1.33", "0.25 s", "0.0634 ms"):
        assert figure in row
    assert max(map(len, printed.splitlines()[:3])) <= 80
    assert "2.1× vs torch.compile" in printed
    assert "Schedule: threads=256 vector=4" in printed
    assert "98% of copy bandwidth" in printed


def test_of_several_files_each_is_named_with_what_speaks_against_it():
    wrong = Finding("wrong-values", "12 of 64 values are wrong.", 7, "/project/mine.py")
    right = replace(PROVED, origin="user", path="/project/yours.py")
    failed = replace(PROVED, id="f" * 12, origin="user", path="/project/mine.py", ok=False, findings=(wrong,))
    told = replace(read_report(report(right)), candidates=(right, failed))
    for found in (told, replace(told, best=None)):
        stream = io.StringIO()
        show_report(found, Console(file=stream, width=110))
        printed = stream.getvalue()
        for row in ("/project/yours.py " + right.id, "/project/mine.py  " + failed.id):
            assert any(line.startswith(row) for line in printed.splitlines())
        assert printed.count("/project/mine.py:7: 12 of 64 values are wrong.") == 1
        assert printed.count("12 of 64") == 1


def test_a_verdict_without_a_kernel_to_write_offers_nothing_to_accept():
    assert titles(view(ended(report(PROVED, kernel=False)))) == ["2.1× vs torch.compile", "Generate CuTe kernel"]


def test_a_failed_job_warns_with_the_findings_places():
    wrong = Finding("wrong-values", "a_cute.py:7 is wrong.", 7, "/project/a_cute.py")
    failed = candidate(ok=False, stage="validate", findings=(wrong,))
    shown = view(ended(report(failed, Finding("note", "By the way.", severity="information"))))
    assert shown.state == "failed"
    assert titles(shown) == ["No CuTe kernel: a_cute.py:7 is wrong.", "Try again"]
    (diagnostic,) = found(shown)
    assert (diagnostic.severity, diagnostic.code) == (types.DiagnosticSeverity.Warning, "wrong-values")
    (related,) = diagnostic.related_information or ()
    assert related.location.uri == "file:///project/a_cute.py"
    assert related.location.range.start == types.Position(6, 0)
    (plain,) = found(shown, with_related=False)
    assert plain.related_information is None
    assert plain.message == "a_cute.py:7 is wrong. (/project/a_cute.py:7)"


def test_a_job_without_a_finding_warns_with_why_it_stopped():
    (diagnostic,) = found(view(ended(report(None))))
    assert (diagnostic.code, diagnostic.message) == ("no-kernel", "Stopped because of this.")


def test_an_agent_that_dies_or_writes_nonsense_is_a_failure_with_a_sentence():
    for event, said in ((Died("The agent died."), "The agent died."), (Done({"task": 1}, 0), "cannot be read")):
        shown = view(sessions.after(running(), event))
        assert shown.state == "failed"
        assert said in shown.message


def test_inputs_added_after_a_failure_settle_it():
    shown = view(ended(report(None, Finding("no-inputs", "a.py does not say how to call A."))))
    assert [each.code for each in found(shown)] == ["no-inputs"]
    text = TEXT + "\n\ndef get_inputs():\n    return []\n"
    assert diagnostics(shown, outline_of(text), Text(text), Shown()) == []


def test_a_long_reason_is_cut_in_the_lens_only():
    shown = view(ended(report(None, Finding("long", "because " * 40))))
    assert len(titles(shown)[0]) <= 80
    assert shown.message == "because " * 40


def test_a_cancelled_job_leaves_what_was_on_offer():
    on_offer = ended(report(PROVED))
    again = sessions.after(sessions.started(on_offer, "optimize", DIGEST, queued=True), Cancelled())
    assert view(again).state == "ready"
    assert view(sessions.after(running(), Cancelled())).state == "cancelled"


def test_a_running_job_shows_its_stage_and_its_best_so_far():
    session = sessions.after(running(), StageReached("compile", "compiling for sm_90a", 0.3))
    session = sessions.after(session, CandidateJudged(asdict(PROVED)))
    session = sessions.after(session, CandidateJudged(asdict(candidate(id="f" * 12, ok=False))))
    state = view(session).job_state()
    assert (state.state, state.stage, state.message) == ("running", "compile", "compiling for sm_90a")
    assert state.best is not None
    assert state.best["id"] == PROVED.id
    assert titles(view(session)) == ["compile: compiling for sm_90a · best 2.1× vs torch.compile", "Pause", "Cancel"]


def test_an_accepted_kernel_that_drifted_warns():
    text = ACCEPTED
    assert view(Session(), text=text).state == "accepted"
    drifted = view(Session(), text=text, drift="a_cute.py was edited since it was proved.")
    assert titles(drifted)[0] == "CuTe kernel (edited since it was proved)"
    (diagnostic,) = found(drifted)
    assert (diagnostic.code, diagnostic.severity) == ("kernel-edited", types.DiagnosticSeverity.Warning)


EVENTS = st.sampled_from(
    [
        StageReached("compile", "compiling", 0.5),
        CandidateJudged(asdict(PROVED)),
        Done(report(PROVED), 0),
        Done(report(None), 3),
        Died("It died."),
        Cancelled(),
        "start",
        "decide",
        "undecide",
        "seen",
    ]
)


@given(st.lists(EVENTS, max_size=12), st.booleans(), st.booleans())
def test_whatever_happens_every_state_can_be_shown(events, same_class, has_kernel):
    session = Session()
    for event in events:
        session = _after(session, event)
    shown = view(session, DIGEST if same_class else "other", ACCEPTED if has_kernel else TEXT)
    state = shown.job_state()
    assert titles(shown)
    assert hover_text(shown)
    found(shown)
    assert (state.state == "running") == (session.running is not None)
    if state.state in ("ready", "compiled"):
        assert same_class
        assert session.decided is None


def _after(session: Session, event: Any) -> Session:
    if event == "start" or (session.running is None and not isinstance(event, str)):
        return sessions.started(session, "optimize", DIGEST, queued=False) if session.running is None else session
    if event == "decide":
        return sessions.decided(session, "rejected")
    if event == "undecide":
        return sessions.undecided(session)
    if event == "seen":
        return sessions.seen_on_disk(session, differs=True)
    return sessions.after(session, event)


def test_a_kernel_that_does_not_hold_for_the_changed_class_says_so_and_is_good_again_with_the_old_text():
    offered, other = ended(report(PROVED)), "another text's hash"
    stale = view(offered, other)
    assert (stale.state, stale.needs_revalidation) == ("stale", True)
    assert titles(stale)[0] == "CuTe kernel out of date: validate it again"
    wrong = report(
        candidate(id="f" * 12, ok=False, findings=(Finding("wrong-values", "y differs by 0.1."),)), kernel=False
    )
    refuted = sessions.after(sessions.started(offered, "revalidate", other, queued=False), Done(wrong, 3))
    stale = view(refuted, other)
    assert (stale.state, stale.needs_revalidation) == ("stale", False)
    assert stale.message == "The kernel is not right for A as it is now (y differs by 0.1): generate it again."
    assert titles(stale) == ["CuTe kernel not right for the class as it is", "Generate again", "Reject"]
    assert view(refuted, "a third text's hash").needs_revalidation
    assert view(refuted).state == "ready"
    proved = sessions.after(sessions.started(refuted, "revalidate", other, queued=False), Done(report(PROVED), 0))
    assert view(proved, other).state == "ready"
    assert view(proved).state == "stale"


def test_a_paused_job_keeps_what_was_on_offer_before_it():
    paused = sessions.after(sessions.started(ended(report(PROVED)), "optimize", DIGEST, queued=False), Paused())
    assert view(paused).state == "paused"
    assert titles(view(paused)) == ["CuTe kernel paused: resume", "Cancel"]
    assert view(sessions.dropped(paused)).state == "ready"
