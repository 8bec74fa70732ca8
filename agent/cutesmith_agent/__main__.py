"""The agent process: a job on stdin, events as JSON lines on stdout, SIGTERM cancels. Exit statuses: `report.py`."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

from cutesmith_agent.bounds import BoundsError, worker_limits
from cutesmith_agent.job import Job, JobError, read_job
from cutesmith_agent.llm.access import Granted, Models
from cutesmith_agent.llm.catalogue import default_model
from cutesmith_agent.llm.editor_link import EditorLink, lines_from
from cutesmith_agent.llm.editor_model import EditorModel
from cutesmith_agent.llm.port import ChatModel
from cutesmith_agent.loop import Makers
from cutesmith_agent.report import NO_CANDIDATE, UNUSABLE_INPUT, Report
from cutesmith_agent.running import run_job
from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.store.location import workspace_root
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.processes import descendants
from cutesmith_evaluator.types import Finding, Task


class CancelledError(BaseException):
    """SIGTERM or SIGINT came, or nobody reads the events any more."""


def main() -> int:
    """Returns the exit status."""
    events = _take_stdout()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _cancel)
    try:
        return _run(events)
    except CancelledError:
        return 128 + signal.SIGTERM
    finally:
        _end_orphans()


def _take_stdout() -> IO[str]:
    """Keep stdout for events: whatever else prints goes to stderr, C code's output too."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    return events


def _cancel(number: int, frame: FrameType | None) -> NoReturn:
    """Once: what cleans up is not interrupted in turn."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    raise CancelledError


def _end_orphans() -> None:
    """What a dead worker's user code had detached: where the agent was started as a subreaper, it is ours now."""
    for pid in descendants(os.getpid()):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _run(events: IO[str]) -> int:
    def emit(event: dict[str, Any]) -> None:
        try:
            events.write(json.dumps(event) + "\n")
            events.flush()
        except BrokenPipeError:
            raise CancelledError from None

    task = Task("", "")
    try:
        told = lines_from(sys.stdin.fileno())
        job = read_job(next(told, b""))
        task = job.task
        return _do(job, emit, EditorLink(emit, told))
    except JobError as error:
        report, status = Report(task, str(error), findings=(Finding("bad-job", str(error)),)), UNUSABLE_INPUT
    except Exception as error:  # noqa: BLE001 - the process's boundary: a defect of ours still ends with a report
        scrub = Scrubber().text
        sys.stderr.write(scrub(traceback.format_exc()))
        what = scrub(f"{type(error).__name__}: {error}")
        message = f"CuteSmith failed by a defect of its own ({what}); the log has the details."
        report, status = Report(task, message, findings=(Finding("internal-error", message),)), NO_CANDIDATE
    emit({"event": "done", "report": report.to_json(), "exit": status})
    return status


def _do(job: Job, emit: Any, editor: EditorLink) -> int:
    from cutesmith_agent.recipes import propose, with_header

    makers = Makers(propose, with_header)
    models = Models(lambda granted: _connect(granted, editor), default_model, editor)
    try:
        limits = worker_limits(workspace_root(job.file))
    except BoundsError as error:
        raise JobError(str(error)) from None
    return run_job(job, lambda: Worker(Path(job.interpreter), limits=limits), makers, emit, models).exit


def _connect(granted: Granted, editor: EditorLink) -> ChatModel:
    if granted.settings.of_editor:
        return EditorModel(editor, granted.settings.model)
    from cutesmith_agent.llm.anthropic_model import AnthropicModel

    return AnthropicModel(granted.settings, granted.key)


if __name__ == "__main__":
    sys.exit(main())
