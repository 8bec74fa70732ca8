"""A call of a model that nobody has seen the end of is paid for: it counts with the most it may have cost."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutesmith_agent.llm import terms
from cutesmith_agent.llm.catalogue import known
from cutesmith_agent.llm.port import Usage
from cutesmith_agent.llm.settings import Wish
from cutesmith_agent.store.reservations import Reservation
from cutesmith_agent.trajectories import trajectories
from model_rig import ModelRig, make_model_rig, written
from scripted_evaluator import Script
from scripted_messages import Act, Drip, Fail, Gone, Overloaded, ScriptedMessages

HELPERS = Path(__file__).parents[1] / "helpers"
GOOD = Script(ms=1.0)
A_JOB = """
import sys
from pathlib import Path

from loop_rig import Rig
from model_rig import ModelRig

ModelRig(Rig(Path(sys.argv[1]))).run_at(sys.argv[2])
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRig:
    return make_model_rig(tmp_path, monkeypatch.setenv)


def unsettled(model: ModelRig) -> list[Reservation]:
    with model.store() as store, closing(sqlite3.connect(store.folder / "store.sqlite")) as rows:
        return [each for (job,) in rows.execute("SELECT id FROM jobs") for each in store.reservations.of(job)]


def cost(reserved: Reservation) -> float:
    price = known(reserved.model)
    assert price is not None
    return price.price.dollars(Usage(**reserved.usage))


def kill_in_mid_answer(model: ModelRig) -> None:
    """A job in a process of its own, killed while thoughts arrive."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HELPERS), *filter(None, sys.path)])}
    with ScriptedMessages([Drip("thoughts")]) as endpoint:
        process = subprocess.Popen([sys.executable, "-c", A_JOB, str(model.root), endpoint.url], env=environment)
        deadline = time.monotonic() + 30
        while not endpoint.requests:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_a_call_whose_process_was_killed_in_mid_answer_is_spent(model: ModelRig) -> None:
    kill_in_mid_answer(model)
    (reserved,) = unsettled(model)
    assert reserved.dollars == pytest.approx(cost(reserved))
    assert reserved.usage["output"] == 32_000
    tight = replace(model.job, model=Wish(max_dollars=cost(reserved) + 0.05))
    report = model.run([written(GOOD)], job=tight)
    assert model.requests == [], "what is left of the dollars holds no other call"
    assert f"${cost(reserved):.2f} of at most ${cost(reserved) + 0.05:.2f}" in report["stopped"]
    used = model.run([written(GOOD)], job=replace(model.job, again=True, model=Wish(max_rounds=1)))["model"]
    assert (used["calls"], used["unsettled"]) == (2, 1)
    seen = sum(call["dollars"] for call in _calls(model))
    assert used["dollars"] == pytest.approx(cost(reserved) + seen)


def test_a_call_that_ended_is_counted_once(model: ModelRig) -> None:
    report = model.run([written(GOOD)], job=replace(model.job, model=Wish(max_rounds=1)))
    assert unsettled(model) == []
    assert report["model"]["unsettled"] == 0
    assert report["model"]["dollars"] == pytest.approx(sum(call["dollars"] for call in _calls(model)))


@pytest.mark.parametrize(
    ("act", "counts"),
    [
        (Fail(401, "authentication_error", "invalid x-api-key"), False),
        (Fail(400, "invalid_request_error", "prompt is too long"), False),
        (Overloaded(begins=False), False),
        (Gone(), True),
        (Drip("headers"), True),
    ],
    ids=["refused", "too long", "overloaded", "reset", "no headers"],
)
def test_what_ends_before_it_begins_is_spent_where_the_model_may_have_worked(
    model: ModelRig, act: Act, counts: bool
) -> None:
    model.retries = 0
    minutes = 0.03 if isinstance(act, Drip) else 5  # only that never ends by itself
    report = model.run([act, written(GOOD)], job=replace(model.job, model=Wish(max_minutes=minutes)))
    used = report["model"]
    assert (used is not None and used["uncached"] > 20_000) is counts
    assert (used is not None and used["dollars"] > 0.1) is counts


def test_a_server_that_cannot_be_reached_costs_nothing(model: ModelRig) -> None:
    model.retries = 0
    assert model.run_at("http://127.0.0.1:9")["model"] is None
    assert unsettled(model) == []


@pytest.mark.parametrize(
    ("table", "column"),
    [("calls", "reply"), ("calls", "prompt"), ("calls", "outcome"), ("prompt_parts", "text"), ("trials", "record")],
)
def test_a_row_that_makes_no_sense_ends_a_resumed_job_with_a_sentence(model: ModelRig, table: str, column: str) -> None:
    """Nothing is asked on a guess of what was spent; other jobs, and what was accepted, are not touched."""
    job = replace(model.job, again=True, model=Wish(max_rounds=1))
    model.run([written(GOOD)], job=job)
    with model.store() as store:
        database = store.folder / "store.sqlite"
    for value in ("{", b"\xff\xfe"):
        if column == "text" and isinstance(value, str):
            continue  # any text may be a part of a prompt
        with closing(sqlite3.connect(database)) as rows:
            rows.execute(f"UPDATE {table} SET {column} = ?", (value,))
            rows.commit()
        report = model.run([written(GOOD)], job=job)
        assert model.requests == []
        (finding,) = [each for each in report["findings"] if each["kind"] == "store"]
        assert finding["message"].startswith(f"The store of {model.root} cannot be used (it is damaged: a row of ")
        if table != "trials":
            with model.store() as store, pytest.raises(sqlite3.DataError):
                list(trajectories(store, model.root, None, None))


def test_an_agreement_that_makes_no_sense_is_none() -> None:
    assert terms.read("{") == terms.read("[]") == terms.read("null") == {}


def _calls(model: ModelRig) -> list[dict[str, Any]]:
    with model.store() as store, closing(sqlite3.connect(store.folder / "store.sqlite")) as rows:
        return [{"dollars": dollars} for (dollars,) in rows.execute("SELECT dollars FROM calls")]
