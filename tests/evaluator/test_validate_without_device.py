"""validate and time through a real worker on a machine without a usable GPU: said as such, never more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Finding, Task
from cutesmith_evaluator.worker.timing import time_arms
from cutesmith_evaluator.worker.validate import validate
from planted_candidates import HONEST, QUALNAME, patched_text, write_candidate, write_patched, write_task
from planted_faults import FAULTS


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def kinds(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.kind, finding.severity) for finding in findings]


def test_nothing_is_validated(worker: Worker, tmp_path: Path):
    task = Task(str(write_task(tmp_path)), QUALNAME)
    for forward in (HONEST["own_softmax"], FAULTS["returns_its_input"].source):
        verdict = worker.validate(task, write_candidate(tmp_path, forward, "cuda"), device="none")
        assert verdict.ok is None
        assert verdict.device == "none"
        assert verdict.precision is None
        assert verdict.error is None
        assert verdict.checks == ()
        assert kinds(verdict.findings) == [("no-device", "information")]
        assert verdict.findings[0].message.lower().startswith("not run: no device")


def test_nothing_is_timed(worker: Worker, tmp_path: Path):
    task = Task(str(write_task(tmp_path)), QUALNAME)
    timing = worker.time(task, write_candidate(tmp_path, HONEST["own_softmax"], "cuda"))
    assert timing.arms == ()
    assert timing.copy_gbps == 0
    assert kinds(timing.findings) == [("no-device", "information")]


def params(tmp_path: Path) -> dict[str, object]:
    task = {"file": str(write_task(tmp_path)), "qualname": QUALNAME}
    candidate = write_candidate(tmp_path, HONEST["own_softmax"], "cuda")
    return {"task": task, "candidate": str(candidate), "arms": ["candidate", "eager"], "device": "none"}


def test_a_request_for_no_device_uses_none(tmp_path: Path):
    assert validate(params(tmp_path), lambda _: None).ok is None
    assert time_arms(params(tmp_path), lambda _: None).arms == ()


def test_the_patched_file_is_still_tried_on_the_cpu(worker: Worker, tmp_path: Path):
    task = Task(str(write_task(tmp_path)), QUALNAME)
    candidate = write_candidate(tmp_path, HONEST["own_softmax"], "cuda")
    patched = write_patched(tmp_path / "scratch", candidate, patched_text())
    verdict = worker.validate(task, candidate, patched=patched, device="none")
    assert verdict.ok is None
    assert kinds(verdict.findings) == [("no-device", "information")]
    assert any("CUTESMITH_DISABLE=1" in check for check in verdict.checks)
    patched.write_text(patched.read_text().replace("dim=-1", "dim=0"))
    broken = worker.validate(task, candidate, patched=patched, device="none")
    assert broken.ok is False
    assert ("adopted-differs", "error") in kinds(broken.findings)
