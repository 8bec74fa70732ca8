"""What docs/recipes.md and docs/performance.md tell of sizes is what the results files hold."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import bandwidth
import bandwidth_page
import sizes

MEASURED = [
    {
        "case": f"{operator} {size}",
        "operator": operator,
        "bytes": size,
        "ok": True,
        "precision": "kept",
        "gbps": {"candidate": size / 1e6, "eager": 1.0, "copy": size / 0.9e6, "read": size / 1.1e6},
        "date": "2026-01-02",
        "environment": {"device": "NVIDIA H200", "driver": "580.1", "torch": "2.11", "dsl": "4.8.1"},
    }
    for size in bandwidth.SIZES
    for operator in bandwidth.OPERATORS
]


def test_the_pages_are_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (bandwidth_page, sizes):
        copy = tmp_path / module.PAGE.name
        copy.write_text(module.PAGE.read_text())
        monkeypatch.setattr(module, "PAGE", copy)
    monkeypatch.setattr(bandwidth_page, "IMAGE", tmp_path / "bandwidth.svg")
    bandwidth_page.main()
    sizes.put_table()
    for name in ("performance.md", "recipes.md"):
        assert (tmp_path / name).read_text() == (bandwidth_page.ROOT / "docs" / name).read_text()


def test_the_sizes_are_those_that_are_promised() -> None:
    shapes = [bandwidth.shape_of(size // bandwidth.FLOAT) for size in bandwidth.SIZES]
    assert [rows * columns * bandwidth.FLOAT for rows, columns in (shapes[0], shapes[-2])] == [4096, 4 << 30]
    assert max(rows * columns for rows, columns in shapes) < 2**31


def test_every_size_has_its_row_and_every_kernel_its_curve() -> None:
    rows = bandwidth_page.table(MEASURED).splitlines()
    assert len([row for row in rows if "×0.90" in row]) == len(bandwidth.SIZES)
    assert rows[2].startswith("| 4 KB | ")
    picture = ElementTree.fromstring(
        bandwidth_page.drawn(bandwidth_page.curves(bandwidth.by_operator(MEASURED)), "X & Y")
    )
    lines = [each for each in picture if each.get("class") == "curve" and "L" in each.get("d", "")]
    assert len(lines) == len(bandwidth.OPERATORS) * (len(bandwidth.SIZES) - 1)


def test_a_kernel_that_was_not_right_says_so() -> None:
    assert bandwidth_page.cell(MEASURED[0] | {"ok": False}).endswith("(×0.90, not right)")
