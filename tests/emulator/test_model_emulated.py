"""A model's kernels for a module that no recipe covers, through the real SDK, worker and emulated device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import model_kernels as kernels
from cutesmith_evaluator.types import Task
from flip_job import make_project, run_flip
from model_rig import KEY
from pipeline import KeptWorker
from scripted_messages import ScriptedMessages, kernel, patch


@pytest.fixture(scope="module")
def worker() -> Iterator[KeptWorker]:
    with KeptWorker() as kept:
        yield kept


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path, kernels.MODULE)


def test_from_nothing_to_a_right_kernel(project: Path, worker: KeptWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not compile, a patch that makes it compile and wrong by its tail, a patch that makes it right."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    acts = [
        kernel(kernels.flip(kernels.UNKNOWN_NAME, kernels.NO_TAIL)),
        patch(kernels.UNKNOWN_NAME, kernels.KNOWN_NAME, "names the function right"),
        patch(kernels.NO_TAIL, kernels.WITH_TAIL, "covers the tail"),
    ]
    with ScriptedMessages(acts) as endpoint:
        report = run_flip(project, worker, endpoint, device="emulated", archs=("sm_90a",))
        requests = endpoint.requests
    stages = [(one["stage"], one["ok"]) for one in report["candidates"]]
    assert stages == [("compile", False), ("validate", False), ("validate", True), ("validate", True)]
    assert "Right on the emulated device" in report["stopped"]
    assert "Right on the emulated device" in report["kernel"]["source"]
    assert "import flip_cute" in report["patch"]
    assert len(requests) == 3, "a right kernel is the end where nothing can be timed"
    assert re.search(r"^ +\d+> +tidx = cute.arch.thread_index\(\)$", requests[1].moment, re.MULTILINE)
    assert "has no attribute 'thread_index'" in requests[1].moment
    assert "never written" in requests[2].moment
    assert "names the function right: then failed at validate" in requests[2].moment
    for request in requests:
        assert KEY not in request.prompt
        assert str(project) not in request.prompt
        assert "aten.index.Tensor" in request.prompt
    assert (project / "flip.py").read_text() == kernels.MODULE


def test_the_example_in_the_prompts_is_a_right_kernel(worker: KeptWorker, project: Path) -> None:
    module = kernels.MODULE.replace("Flip", "Scaled").replace(kernels.TURNED, "x * self.scale")
    module = module.replace(
        "    def forward",
        "    def __init__(self):\n        super().__init__()\n        self.scale = 1.5\n\n    def forward",
    )
    (project / "scaled.py").write_text(module)
    candidate = project / "mine_cute.py"
    candidate.write_text(kernels.example())
    task = Task(str(project / "scaled.py"), "Scaled")
    compiled = worker.compile(task, candidate, ["sm_80", "sm_90a"])
    assert compiled.ok, compiled.findings
    groups = worker.inspect(task).graph.dynamic_dims
    validated = worker.validate(task, candidate, device="emulated", dynamic_dims=groups)
    assert (validated.ok, validated.precision) == (True, "kept"), validated.findings
