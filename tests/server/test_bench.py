"""`cutesmith bench`: which files are tasks, what totals say, going on after a stop, shards that make one result."""

from __future__ import annotations

import json
import math
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_folder import MODEL, level
from command_line import cutesmith
from cutesmith_server.bench.results import open_results, summary
from cutesmith_server.bench.running import Ended
from cutesmith_server.bench.tables import markdown, page
from cutesmith_server.bench.tasks import BenchTask, find_tasks, shard_of
from cutesmith_server.bench.totals import FAST, totals
from cutesmith_server.errors import RefusedError


def record(name: str, **changes: Any) -> dict[str, Any]:
    plain = {
        "key": name,
        "level": 1,
        "id": 3,
        "name": name,
        "outcome": "right",
        "ok": True,
        "precision": "kept",
        "error_ratio": 1.0,
        "speedup": {"eager": 2.0, "compile": 1.0},
        "roofline_fraction": 0.9,
        "remark": "",
        "times_ms": {"candidate": {"median": 1.0}, "eager": {"median": 2.0}},
    }
    return plain | changes


def ended(name: str) -> Ended:
    return Ended(BenchTask(Path("f.py"), "Model", name, None, None, "0"), record(name))


def test_tasks_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    place = level(tmp_path, _19_ReLU="torch.relu(x)", _3_Tanh="torch.tanh(x)")
    (place / "helpers.py").write_text("SIZE = 3\n")
    tasks, skipped = find_tasks([place, place / "3_Tanh.py"])
    assert [(t.level, t.number, t.name) for t in tasks] == [(1, 3, "Tanh"), (1, 19, "ReLU")]
    assert {t.qualname for t in tasks} == {"Model"}
    assert [each.file.name for each in skipped] == ["helpers.py"]


def test_a_changed_file_is_another_task(tmp_path: Path) -> None:
    place = level(tmp_path, _1_A="x + 1")
    before = find_tasks([place])[0][0]
    (place / "1_A.py").write_text(MODEL.format(expression="x + 2"))
    assert find_tasks([place])[0][0].key != before.key


@pytest.mark.parametrize("paths", [["nowhere"], ["empty"]])
def test_what_has_no_tasks_is_refused(paths: list[str], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RefusedError) as refusal:
        find_tasks([tmp_path / path for path in paths])
    assert refusal.value.exit == 2


@given(st.integers(1, 40), st.integers(1, 9))
def test_shards_are_disjoint_and_make_up_the_whole(size: int, count: int) -> None:
    tasks = [BenchTask(Path("f.py"), "Model", str(k), None, k, "0") for k in range(size)]
    parts = [shard_of(tasks, number, count) for number in range(1, count + 1)]
    assert sorted((t for part in parts for t in part), key=lambda t: t.number or 0) == tasks
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


RATIOS = st.one_of(st.none(), st.floats(0.01, 100))


@given(st.lists(st.tuples(st.booleans(), RATIOS), min_size=1))
def test_totals_follow_their_conventions(verdicts: list[tuple[bool, float | None]]) -> None:
    records = [record("t", ok=ok, speedup={"eager": ratio, "compile": None}) for ok, ratio in verdicts]
    found = totals(records, "eager")
    known = [ratio for ok, ratio in verdicts if ok and ratio is not None]
    assert (found.tasks, found.right, found.measured) == (len(verdicts), sum(ok for ok, _ in verdicts), len(known))
    if not known:
        assert found.correct_only.arithmetic is None
        return
    assert found.correct_only.arithmetic == pytest.approx(sum(known) / len(known))
    assert found.incorrect_is_zero.arithmetic == pytest.approx(sum(known) / len(verdicts))
    assert found.fallback_is_one.geometric == pytest.approx(math.prod(r ** (1 / len(verdicts)) for r in known))
    assert found.incorrect_is_zero.geometric == (found.correct_only.geometric if len(known) == len(verdicts) else 0)
    for p in FAST:
        assert found.fast[f"{p:g}"] == pytest.approx(sum(r > p for r in known) / len(verdicts))


@given(st.text(alphabet=string.printable + "<>|&é", max_size=40))
def test_no_text_breaks_a_table(text: str) -> None:
    result = summary([], {}, "2026-11-29", "cutesmith bench x") | {
        "tasks": [record("t") | {"name": text, "remark": text}]
    }
    rows = [line for line in markdown(result).splitlines() if line.startswith("| 1: 3")]
    assert len(rows) == 1
    assert "<script" not in page(result | {"command": "<script>"})


def test_a_line_that_a_kill_cut_short_is_run_again(tmp_path: Path) -> None:
    results = open_results(tmp_path, "1-of-2")
    results.append(ended("whole"))
    with results.lines.open("a") as file:
        file.write(json.dumps(record("torn"))[:40])
    again = open_results(tmp_path, "1-of-2")
    again.append(ended("next"))
    open_results(tmp_path, "2-of-2").append(ended("other"))
    assert again.known().keys() == {"whole", "next", "other"}


def test_a_folder_is_run_in_shards_and_not_again(tmp_path: Path) -> None:
    place = level(tmp_path, _1_Sorted="torch.sort(x)[0]", _2_Gone="undefined_name(x)")
    common = ["bench", str(place), "--out", "out", "--device", "none"]
    first = cutesmith(*common, "--shard", "1/2", cwd=tmp_path)
    second = cutesmith(*common, "--shard", "2/2", "--json", cwd=tmp_path)
    assert (first.status, second.status) == (0, 0)
    result = second.json
    assert [(task["id"], task["outcome"], task["ok"]) for task in result["tasks"]] == [
        (1, "no kernel", False),
        (2, "no kernel", False),
    ]
    assert "aten.sort" in result["tasks"][0]["remark"]
    assert "undefined_name" in result["tasks"][1]["remark"]
    assert result["missing"] == 0
    assert not (place / ".cutesmith").exists()
    lines = (tmp_path / "out" / "results-1-of-2.jsonl").read_text()
    again = cutesmith(*common, "--shard", "1/2", cwd=tmp_path)
    assert again.status == 0
    assert (tmp_path / "out" / "results-1-of-2.jsonl").read_text() == lines
