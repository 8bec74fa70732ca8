"""Runs one agent job for the command line, showing its stages on stderr."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cutesmith_server.agent_process import AgentProcess, CandidateJudged, ConsentAsked, Died, Done, StageReached
from cutesmith_server.cli.output import console
from cutesmith_server.cli.working import agent_at_work
from cutesmith_server.errors import RefusedError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from cutesmith_agent.job import Job

_INTERRUPTED = "Interrupted: what was tried is kept, and the same command goes on from there."
_End = tuple[Done, ConsentAsked | None]


def run_job(job: Job, *, quiet: bool, waits: bool = True) -> tuple[Done, ConsentAsked | None]:
    """The job's end, and what the user must agree to before there can be a better one. `waits`: for its device.

    Ctrl-C ends its processes first. Raises RefusedError then, when the agent dies, or the device is not to be had."""
    try:
        return asyncio.run(_quietly(job, waits) if quiet else _shown(job, waits))
    except KeyboardInterrupt:
        raise RefusedError(_INTERRUPTED, exit=130) from None
    except OSError as error:
        raise RefusedError(f"The agent process could not be started: {error}.") from None


async def _quietly(job: Job, waits: bool) -> _End:
    def say(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    async with agent_at_work(job, say, waits=waits) as agent:
        return await _follow(agent, lambda event: None)


async def _shown(job: Job, waits: bool) -> _End:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn()
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        bar = progress.add_task("starting", total=1.0)
        async with agent_at_work(job, lambda words: _print(words, progress), waits=waits) as agent:
            return await _follow(agent, lambda event: _show(event, progress, bar))


async def _follow(agent: AgentProcess, show: Callable[[StageReached | CandidateJudged], None]) -> _End:
    asked: ConsentAsked | None = None
    async for event in agent.events():
        if isinstance(event, Done):
            return event, asked
        if isinstance(event, Died):
            raise RefusedError(event.message)
        if isinstance(event, ConsentAsked):
            asked = event
        else:
            show(event)
    raise AssertionError("the events of an agent end with Done or Died")


def _show(event: StageReached | CandidateJudged, progress: Progress, bar: TaskID) -> None:
    if isinstance(event, StageReached):
        progress.update(bar, description=event.stage, completed=event.fraction)
        _print(f"{event.stage:>9}  {event.message}", progress)
    else:
        _print(f"{'':>9}  {_judgement(event.candidate)}", progress)


def _print(words: str, progress: Progress) -> None:
    from rich.text import Text

    progress.console.print(Text(words), soft_wrap=True)


def _judgement(candidate: dict[str, Any]) -> str:
    words = {True: "passed", False: "failed", None: "not run"}[candidate.get("ok")]
    return f"candidate {candidate.get('id')}: {words} at {candidate.get('stage')}"
