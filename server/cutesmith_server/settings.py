"""The settings by name: what each may be, and what holds when nothing, or nonsense, is said of it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from cutesmith_agent.archs import ARCHS
from cutesmith_agent.llm.settings import Provider

Device = Literal["auto", "cuda", "emulated", "none"]
Watch = Literal["off", "marked", "all"]


@dataclass(frozen=True)
class Settings:
    """`interpreter`: None is the server's own. `watch_minutes`: of jobs in an hour that nobody asked for."""

    interpreter: str | None = None
    device: Device = "auto"
    archs: tuple[str, ...] = ()
    watch: Watch = "off"
    watch_regenerates: bool = False
    watch_minutes: float = 10.0
    confirm_edits: bool = False
    ask_model: bool = True
    model_provider: Provider = "anthropic"


@dataclass(frozen=True)
class Said:
    """What one place says: values by the names in `Settings`, and a sentence for each that cannot be used."""

    values: Mapping[str, Any]
    problems: tuple[str, ...] = ()


def snake(name: str) -> str:
    """An editor's name of a setting as pyproject.toml and `Settings` spell it."""
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def said_by_editor(values: Any) -> Said:
    """Of `initializationOptions` or a configuration: an object, or null."""
    if values is None:
        return Said({})
    if not isinstance(values, Mapping):
        return Said({}, (f"CuteSmith's settings must be an object, not {values!r}: the defaults are used.",))
    return _said(values, camel, "cutesmith.", _EDITORS_OWN)


def said_by_project(table: Mapping[str, Any], others: Iterable[str]) -> Said:
    """Of `[tool.cutesmith]`; `others`: names there that other parts read."""
    return _said(table, str, "", others, " of [tool.cutesmith] in pyproject.toml")


def _said(
    given: Mapping[str, Any], spelled: Callable[[str], str], prefix: str, others: Iterable[str], where: str = ""
) -> Said:
    known = {spelled(name): name for name in _CHECKS}
    values: dict[str, Any] = {}
    problems: list[str] = []
    for word, value in given.items():
        if value in (None, "", [], ()):  # editors send what was never set as nothing
            continue
        if (name := known.get(str(word))) is None:
            problems += [] if word in others else [_unknown(str(word), [*known, *others], prefix, where)]
            continue
        try:
            values[name] = _CHECKS[name](value)
        except ValueError as error:
            problems.append(f"{prefix}{word}{where} must be {error}, not {value!r}: it is ignored.")
    return Said(values, tuple(problems))


def _unknown(word: str, known: list[str], prefix: str, where: str) -> str:
    close = difflib.get_close_matches(word, known, 1)
    hint = f", {prefix}{close[0]} is" if close else ""
    return f"{prefix}{word}{where} is no setting of CuteSmith{hint}: it is ignored."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a string")
    return value


def _one_of(known: tuple[str, ...]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in known:
            words = ", ".join(f'"{each}"' for each in known[:-1])
            raise ValueError(f'{words} or "{known[-1]}"')
        return value

    return check


def _archs(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError('a list such as ["sm_90a"]')
    found = tuple(value)
    if any(each not in ARCHS for each in found):
        raise ValueError(f"a list of names among {', '.join(ARCHS)}")
    return found


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _minutes(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 60:
        raise ValueError("a number of minutes from 0 to 60")
    return float(value)


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "interpreter": _text,
    "device": _one_of(get_args(Device)),
    "archs": _archs,
    "watch": _one_of(get_args(Watch)),
    "watch_regenerates": _truth,
    "watch_minutes": _minutes,
    "confirm_edits": _truth,
    "ask_model": _truth,
    "model_provider": _one_of(get_args(Provider)),
}
_EDITORS_OWN = ("trusted", "serverCommand", "editorModel", "trace")  # read elsewhere, or the extension's own
