"""A model's job on Flip, which no recipe covers, with a real worker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, cast

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
from model_rig import DEFAULT
from scripted_messages import ScriptedMessages


def make_project(folder: Path, module: str) -> Path:
    (folder / ".git").mkdir()
    (folder / "flip.py").write_text(module)
    return folder


def run_flip(project: Path, worker: object, endpoint: ScriptedMessages, **more: Any) -> dict[str, Any]:
    """The report. `more`: further fields of the job."""
    with open_store(project).store as store:
        store.set_consent(endpoint.url.removeprefix("http://"), granted=True)
    wish = Wish(model=DEFAULT, base_url=endpoint.url, max_rounds=2)
    task = Task(str(project / "flip.py"), "Flip")
    job = Job("optimize", task, str(project), sys.executable, proposer="llm", model=wish, **more)
    models = Models(lambda granted: AnthropicModel(granted.settings, granted.key), lambda: DEFAULT)
    makers = Makers(propose, with_header)
    return run_job(job, lambda: cast(Evaluator, worker), makers, lambda event: None, models).to_json()
