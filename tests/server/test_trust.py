from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from cutesmith_server.trust import TrustGate

pytestmark = pytest.mark.asyncio


class Answers:
    """A user who answers as told and remembers what was asked."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[Path] = []

    async def __call__(self, folder: Path) -> bool:
        self.asked.append(folder)
        await asyncio.sleep(0)
        return self.answer


async def allows(gate: TrustGate, folder: Path, client_says: bool | None = None) -> bool:
    return await gate.allows(folder, client_says=client_says)


async def test_a_yes_is_remembered_for_the_folder_and_what_is_in_it(tmp_path):
    record, user = tmp_path / "state" / "trust.json", Answers(True)
    (tmp_path / "project" / "inner").mkdir(parents=True)
    assert await allows(TrustGate(user, record), tmp_path / "project")
    assert json.loads(record.read_text()) == {"folders": [str(tmp_path / "project")]}
    assert record.stat().st_mode & 0o777 == 0o600
    later = TrustGate(Answers(False), record)
    assert await allows(later, tmp_path / "project" / "inner")
    assert not await allows(later, tmp_path)


async def test_a_no_is_asked_again(tmp_path):
    user = Answers(False)
    gate = TrustGate(user, tmp_path / "trust.json")
    assert not await allows(gate, tmp_path)
    assert not await allows(gate, tmp_path)
    assert user.asked == [tmp_path, tmp_path]
    assert not (tmp_path / "trust.json").exists()


async def test_callers_at_the_same_time_share_one_question(tmp_path):
    user = Answers(True)
    gate = TrustGate(user, tmp_path / "trust.json")
    assert await asyncio.gather(*(allows(gate, tmp_path) for _ in range(5))) == [True] * 5
    assert user.asked == [tmp_path]


async def test_a_caller_that_gives_up_takes_no_answer_from_the_others(tmp_path):
    user = Answers(True)
    gate = TrustGate(user, tmp_path / "trust.json")
    impatient, patient = (asyncio.create_task(allows(gate, tmp_path)) for _ in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient


async def test_a_client_with_a_trust_of_its_own_is_believed(tmp_path):
    user = Answers(True)
    gate = TrustGate(user, tmp_path / "trust.json")
    assert await allows(gate, tmp_path, client_says=True)
    assert not await allows(gate, tmp_path, client_says=False)
    assert user.asked == []


async def test_a_link_to_a_trusted_folder_is_that_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    gate = TrustGate(Answers(True), tmp_path / "trust.json")
    assert await allows(gate, tmp_path / "link")
    assert json.loads((tmp_path / "trust.json").read_text()) == {"folders": [str(tmp_path / "real")]}


async def test_a_damaged_record_asks_again_and_an_unwritable_one_holds_for_the_session(tmp_path):
    record = tmp_path / "file" / "trust.json"
    (tmp_path / "file").write_text("in the way of a folder")
    user = Answers(True)
    gate = TrustGate(user, record)
    assert await allows(gate, tmp_path)
    assert await allows(gate, tmp_path)
    assert user.asked == [tmp_path]
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    assert await allows(TrustGate(Answers(True), damaged), tmp_path)
    assert json.loads(damaged.read_text()) == {"folders": [str(tmp_path)]}
