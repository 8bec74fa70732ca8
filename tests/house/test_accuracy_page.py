"""What docs/accuracy.md shows of errors over depth is what the results file holds."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import accuracy_page
from product_errors import DEPTHS, DISTRIBUTIONS


def test_picture_and_table_are_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, image = tmp_path / "accuracy.md", tmp_path / "accuracy.svg"
    page.write_text(accuracy_page.PAGE.read_text())
    monkeypatch.setattr(accuracy_page, "PAGE", page)
    monkeypatch.setattr(accuracy_page, "IMAGE", image)
    docs = accuracy_page.ROOT / "docs"
    accuracy_page.main()
    assert page.read_text() == (docs / "accuracy.md").read_text()
    assert image.read_text() == (docs / "images" / "accuracy.svg").read_text()


def test_every_depth_of_every_kind_has_its_point() -> None:
    errors = {"fp32": 1e-7, "TF32": 1e-4}
    lines = [
        {"depth": depth, "inputs": name, "errors": errors, "device": "X & Y", "date": "2026-01-02"}
        for name in DISTRIBUTIONS
        for depth in DEPTHS
    ]
    picture = ElementTree.fromstring(accuracy_page.drawn(lines))
    points = [each for each in picture if each.tag.endswith("circle")]
    assert len(points) == len(errors) * len(lines)
    assert len(accuracy_page.table(lines).splitlines()) == 2 + len(lines) + 2
