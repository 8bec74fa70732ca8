"""What is asked of a server ends in time, or when the job does."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from cutesmith_agent.llm.deadline import DeadlineError, within

Tell = Callable[[str], None]


def test_its_result_and_its_progress_come_through() -> None:
    told: list[tuple[str, threading.Thread]] = []

    async def work(tell: Tell) -> int:
        tell("half")
        await asyncio.sleep(0.01)
        tell("whole")
        return 7

    assert within(5.0, work, lambda text: told.append((text, threading.current_thread()))) == 7
    assert told == [("half", threading.main_thread()), ("whole", threading.main_thread())]


@pytest.mark.parametrize("error", [TimeoutError("its own"), ValueError("no")])
def test_its_own_errors_come_through(error: Exception) -> None:
    async def work(tell: Tell) -> None:
        raise error

    with pytest.raises(type(error), match=str(error)):
        within(5.0, work, print)


def test_the_deadline_ends_what_sleeps_and_what_does_not_heed_it() -> None:
    async def sleeps(tell: Tell) -> None:
        await asyncio.sleep(60)

    async def heeds_nothing(tell: Tell) -> None:
        time.sleep(3.5)

    for work, latest in ((sleeps, 1.0), (heeds_nothing, 3.0)):
        began = time.monotonic()
        with pytest.raises(DeadlineError):
            within(0.2, work, print)
        assert time.monotonic() - began < latest


def test_who_interrupts_it_ends_the_work_too() -> None:
    """A signal raises in the caller's thread; nothing more may be sent then."""
    ended = threading.Event()

    async def work(tell: Tell) -> None:
        tell("begun")
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    def interrupt(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        within(60.0, work, interrupt)
    assert ended.wait(5.0)
