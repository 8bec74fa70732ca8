"""Whose leave a job with a model needs: what is asked, and when it is asked again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cutesmith_agent.llm.access import Question, Withheld, access
from cutesmith_agent.llm.settings import Wish
from model_rig import DEFAULT, ModelRig, make_model_rig


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelRig:
    return make_model_rig(tmp_path, monkeypatch.setenv)


def test_nothing_is_sent_without_consent_and_the_question_says_what_where_and_how_much(model: ModelRig) -> None:
    report = model.run([], consents=False)
    (asked,) = [event for event in model.rig.events if event["event"] == "consent"]
    assert model.requests == []
    assert model.rig.evaluator.requests == [], "nor was anything run"
    assert report["findings"][0]["kind"] == "needs-consent"
    assert model.rig.events[-1]["exit"] == 2
    for word in ("claude-opus-5-5 at 127.0.0.1:", "class", "$3.00", "remembered for this workspace"):
        assert word in asked["question"]


def asked(model: ModelRig, **wish: Any) -> Question | None:
    """What a job would ask the user."""
    with model.store() as store:
        may = access(replace(model.job, model=Wish(**wish)), model.root, store, lambda: DEFAULT)
    return may.question if isinstance(may, Withheld) else None


def agree(model: ModelRig, question: Question) -> None:
    with model.store() as store:
        store.set_consent(question.host, granted=True, terms=question.terms)


@pytest.mark.parametrize(
    ("line", "by_yes"),
    [
        ('base_url = "https://api.anthropic.com/v1/of-somebody"', False),
        ("max_dollars = 3.5", False),
        ("max_tokens = 900000", False),
        ('model = "claude-unheard-of-9"', False),
        ('model = "claude-sonnet-5-5"', True),
    ],
)
def test_what_a_project_asks_for_needs_an_answer_of_its_own(model: ModelRig, line: str, by_yes: bool) -> None:
    """The user agreed once; then the project's own settings change: another address on the same host, more money."""
    with model.store() as store:
        store.set_consent("api.anthropic.com", granted=True)
    assert asked(model) is None
    (model.root / "pyproject.toml").write_text(f"[tool.cutesmith]\n{line}\n")
    question = asked(model)
    assert question is not None
    assert (question.host, question.by_yes) == ("api.anthropic.com", by_yes)
    assert f"pyproject.toml asks for: {line.replace(' = ', ' ').replace(chr(34), '')}" in question.text
    agree(model, question)
    assert asked(model) is None


def test_a_bound_that_grows_again_is_asked_for_again(model: ModelRig) -> None:
    settings = model.root / "pyproject.toml"
    for dollars, is_asked in ((10.0, True), (10.0, False), (4.0, False), (10.5, True), (2.0, False)):
        settings.write_text(f"[tool.cutesmith]\nmax_dollars = {dollars}\n")
        question = asked(model)
        assert (question is not None) == is_asked, dollars
        if question is not None:
            agree(model, question)


def test_what_the_user_sets_is_the_users_own(model: ModelRig, monkeypatch: pytest.MonkeyPatch) -> None:
    (model.root / "pyproject.toml").write_text('[tool.cutesmith]\nmax_dollars = 99\nmodel = "claude-unheard-of-9"\n')
    with model.store() as store:
        store.set_consent("api.anthropic.com", granted=True)
    monkeypatch.setenv("CUTESMITH_MODEL", "claude-opus-5-5")
    assert asked(model, max_dollars=50.0) is None


def test_what_the_project_wants_now_is_why_nothing_was_sent(model: ModelRig) -> None:
    """A job of the whole: its event has the terms that the answer is kept with."""
    with model.store() as store:
        store.set_consent("api.anthropic.com", granted=True)
    (model.root / "pyproject.toml").write_text("[tool.cutesmith]\nmax_dollars = 50\n")
    report = model.run_job(model.job)
    (event,) = [event for event in model.rig.events if event["event"] == "consent"]
    assert (event["terms"], event["by_yes"]) == ('{"max_dollars": 50.0}', False)
    assert report["stopped"] == (
        "Nothing was sent: you have not agreed to what the project wants now."
        " This project's pyproject.toml asks for: max_dollars 50.0."
    )
