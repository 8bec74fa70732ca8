"""What a project's own settings ask for beyond what is usual: the user agrees to it, or is asked again when it grows.

Whoever opens a project did not write its pyproject.toml. Settings of the job or the environment are the user's own."""

from __future__ import annotations

import json
from typing import Any

from cutesmith_agent.llm.catalogue import known
from cutesmith_agent.llm.settings import PROJECT, ModelSettings

_SAME = ("base_url", "model")  # where text goes, and to whom
_MOST = ("max_dollars", "max_tokens")  # what it may cost

Terms = dict[str, Any]


def terms(settings: ModelSettings) -> Terms:
    """By the setting's name: an address or a model that the project chose, a bound that it raised."""
    usual = ModelSettings("")
    asked = {name: getattr(settings, name) for name in (*_SAME, *_MOST) if name in settings.by_project}
    return {name: value for name, value in asked.items() if not _is_within(name, getattr(usual, name), value)}


def need_more_than_yes(asked: Terms) -> bool:
    """Whether a blanket yes, given without seeing them, is too little: for all but a model whose price is known."""
    return any(name != "model" or known(value) is None for name, value in asked.items())


def covers(agreed: Terms, asked: Terms) -> bool:
    """Whether who agreed to the one agreed to the other, too."""
    return all(name in agreed and _is_within(name, agreed[name], value) for name, value in asked.items())


def _is_within(name: str, agreed: Any, asked: Any) -> bool:
    return agreed == asked if name in _SAME else agreed >= asked


def words(asked: Terms) -> str:
    """For the question, with a blank before it; "" where nothing is asked for."""
    if not asked:
        return ""
    told = ", ".join(f"{name} {value}" for name, value in asked.items())
    return f" This project's {PROJECT} asks for: {told}."


def text(asked: Terms) -> str:
    """As the store keeps them."""
    return json.dumps(asked, sort_keys=True)


def read(stored: str) -> Terms:
    """Nothing, where that is no text of ours: the user is then asked again."""
    try:
        found = json.loads(stored)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
