"""Runs one agent job for the command line, showing its stages on stderr."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from cutesmith_server.agent_process import AgentProcess, CandidateJudged, ConsentAsked, Died, Done, StageReached
from cutesmith_server.cli.output import console
from cutesmith_server.errors import RefusedError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from cutesmith_agent.job import Job

_End = tuple[Done, ConsentAsked | None]


def run_job(job: Job, *, quiet: bool) -> tuple[Done, ConsentAsked | None]:
    """The job's end, and what the user must agree to before there can be a better one.

    Ctrl-C ends its processes first. Raises RefusedError when the agent dies."""
    try:
        return asyncio.run(_quietly(job) if quiet else _shown(job))
    except OSError as error:
        raise RefusedError(f"The agent process could not be started: {error}.") from None


async def _quietly(job: Job) -> _End:
    return await _follow(job, None, None)


async def _shown(job: Job) -> _End:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn()
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        return await _follow(job, progress, progress.add_task("starting", total=1.0))


async def _follow(job: Job, progress: Progress | None, bar: TaskID | None) -> _End:
    agent = await AgentProcess.start(job)
    asked: ConsentAsked | None = None
    try:
        async for event in agent.events():
            if isinstance(event, Done):
                return event, asked
            if isinstance(event, Died):
                raise RefusedError(event.message)
            if isinstance(event, ConsentAsked):
                asked = event
            elif progress is not None and bar is not None:
                _show(event, progress, bar)
        raise AssertionError("the events of an agent end with Done or Died")
    finally:
        await asyncio.shield(agent.stop())


def _show(event: StageReached | CandidateJudged, progress: Progress, bar: TaskID) -> None:
    from rich.text import Text

    if isinstance(event, StageReached):
        progress.update(bar, description=event.stage, completed=event.fraction)
        progress.console.print(Text(f"{event.stage:>9}  {event.message}"), soft_wrap=True)
    else:
        progress.console.print(Text(f"{'':>9}  {_judgement(event.candidate)}"))


def _judgement(candidate: dict[str, Any]) -> str:
    words = {True: "passed", False: "failed", None: "not run"}[candidate.get("ok")]
    return f"candidate {candidate.get('id')}: {words} at {candidate.get('stage')}"
