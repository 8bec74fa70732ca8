"""Which model, where, and within what bounds: the job says, else the environment, else `[tool.cutesmith]`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

KEY_NAME = "ANTHROPIC_API_KEY"
DEFAULT_URL = "https://api.anthropic.com"
Provider = Literal["anthropic", "editor"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
PROJECT = "pyproject.toml"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_VARIABLES = {
    "model": ("CUTESMITH_MODEL",),
    "base_url": ("CUTESMITH_BASE_URL", "ANTHROPIC_BASE_URL"),
    "effort": ("CUTESMITH_EFFORT",),
    "max_dollars": ("CUTESMITH_MAX_DOLLARS",),
    "max_tokens": ("CUTESMITH_MAX_TOKENS",),
    "max_rounds": ("CUTESMITH_MAX_ROUNDS",),
    "max_minutes": ("CUTESMITH_MAX_MINUTES",),
}


class SettingsError(ValueError):
    """A setting cannot be used. `str()` is one sentence: which, from where, what it must be."""


@dataclass(frozen=True)
class Wish:
    """What a job, or any other place, says of the model; None: nothing."""

    model: str | None = None
    base_url: str | None = None
    effort: Effort | None = None
    max_dollars: float | None = None
    max_tokens: int | None = None
    max_rounds: int | None = None
    max_minutes: float | None = None


@dataclass(frozen=True)
class ModelSettings:
    """Complete settings. `max_*` bound one job: US dollars, tokens of every kind, rounds of optimisation, minutes."""

    model: str
    base_url: str = DEFAULT_URL
    effort: Effort = "medium"
    max_dollars: float = 3.0
    max_tokens: int = 800_000
    max_rounds: int = 10
    max_minutes: float = 60.0
    answer_tokens: int = 32_000  # of one answer, its thinking included
    thinking_tokens: int = 12_000  # of those, for models that are told a budget
    retries: int = 4  # by the SDK, before an answer begins: connections, 408, 409, 429, 5xx; it heeds `retry-after`
    silence_s: float = 120.0  # without a byte from the server, after which an answer is given up
    answer_s: float = 900.0  # for one whole answer
    by_project: tuple[str, ...] = ()  # names of the settings that the project's own pyproject.toml decided
    editors_provider: str = ""  # of a model of the editor's, in words; "": the model is asked at `base_url`

    @property
    def host(self) -> str:
        """Where text is sent, as a person would name it."""
        return self.editors_provider or urlsplit(self.base_url).netloc

    @property
    def of_editor(self) -> bool:
        """Whether the model is one of the editor's."""
        return bool(self.editors_provider)

    def through_editor(self, model: str, provider: str) -> ModelSettings:
        """The same bounds for a model of the editor's: which, and where it is, no project's file decided."""
        kept = tuple(name for name in self.by_project if name not in ("base_url", "model"))
        return replace(self, model=model, by_project=kept, editors_provider=f"the editor's provider {provider}")


def read_settings(
    root: Path, wish: Wish, default_model: Callable[[], str], environment: Mapping[str, str] = os.environ
) -> ModelSettings:
    """The settings for a job in the workspace at `root`. Raises SettingsError."""
    places: tuple[tuple[str, dict[str, Any]], ...] = (
        (PROJECT, _from_project(root)),
        ("environment", _from_environment(environment)),
        ("job", {one.name: getattr(wish, one.name) for one in fields(wish)}),
    )
    chosen: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for place, values in places:
        found = {name: _checked(name, value, place) for name, value in values.items() if value is not None}
        origins |= dict.fromkeys(found, place)
        chosen |= found
    if "model" not in chosen:
        chosen["model"] = default_model()
    by_project = tuple(sorted(name for name, place in origins.items() if place == PROJECT))
    return ModelSettings(**chosen, by_project=by_project)


def _from_project(root: Path) -> dict[str, Any]:
    path = root / "pyproject.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("cutesmith", {})
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read ({error}): correct it.") from None
    names = {one.name for one in fields(Wish)}
    return {name: table[name] for name in names if isinstance(table, dict) and name in table}


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    found = {name: [environment[one] for one in known if environment.get(one)] for name, known in _VARIABLES.items()}
    return {name: values[0] for name, values in found.items() if values}


def _checked(name: str, value: Any, place: str) -> Any:
    if name == "base_url":
        return _checked_url(str(value), place)
    if name in ("model", "effort"):
        if name == "effort" and value not in get_args(Effort):
            raise SettingsError(f"effort {value!r} ({place}) must be one of {', '.join(get_args(Effort))}.")
        return str(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise SettingsError(f"{name} {value!r} ({place}) must be a number.") from None
    if not 0 < number < float("inf"):
        raise SettingsError(f"{name} {value!r} ({place}) must be more than 0.")
    return int(number) if name in ("max_tokens", "max_rounds") else number


def _checked_url(url: str, place: str) -> str:
    """A key goes there: only encrypted, or within this machine. What else an address may hold is no part of it."""
    try:
        parts = urlsplit(url)
        schemes = ("https", "http") if parts.hostname in _LOOPBACK else ("https",)
        is_good = bool(parts.hostname) and parts.scheme in schemes and (parts.port is None or parts.port > 0)
    except ValueError:  # no port, or a bracket too many
        parts, is_good = urlsplit(""), False
    if "@" in url or parts.query or parts.fragment:
        raise SettingsError(
            f"base_url ({place}) must be a plain address, with no user name, password, query or fragment; the key is "
            f"read from {KEY_NAME}."
        )
    if is_good:
        return url.rstrip("/")
    raise SettingsError(f"base_url {url!r} ({place}) must be an https address, or http on this machine.")
