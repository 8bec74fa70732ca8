"""One agent process: a JSON job in, events out, and a certain end.

The editor's server and the command line both run jobs through here.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cutesmith_evaluator.processes import descendants, kill_tree
from cutesmith_evaluator.temporary import remove_abandoned

if TYPE_CHECKING:
    from cutesmith_agent.job import Job

log = logging.getLogger(__name__)

_LINE_LIMIT = 64 * 2**20  # bytes; a report holds whole kernel sources
_GRACE_S = 0.6  # a cancel takes effect within a second
_POLL_S = 0.01

# The agent dies with us even when we are killed. Set in the child itself: a preexec_fn could deadlock in a
# process that has threads. After prctl the parent may already be gone, hence the second look. The other prctl makes it
# the subreaper of what dead workers leave behind.
_START_AGENT = """\
import ctypes, os, runpy, signal, sys
os.nice({nice})
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    ctypes.CDLL(None).prctl(36, 1)
    if os.getppid() != {parent}:
        sys.exit(1)
runpy.run_module("cutesmith_agent", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class StageReached:
    stage: str
    message: str
    fraction: float


@dataclass(frozen=True)
class CandidateJudged:
    candidate: dict[str, Any]


@dataclass(frozen=True)
class ConsentAsked:
    """The job wants to send code to a model's host, and the user was not asked about that yet.

    `by_yes`: a blanket yes (--yes) answers it. `terms`: what the project's settings ask for, kept with the answer."""

    host: str
    question: str
    by_yes: bool
    terms: str


@dataclass(frozen=True)
class Done:
    """The job's end. `report` is what `--json` prints; `exit` is the exit status it stands for."""

    report: dict[str, Any]
    exit: int


@dataclass(frozen=True)
class Died:
    """The agent ended without a report; `message` is one sentence."""

    message: str


@dataclass(frozen=True)
class EditorAsked:
    """The agent wants something of the editor, and waits for the answer: which language model it has, or what that says
    to `params`. `seconds`: how long it waits."""

    id: int
    what: Literal["model", "chat"]
    params: dict[str, Any]
    seconds: float


AnswerOfEditor = Callable[[EditorAsked], Awaitable[dict[str, Any]]]
Event = StageReached | CandidateJudged | ConsentAsked | Done | Died


class AgentProcess:
    """An agent at its job. Iterate `events()`, then, in any case, `stop()`."""

    def __init__(self, process: asyncio.subprocess.Process, job: Job, editor: AnswerOfEditor | None = None) -> None:
        self._process = process
        self._job, self._editor = job, editor
        self._asking: set[asyncio.Task[None]] = set()
        self._last_words: deque[str] = deque(maxlen=20)
        self._stderr = asyncio.create_task(self._read_stderr())

    @classmethod
    async def start(
        cls, job: Job, *, nice: int = 0, holds: int | None = None, editor: AnswerOfEditor | None = None
    ) -> AgentProcess:
        """`holds`: a descriptor that the agent keeps open while it lives. `editor`: what answers its questions to the
        editor. Cancelled meanwhile, this leaves nothing behind. Raises OSError."""
        starting = asyncio.ensure_future(_spawn(nice, () if holds is None else (holds,)))
        try:
            return cls(await asyncio.shield(starting), job, editor)
        except asyncio.CancelledError:
            await cls(await starting, job).stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    async def events(self) -> AsyncIterator[Event]:
        """The events up to and with the last, which is `Done` or `Died`."""
        assert self._process.stdout is not None
        await self._send_job()
        async for line in self._process.stdout:
            event = _parse(line)
            if isinstance(event, EditorAsked):
                self._ask_editor(event)
            elif event is not None:
                yield event
            if isinstance(event, Done):
                return
        yield Died(await self._obituary())

    async def stop(self) -> None:
        """Asks the agent to end, then ends it and everything it started (workers lead process groups of their own)."""
        for task in self._asking:
            task.cancel()
        started = descendants(self.pid)
        _signal([self.pid] if self._running else [], signal.SIGTERM)
        try:
            async with asyncio.timeout(_GRACE_S):
                await self._ended()
            _signal(started, signal.SIGKILL)
        except TimeoutError:
            kill_tree(self.pid)
            await self._ended()
            await asyncio.to_thread(remove_abandoned)
        self._stderr.cancel()

    async def _ended(self) -> None:
        """Returns when the process is gone. (asyncio's own `wait` waits for its pipes, too, which others may hold.)"""
        while self._running:
            await asyncio.sleep(_POLL_S)

    @property
    def _running(self) -> bool:
        return self._process.returncode is None

    async def _send_job(self) -> None:
        from cutesmith_evaluator.wire import converter

        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(converter().unstructure(self._job)).encode() + b"\n")
            await self._process.stdin.drain()
            if self._job.provider != "editor":
                self._process.stdin.close()
        except (BrokenPipeError, ConnectionResetError):
            log.warning("the agent ended before it read its job")

    def _ask_editor(self, asked: EditorAsked) -> None:
        self._asking.add(task := asyncio.create_task(self._answer(asked), name=f"editor asked by {self.pid}"))
        task.add_done_callback(self._asking.discard)

    async def _answer(self, asked: EditorAsked) -> None:
        assert self._process.stdin is not None
        nobody: dict[str, Any] = {"refused": "No editor is there to be asked.", "may_cost": False}
        reply = nobody if self._editor is None else await self._editor(asked)
        try:
            self._process.stdin.write(json.dumps({"id": asked.id, **reply}).encode() + b"\n")
            await self._process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            log.warning("the agent ended before the editor's answer came")

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            text = line.decode(errors="replace").rstrip()
            self._last_words.append(text)
            log.info("agent %d: %s", self.pid, text)

    async def _obituary(self) -> str:
        await self._ended()
        code = self._process.returncode or 0
        await asyncio.wait({self._stderr}, timeout=_GRACE_S)  # somebody else may hold the other end
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        why = next((line for line in reversed(self._last_words) if line.strip()), "")
        return f"The agent process {how} before it reported" + (f": {why}" if why else "; try again.")


async def _spawn(nice: int, descriptors: tuple[int, ...]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *_command(nice),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        limit=_LINE_LIMIT,
        start_new_session=True,
        pass_fds=descriptors,
    )


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _command(nice: int) -> list[str]:
    # -P keeps the current folder, which is the user's project, off the agent's import path.
    return [sys.executable, "-P", "-c", _START_AGENT.format(parent=os.getpid(), nice=nice)]


def _parse(line: bytes) -> Event | EditorAsked | None:
    try:
        data = json.loads(line)
        match data["event"]:
            case "stage":
                return StageReached(data["stage"], data["message"], float(data["fraction"]))
            case "candidate":
                return CandidateJudged(data["candidate"])
            case "consent":
                return ConsentAsked(data["host"], data["question"], bool(data["by_yes"]), data["terms"])
            case "editor":
                return EditorAsked(int(data["id"]), data["what"], dict(data["params"]), float(data["seconds"]))
            case "done":
                return Done(data["report"], int(data["exit"]))
    except (ValueError, KeyError, TypeError):
        log.warning("the agent wrote a line that is no event: %.200r", line)
    return None
