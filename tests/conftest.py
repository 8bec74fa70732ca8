"""Under CI=true a test that skips or is expected to fail is a failure: what did not run has shown nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_FOLDER = Path.cwd()


@pytest.fixture(autouse=True, scope="session")
def _state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that tests do is remembered among the user's own answers and locks, or waits for the user's jobs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A task that a test imports in this process leaves it in the task's folder, which pytest deletes later: processes
    that are started there do not come up."""
    os.chdir(_FOLDER)


def _fail(report: pytest.TestReport | pytest.CollectReport, reason: str) -> None:
    report.outcome = "failed"
    report.longrepr = f"did not run, and in CI every test must: {reason}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if os.environ.get("CI") == "true":
        if hasattr(report, "wasxfail"):
            _fail(report, f"marked xfail ({report.wasxfail or 'no reason given'})")
            del report.wasxfail
        elif report.skipped:
            _fail(report, _reason(report))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector):
    report = yield
    if os.environ.get("CI") == "true" and report.skipped:
        _fail(report, _reason(report))
    return report
