"""What a worker's client raises. `str()` is one sentence for a person."""

from __future__ import annotations

from cutesmith_evaluator.types import Finding


class WorkerError(Exception):
    """The request has no answer."""

    kind = "worker-error"

    @property
    def finding(self) -> Finding:
        return Finding(self.kind, str(self))


class WorkerTimeout(WorkerError):  # noqa: N818 - the name says what happened
    """The deadline passed; the process group was killed."""

    kind = "timeout"


class WorkerDied(WorkerError):  # noqa: N818 - the name says what happened
    """The process ended, or was killed for the memory it used, before it answered."""

    kind = "worker-died"


class WorkerUnavailable(WorkerError):  # noqa: N818 - the name says what happened
    """No worker can be started in this interpreter."""

    kind = "worker-unavailable"
