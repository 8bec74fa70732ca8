"""Models: which is the newest that the installed SDK lists, what each costs, how each is told to think."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from cutesmith_agent.llm.port import Usage

_NAME = re.compile(r"claude-(opus|sonnet)-(\d{1,2})(?:-(\d{1,2}))?")
_DATE = re.compile(r"-\d{8}$")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    input: float
    cache_write: float
    cache_read: float
    output: float

    def dollars(self, usage: Usage) -> float:
        parts = (
            usage.input * self.input,
            usage.cache_write * self.cache_write,
            usage.cache_read * self.cache_read,
            usage.output * self.output,
        )
        return sum(parts) / 1e6


@dataclass(frozen=True)
class Known:
    """What the table says of a model. `thinking`: "adaptive" takes an effort, "budget" a number of tokens."""

    price: Price
    thinking: Literal["adaptive", "budget"]


def known(model: str) -> Known | None:
    """None for a model that the table does not have: its price is unknown, and how it thinks is left to the API."""
    entry = _table()["models"].get(_DATE.sub("", model))
    if entry is None:
        return None
    price = Price(*(entry[name] for name in ("input", "cache_write", "cache_read", "output")))
    return Known(price, entry["thinking"])


def price_source() -> str:
    """Where the prices are from, and of which day."""
    return f"{_table()['source']}, {_table()['as_of']}"


@cache
def _table() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("models.json").read_text(encoding="utf-8"))


def default_model() -> str:
    """The newest Opus or Sonnet that the installed SDK lists; of equals, the Opus. Imports the SDK (half a second)."""
    from anthropic.resources.messages import DEPRECATED_MODELS
    from anthropic.types.model_param import ModelParam

    listed = [name for member in get_args(ModelParam) for name in get_args(member)]
    return newest(name for name in listed if name not in DEPRECATED_MODELS)


def newest(names: Iterable[str]) -> str:
    """Raises ValueError when there is no Opus and no Sonnet among them."""
    found = [(match, name) for name in names if (match := _NAME.fullmatch(name))]
    return max(found, key=lambda one: (int(one[0][2]), int(one[0][3] or 0), one[0][1] == "opus"))[1]
