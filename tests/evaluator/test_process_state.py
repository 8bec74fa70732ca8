"""A process whose limits, folder, mask and signals were changed is as it was for the next request."""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import replace
from pathlib import Path

from cutesmith_evaluator.worker.process_state import process_state


def test_what_was_changed_is_put_back(tmp_path: Path):
    before = process_state()
    try:
        (tmp_path / "gone").mkdir()
        os.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
        os.umask(0o777)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, before.limits[resource.RLIMIT_NOFILE][1]))
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.alarm(60)
    finally:
        assert before.restore()
    assert process_state() == before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_what_cannot_be_put_back_is_told():
    state = process_state()
    assert not replace(state, folder="/nowhere/at/all").restore()
    assert state.restore()
