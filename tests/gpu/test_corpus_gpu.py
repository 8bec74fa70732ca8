"""The corpus recorded again: this device does what the recorded one did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from corpus.agreement import compared
from corpus.cute_cases import cute_cases
from corpus.expectations import TO_RECORD
from corpus.kernels import kernels
from corpus.store import load

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]
CORPUS = Path(__file__).parents[1] / "emulator" / "corpus"


def test_a_new_recording_agrees_with_the_stored_one(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(CORPUS / "record.py"), "--out", str(tmp_path)], check=True, timeout=500)
    stored, fresh = load(CORPUS / "recorded"), load(tmp_path)
    assert fresh.failures == {}
    cases = {**kernels(), **cute_cases()}
    assert fresh.results.keys() == cases.keys()
    kept = [cases[name] for name in stored.results if name not in TO_RECORD]
    outcomes = [compared(case, stored.results[case.name], fresh.results[case.name]) for case in kept]
    assert "\n".join(each.problem for each in outcomes if each.problem) == ""
    if stored.origin["device"] == fresh.origin["device"]:
        assert [each.name for each in outcomes if each.unequal] == []
