"""Everything the server adds to LSP, by name: commands, custom methods, settings and the value they carry.

`docs/protocol.md` describes it; `vscode-extension/src/protocol.ts` mirrors it (a test compares the two).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

SERVER_NAME = "cutesmith"
DIAGNOSTIC_SOURCE = "cutesmith"

GENERATE = "cutesmith.generate"
IMPROVE = "cutesmith.improve"
CANCEL = "cutesmith.cancel"
ACCEPT = "cutesmith.accept"
REJECT = "cutesmith.reject"
REMOVE = "cutesmith.remove"
CHECK = "cutesmith.check"
REVIEW = "cutesmith.review"
ADD_INPUTS = "cutesmith.addInputs"
ACCEPT_FILE = "cutesmith.acceptFile"
SHOW_JOB_LOG = "cutesmith.showJobLog"
APPROVE = "cutesmith.approve"
PAUSE = "cutesmith.pause"
RESUME = "cutesmith.resume"
REVALIDATE = "cutesmith.revalidate"
ALLOW_LOWERED = "cutesmith.allowLowered"
WATCH = "cutesmith.watch"
UNWATCH = "cutesmith.unwatch"
COMMANDS = (
    GENERATE,
    IMPROVE,
    CANCEL,
    ACCEPT,
    ACCEPT_FILE,
    REJECT,
    REMOVE,
    CHECK,
    REVIEW,
    ADD_INPUTS,
    SHOW_JOB_LOG,
    APPROVE,
    PAUSE,
    RESUME,
    REVALIDATE,
    ALLOW_LOWERED,
    WATCH,
    UNWATCH,
)

JOBS = "cutesmith/jobs"
JOB_CHANGED = "cutesmith/jobChanged"
MODULES = "cutesmith/modules"
PROPOSAL = "cutesmith/proposal"
REPORT = "cutesmith/report"
CLASS_REQUESTS = (PROPOSAL, REPORT)  # with one {"uri", "class"} as their params
LANGUAGE_MODEL = "cutesmith/languageModel"
CHAT = "cutesmith/chat"
CLIENT_REQUESTS = (LANGUAGE_MODEL, CHAT)  # that the server makes, of a client with the capability
METHODS = (JOBS, JOB_CHANGED, MODULES, *CLASS_REQUESTS, *CLIENT_REQUESTS)
SERVER_STATUS = "experimental/serverStatus"  # as rust-analyzer has it

SETTINGS = (
    "interpreter",
    "device",
    "archs",
    "watch",
    "watchRegenerates",
    "watchMinutes",
    "confirmEdits",
    "askModel",
    "modelProvider",
    "trusted",
)

State = Literal[
    "idle", "running", "paused", "ready", "compiled", "failed", "accepted", "stale", "cancelled", "reference"
]


@dataclass(frozen=True)
class JobState:
    """What the server knows of one class. `stage` is "" unless a job runs; `message` is one sentence or ""."""

    uri: str
    class_name: str  # qualified name; "class" on the wire
    state: State
    stage: str = ""
    message: str = ""
    best: dict[str, Any] | None = None  # a Candidate as the agent reported it

    def as_wire(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "class": self.class_name,
            "state": self.state,
            "stage": self.stage,
            "message": self.message,
            "best": self.best,
        }
