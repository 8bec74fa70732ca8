"""Each family of kernels over thirty shapes and more, in three dtypes: a few of them here, all with `make sizes`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from size_cases import DTYPES, FAMILIES, SizeCase, size_cases
from sizes import Unit, all_units, by_family, verdict


def chosen() -> list[SizeCase]:
    """Small ones of a few families: another dtype each."""
    small = ("turned", "loss of rows", "windows")
    families = [family for family in FAMILIES if family.name in small]
    return [SizeCase(family, family.shapes[5], DTYPES[k % len(DTYPES)]) for k, family in enumerate(families)]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


def test_every_family_has_its_shapes() -> None:
    counts = Counter((case.family.name, case.dtype) for case in size_cases())
    assert len(counts) == len(FAMILIES) * len(DTYPES)
    assert min(counts.values()) >= 30, counts


@pytest.mark.parametrize("case", chosen(), ids=lambda case: case.name)
def test_shape(case: SizeCase, worker: Worker, tmp_path: Path) -> None:
    """The first draft, and another one that the shape's place in the list chooses."""
    for which in ("first", "other"):
        folder = tmp_path / which
        folder.mkdir()
        found = verdict(Unit(case, which), worker, "emulated", folder)
        assert found["outcome"] in ("right", "same"), found


def test_a_run_that_was_cut_short_counts_what_it_has() -> None:
    units = [unit for unit in all_units() if unit.case.family.name == "scan"]
    known = [{"unit": unit.name, "family": "scan", "outcome": "right"} for unit in units[:5]]
    known[3]["outcome"] = "wrong"
    counted = by_family("scan", units, known)
    assert (counted["shapes"], counted["cases"], counted["validated"], counted["drafts"]) == (31, 93, 5, 5)
    assert counted["not_right"] == [units[3].name]
