"""The two processes of a confirmation, from their start on: that they come up takes seconds, so they may be started
while the candidate is still judged elsewhere. Until a confirmation begins they are asked nothing."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from cutesmith_evaluator.errors import WorkerError
from cutesmith_evaluator.process import Limits, WorkerProcess


class Pair:
    """Two processes that come up. The judge's is made and spoken to in a thread of its own, `beside`: a process ends
    with the thread that made it. Raises WorkerUnavailable."""

    def __init__(self, interpreter: Path, limits: Limits) -> None:
        self.beside = ThreadPoolExecutor(1)
        self._judge = self.beside.submit(_started, interpreter, limits, with_dsl=False)
        try:
            self._runner = _started(interpreter, limits, with_dsl=True)
        except WorkerError:
            self._close_judge()
            raise

    @property
    def alive(self) -> bool:
        """Whether both live; what has taken one from us without cause may have spared the next."""
        return self._judge.exception() is None and self._judge.result().alive and self._runner.alive

    def runner(self) -> WorkerProcess:
        """The one that gets the candidate, once it is up. Raises WorkerError."""
        return _up(self._runner)

    def judge(self) -> WorkerProcess:
        """The one that judges, once it is up; for the thread beside. Raises WorkerError."""
        return _up(self._judge.result())

    def close(self) -> None:
        """Ends all that is left, at once."""
        self._runner.kill()
        self._close_judge()

    def _close_judge(self) -> None:
        with suppress(WorkerError):
            process = self._judge.result()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the thread that waits for it sees that
            self.beside.shutdown()
            process.kill()
        self.beside.shutdown()


def _started(interpreter: Path, limits: Limits, *, with_dsl: bool) -> WorkerProcess:
    return WorkerProcess(interpreter, limits, spare=True, with_dsl=with_dsl)


def _up(process: WorkerProcess) -> WorkerProcess:
    process.come_up()
    process.load(None)
    return process
