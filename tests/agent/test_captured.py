"""What real runs had: read from what their processes wrote, kept in the store, and what kernels are made for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.recorded import read_recorded
from cutesmith_agent.store.captures import Capture, CapturedCall, CapturedTime
from cutesmith_agent.store.opening import open_store
from cutesmith_evaluator.types import Finding, Validation
from loop_rig import Rig, best
from scripted_evaluator import Script, draft


def call(rows: int, calls: int, **about: int) -> CapturedCall:
    tensor = {"tensor": {"dtype": "float32", "shape": [rows, 8], "strides": [8, 1]}}
    text = json.dumps({"init": None, "args": [tensor], "kwargs": {}, "dtype": None}, sort_keys=True)
    return CapturedCall(text, calls, **about)


A, B, C, D = call(4, 9), call(2, 5), call(1, 2), call(3, 1)
RIGHT = Validation(True, "NVIDIA H200", "kept")
WRONG = Validation(False, "NVIDIA H200", findings=(Finding("wrong-values", "Other values."),))
NOT_TAKEN = Validation(False, "NVIDIA H200", findings=(Finding("unsupported-inputs", "Not taken."),))
RAISES = Validation(False, "NVIDIA H200", findings=(Finding("reference-raises", "It raises."),))


def keep(rig: Rig, *calls: CapturedCall) -> None:
    with open_store(rig.root).store as store:
        store.captures.put([Capture(str(rig.file), "NewGELU", calls)])


def test_a_kernel_is_validated_on_every_captured_signature(rig: Rig):
    keep(rig, A, B, C, D)
    rig.evaluator.captured = {A.text: RIGHT, B.text: RIGHT, C.text: NOT_TAKEN, D.text: RAISES}
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 0
    said = {each["kind"]: each["message"] for each in best(done["report"])["findings"]}
    assert said["captured-right"] == "Right on 2 of 4 other captured signatures."
    assert said["captured-not-taken"].startswith("The original code runs for captured (1, 8) float32:")
    assert "(3, 8) float32" in said["captured-not-run"]
    asked = [one.kwargs["captured"] for one in rig.evaluator.requests if "captured" in one.kwargs]
    assert asked == [A.text, B.text, C.text, D.text]


def test_one_that_is_wrong_on_captured_inputs_is_not_offered(rig: Rig):
    keep(rig, A)
    rig.evaluator.captured = {A.text: WRONG}
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 3
    assert "On captured inputs (4, 8) float32: Other values." in done["report"]["stopped"]


def test_the_most_frequent_captured_inputs_stand_in_for_those_that_the_file_lacks(rig: Rig):
    keep(rig, A, B)
    rig.evaluator.lacks_inputs = True
    rig.evaluator.captured = {B.text: RIGHT}
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 0
    (told,) = [each["message"] for each in done["report"]["findings"] if each["kind"] == "captured-inputs"]
    assert told == "Inputs as captured: (4, 8) float32, in 9 of 14 calls (2 signatures)."
    assert [one.kwargs["captured"] for one in rig.evaluator.requests if "captured" in one.kwargs] == [B.text]


def test_other_captures_are_another_job(rig: Rig):
    keep(rig, A)
    rig.evaluator.captured = {A.text: RIGHT, B.text: RIGHT}
    rig.run(draft(Script(), t=1))
    keep(rig, B)
    done = rig.run(draft(Script(), t=1), job=rig.job)
    assert [one.kwargs["captured"] for one in rig.evaluator.requests if "captured" in one.kwargs] == [A.text, B.text]
    assert done["exit"] == 0


def line(number: int, rows: int, calls: int, *, training: bool = False) -> dict:
    what = json.loads(call(rows, calls).text)
    return {
        "file": "/p/a.py",
        "class": "A",
        "number": number,
        **what,
        "training": training,
        "grad": False,
        "calls": calls,
    }


@given(
    st.lists(st.lists(st.tuples(st.integers(1, 4), st.booleans(), st.integers(1, 50)), max_size=12), max_size=4),
    st.integers(0, 40),
)
def test_what_processes_wrote_adds_up(tmp_path_factory, processes, cut):
    """A process writes growing counts; the last of each signature holds, and a torn last line is passed over."""
    folder: Path = tmp_path_factory.mktemp("capture")
    expected: Counter[int] = Counter()
    for number, increments in enumerate(processes):
        counts: Counter[tuple[int, bool]] = Counter()
        lines = []
        for rows, training, more in increments:
            counts[rows, training] += more
            place = rows * 2 + training
            lines.append(json.dumps(line(place, rows, counts[rows, training], training=training)))
        torn = json.dumps(line(99, 4, 1))[:-1][: 10 + cut]
        (folder / f"{number}.jsonl").write_text("".join(f"{one}\n" for one in lines) + torn)
        for (rows, _), calls in counts.items():
            expected[rows] += calls
    found = {
        json.loads(each.text)["args"][0]["tensor"]["shape"][0]: each.calls
        for capture in read_recorded(folder)
        for each in capture.calls
    }
    assert found == dict(expected)


def test_the_last_run_of_a_class_stands(tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text("")
    file = str(tmp_path / "a.py")
    with open_store(tmp_path).store as store:
        store.captures.put([Capture(file, "A", (A,)), Capture(file, "B", (B,))])
        store.captures.put([Capture(file, "A", (C,), CapturedTime(0.5, 2.0, 7))])
        (a,), (b,) = store.captures.of(file, "A"), store.captures.of(file, "B")
        assert (a.calls, a.time and a.time.share, b.calls) == ((C,), 0.25, (B,))
        assert store.captures.files() == (file,)


HOSTILE = [
    b"\x00\xff", b"[]", b"{}", b"null", b'{"file": 1, "class": 2}', b'{"file": "/p/a.py", "class": "A"}', b"[" * 5000,
    json.dumps(line(1, 4, 1) | {"calls": "many"}).encode(),
    json.dumps(line(1, 4, 1) | {"file": "/p/\udcff.py"}).encode(),
    json.dumps({"file": "/p/a.py", "class": "A", "seconds": None, "outer_s": 1, "timed": 1}).encode(),
]  # fmt: skip


def test_what_a_program_wrote_there_itself_is_passed_over(tmp_path: Path):
    good = json.dumps(line(0, 4, 3)).encode()
    (tmp_path / "1.jsonl").write_bytes(b"\n".join([*HOSTILE, good, *HOSTILE]))
    (capture,) = read_recorded(tmp_path)
    assert [(call.words, call.calls) for call in capture.calls] == [("(4, 8) float32", 3)]


def test_words_steer_no_terminal():
    spec = {"value": "\x1b[2J\udcff" + "x" * 500}
    call = CapturedCall(json.dumps({"init": None, "args": [spec], "kwargs": {}, "dtype": None}), 1)
    assert "\x1b" not in call.words
    assert len(call.words) < 180
    call.words.encode()
