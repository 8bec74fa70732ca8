"""A project with one module, an evaluator, and a model behind the real SDK that answers from a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cutesmith_agent.job import Job
from cutesmith_agent.llm.access import Granted, Models
from cutesmith_agent.llm.anthropic_model import AnthropicModel
from cutesmith_agent.loop import Makers
from cutesmith_agent.recipes.contract import Draft
from cutesmith_agent.running import run_job
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.store.store import Store
from loop_rig import Rig, make_rig
from scripted_evaluator import Script, candidate_source, proposing, with_header
from scripted_messages import Act, Request, Say, ScriptedMessages, bottleneck, kernel, patch

KEY = "sk-ant-api03-" + "Zq7" * 12  # of nobody: what a key looks like
DEFAULT = "claude-opus-5-5"


@dataclass
class ModelRig:
    """Jobs of one project. `scripts`: one list of acts per run; `environment` is changed through `setenv`."""

    rig: Rig
    requests: list[Request] = field(default_factory=list)
    retries: int = 4
    silence_s: float = 5.0

    @property
    def root(self) -> Path:
        return self.rig.root

    @property
    def job(self) -> Job:
        return replace(self.rig.job, proposer="llm", resume=True)

    def run(self, acts: list[Act], *drafts: Draft, job: Job | None = None, consents: bool = True) -> dict[str, Any]:
        """The report of a job against an endpoint that plays `acts`."""
        with ScriptedMessages(acts) as endpoint:
            try:
                return self.run_at(endpoint.url, *drafts, job=job, consents=consents)
            finally:
                self.requests = endpoint.requests

    def run_at(self, url: str, *drafts: Draft, job: Job | None = None, consents: bool = True) -> dict[str, Any]:
        job = job or self.job
        job = replace(
            job, model=replace(job.model, base_url=job.model.base_url or url, model=job.model.model or DEFAULT)
        )
        if consents:
            with self.store() as store:
                store.set_consent(url.removeprefix("http://"), granted=True)
        return self.run_job(job, *drafts)

    def run_job(self, job: Job, *drafts: Draft) -> dict[str, Any]:
        """The report of the job as it is, nothing agreed to."""
        models = Models(self._connect, lambda: DEFAULT)
        self.rig.events.clear()
        makers = Makers(proposing(*drafts), with_header)
        run_job(job, lambda: self.rig.evaluator, makers, self.rig.events.append, models)
        json.dumps(self.rig.events)
        return self.rig.events[-1]["report"]

    def _connect(self, granted: Granted) -> AnthropicModel:
        settings = replace(granted.settings, silence_s=self.silence_s, retries=self.retries)
        return AnthropicModel(settings, granted.key)

    def store(self) -> Store:
        return open_store(self.root).store

    def everything_kept(self) -> str:
        """The store's rows and files, and the events, as text."""
        with self.store() as store:
            rows = [str(row) for row in store._connection.iterdump()]
        texts = []
        for path in (self.root / ".cutesmith").rglob("*"):
            with suppress(UnicodeDecodeError, IsADirectoryError):
                texts.append(path.read_text())
        return "\n".join((*rows, *texts, json.dumps(self.rig.events)))


def make_model_rig(folder: Path, setenv: Callable[[str, str], None]) -> ModelRig:
    setenv("ANTHROPIC_API_KEY", KEY)
    return ModelRig(make_rig(folder))


def source(script: Script) -> str:
    """A kernel that does what the script says."""
    return candidate_source(script, "a model's")


def written(script: Script, summary: str = "a first kernel") -> Say:
    return kernel(source(script), summary)


def turned(before: Script, after: Script, summary: str = "a change") -> Say:
    """A patch that makes the one kernel the other."""
    return patch(_line(before), _line(after), summary)


def _line(script: Script) -> str:
    return next(line for line in source(script).split("\n") if line.startswith("SCRIPT"))


def round_of(before: Script, after: Script, summary: str = "a change") -> list[Act]:
    """The two answers of a round: a bottleneck named, and relieved."""
    return [bottleneck(f"{summary}, as planned"), turned(before, after, summary)]
