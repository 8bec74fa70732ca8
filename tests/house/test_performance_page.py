"""docs/performance.md is what benchmarks/report.py makes of the results: nothing in its tables is typed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import report
from pages import put

ENVIRONMENT = {"device": "NVIDIA H200", "driver": "580.1", "torch": "2.11", "dsl": "4.8.1"}
MEASURED = {
    "case": "88 NewGELU",
    "date": "2026-01-02",
    "environment": ENVIRONMENT,
    "best": {
        "precision": "kept",
        "error": {"candidate": 1.2e-7, "eager": 1.1e-7},
        "timing": {
            "bytes": 536_900_000,
            "fraction_of_copy": 0.991,
            "arms": [{"name": "candidate", "median_ms": 0.13}, {"name": "eager", "median_ms": 1.28}],
        },
    },
    "in_compile": {"ratio": 1.001},
}
FAILED = {"case": "19 ReLU", "date": "2026-01-03", "environment": ENVIRONMENT, "failed": "no kernel:\n a | b"}


def test_the_page_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "performance.md"
    copy.write_text(report.PAGE.read_text())
    monkeypatch.setattr(report, "PAGE", copy)
    report.main()
    assert copy.read_text() == (report.ROOT / "docs" / "performance.md").read_text()


def test_a_row_holds_every_figure() -> None:
    row = report.times_row(MEASURED)
    assert row == "| 88 NewGELU | 1.2800 | – | 0.1300 | 536.9 | 0.991 | 1.2e-07 / 1.1e-07 | kept | ×1.001 |"


def test_a_case_without_result_stays_in_the_table() -> None:
    rows = report.times_table([MEASURED, FAILED]).splitlines()
    assert "no result: no kernel: a \\| b" in rows[3]
    assert rows[-1] == (
        "Measured on NVIDIA H200, driver 580.1, torch 2.11, nvidia-cutlass-dsl 4.8.1; 2026-01-02, 2026-01-03."
    )


def test_a_later_record_of_a_case_replaces_the_earlier() -> None:
    assert report.latest([FAILED | {"case": "88 NewGELU"}, MEASURED]) == {"88 NewGELU": MEASURED}


def test_no_results_say_so(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- serving -->\nold\n<!-- /serving -->")
    put(page, serving=report.times_table([]))
    assert page.read_text() == "<!-- serving -->\nnot measured yet\n<!-- /serving -->"


def test_a_page_that_lost_its_markers_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- serving -->\nold\n<!-- /serving -->")
    with pytest.raises(SystemExit, match="must have the markers"):
        put(page, serving="new", other="table")
    assert "old" in page.read_text()
