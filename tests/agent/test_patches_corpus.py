"""Patches on edits drawn from what the recipes write: placed or refused, never at the wrong place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from patch_arms import outcome, search_replace, structured
from patch_corpus import Case, corpus
from patches import recipe_files
from suite import EXAMPLE_MODULES

STEMS = ("residual_layer_norm", "rotary", "huber_loss")  # many near-duplicate lines; functions called twice; passes


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    with Worker(Path(sys.executable)) as worker:
        return corpus(recipe_files((each for each in EXAMPLE_MODULES if each.stem in STEMS), worker), 11)


def test_no_edit_goes_to_the_wrong_place_and_few_are_refused(cases: list[Case]):
    outcomes = [outcome(case, structured(case.source, case.patch)) for case in cases]
    assert len(cases) >= 300
    wrong = [case for case, each in zip(cases, outcomes, strict=True) if each == "wrong"]
    assert wrong == []
    placeable = sum(case.expected is not None for case in cases)
    assert outcomes.count("refused") <= 0.05 * placeable


def test_the_corpus_tells_ways_apart(cases: list[Case]):
    """Search and replace, which places what reads exactly so, fails where the corpus drifts."""
    outcomes = [outcome(case, search_replace(case.source, case.patch)) for case in cases]
    assert outcomes.count("wrong") > 10
    assert outcomes.count("refused") > 50
