"""A model's kernels for a module that no recipe covers, through the real SDK, worker and emulated device."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import model_kernels as kernels
from cutesmith_agent.evaluator import Evaluator
from cutesmith_agent.job import Job
from cutesmith_agent.llm.access import Models
from cutesmith_agent.llm.anthropic_model import AnthropicModel
from cutesmith_agent.llm.settings import Wish
from cutesmith_agent.loop import Makers
from cutesmith_agent.recipes import propose, with_header
from cutesmith_agent.running import run_job
from cutesmith_agent.store.opening import open_store
from cutesmith_evaluator.types import Task
from model_rig import DEFAULT, KEY
from pipeline import KeptWorker
from scripted_messages import ScriptedMessages, kernel, patch


@pytest.fixture(scope="module")
def worker() -> Iterator[KeptWorker]:
    with KeptWorker() as kept:
        yield kept


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "flip.py").write_text(kernels.MODULE)
    return tmp_path


def run(project: Path, worker: KeptWorker, url: str) -> dict[str, Any]:
    with open_store(project).store as store:
        store.set_consent(url.removeprefix("http://"), granted=True)
    job = Job(
        kind="optimize",
        task=Task(str(project / "flip.py"), "Flip"),
        workspace=str(project),
        interpreter=sys.executable,
        archs=("sm_90a",),
        device="emulated",
        proposer="llm",
        model=Wish(model=DEFAULT, base_url=url),
    )
    models = Models(lambda granted: AnthropicModel(granted.settings, granted.key), lambda: DEFAULT)
    makers = Makers(propose, with_header)
    return run_job(job, lambda: cast(Evaluator, worker), makers, lambda event: None, models).to_json()


def test_from_nothing_to_a_right_kernel(project: Path, worker: KeptWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not compile, a patch that makes it compile and wrong by its tail, a patch that makes it right."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    acts = [
        kernel(kernels.flip(kernels.UNKNOWN_NAME, kernels.NO_TAIL)),
        patch(kernels.UNKNOWN_NAME, kernels.KNOWN_NAME, "names the function right"),
        patch(kernels.NO_TAIL, kernels.WITH_TAIL, "covers the tail"),
    ]
    with ScriptedMessages(acts) as endpoint:
        report = run(project, worker, endpoint.url)
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
        assert "aten.flip.default" in request.prompt
    assert (project / "flip.py").read_text() == kernels.MODULE


def test_the_example_in_the_prompts_is_a_right_kernel(worker: KeptWorker, project: Path) -> None:
    module = kernels.MODULE.replace("Flip", "Scaled").replace("x.flip(0)", "x * self.scale")
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
