"""What each class's last job said, to be read when it went wrong."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from cutesmith_server.agent_process import CandidateJudged, ConsentAsked, Died, Done, StageReached

if TYPE_CHECKING:
    from cutesmith_server.jobs import ClassKey, JobEvent

_MOST_LINES = 2000


class JobLogs:
    """By class; each begins anew with a job."""

    def __init__(self) -> None:
        self._lines: dict[ClassKey, deque[str]] = {}

    def begin(self, key: ClassKey, title: str) -> None:
        self._lines[key] = deque(maxlen=_MOST_LINES)
        self._add(key, title)

    def note(self, key: ClassKey, event: JobEvent) -> None:
        for line in _lines_of(event):
            self._add(key, line)

    def text(self, key: ClassKey) -> str:
        """ "" when the class has had no job."""
        return "".join(f"{line}\n" for line in self._lines.get(key, ()))

    def _add(self, key: ClassKey, line: str) -> None:
        stamp = time.strftime("%H:%M:%S")
        self._lines.setdefault(key, deque(maxlen=_MOST_LINES)).append(f"{stamp} {line}")


def _lines_of(event: JobEvent) -> list[str]:
    match event:
        case StageReached(stage, message, _):
            return [f"{stage}: {message}"]
        case CandidateJudged(candidate):
            verdict = {True: "right", False: "failed", None: "not validated"}[candidate.get("ok")]
            words = [f"candidate {candidate.get('id')} ({candidate.get('origin')}): {verdict}"]
            return words + [f"  {_place(each)}{each.get('message')}" for each in candidate.get("findings") or ()]
        case ConsentAsked(host=host):
            return [f"code would be sent to {host}: you are asked"]
        case Done(report, status):
            found = [f"  {_place(each)}{each.get('message')}" for each in report.get("findings") or ()]
            return [f"ended ({status}): {report.get('stopped')}", *found]
        case Died(message):
            return [message]
        case _:
            return ["cancelled"]


def _place(finding: dict[str, object]) -> str:
    file, line = finding.get("file"), finding.get("line")
    return f"{file}:{line}: " if file and line else ""
