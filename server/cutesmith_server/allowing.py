"""Allowing a class's kernel a precision below the module's: a line in pyproject.toml, where jobs and people read it."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from cutesmith_agent.store.location import workspace_root
from cutesmith_server.errors import RefusedError
from cutesmith_server.files import write_atomically
from cutesmith_server.orders import Order

if TYPE_CHECKING:
    from cutesmith_server.jobs import ClassKey
    from cutesmith_server.studio import Studio

_NAME = "allow_lowered_precision"
_TABLE = re.compile(r"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*cutesmith[ \t]*\][ \t]*(?:#[^\r\n]*)?\r?$", re.MULTILINE)
_LIST = re.compile(rf"^[ \t]*{_NAME}[ \t]*=[ \t]*\[", re.MULTILINE)


async def allow_lowered(studio: Studio, key: ClassKey) -> None:
    """Writes the line and has a kernel made. Raises RefusedError; nothing is changed then."""
    from cutesmith_server.generating import require_startable, start

    require_startable(studio, key)
    path = workspace_root(key.path) / "pyproject.toml"
    try:
        text = path.read_bytes().decode() if path.exists() else ""
        allowed = with_allowance(text, key.qualname)
        if allowed != text:
            write_atomically(path, allowed.encode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RefusedError(f"{path} cannot be changed ({error}): nothing was allowed.") from None
    studio.client.say(f"{path} allows {key.qualname} a kernel of lowered precision now ({_NAME}).")
    await start(studio, key, Order(allow_lowered=True))


def with_allowance(text: str, qualname: str) -> str:
    """The text of pyproject.toml with the class in the list, all else as it was.

    Raises TOMLDecodeError for what is no TOML, RefusedError for a text that this cannot edit."""
    before = tomllib.loads(text)
    table = before.get("tool", {}).get("cutesmith", {})
    listed = table.get(_NAME, [])
    if qualname in listed:
        return text
    for changed in _tries(text, qualname, listed):
        if _reads_as(changed, before, [*listed, qualname]):
            return changed
    raise RefusedError(f'[tool.cutesmith] in pyproject.toml has an unusual form: add "{qualname}" to {_NAME} yourself.')


def _tries(text: str, qualname: str, listed: list[Any]) -> list[str]:
    """Ways to write it, the least intrusive first; each is read back before it counts."""
    carriage = "\r" if "\r\n" in text else ""
    text += f"{carriage}\n" * (text != "" and not text.endswith("\n"))
    word = json.dumps(qualname, ensure_ascii=False)
    line = f"{_NAME} = [{word}]{carriage}"
    found = [f"{text[: each.end()]}{word}{', ' if listed else ''}{text[each.end() :]}" for each in _LIST.finditer(text)]
    found += [f"{text[: each.end()]}\n{line}{text[each.end() :]}" for each in _TABLE.finditer(text)]
    gap = f"{carriage}\n" * bool(text)
    return [*found, f"{text}{gap}[tool.cutesmith]{carriage}\n{line}\n"]


def _reads_as(text: str, before: dict[str, Any], allowed: list[Any]) -> bool:
    try:
        after = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    ours = after.get("tool", {}).get("cutesmith", {})
    return sorted(map(str, ours.pop(_NAME, []))) == sorted(map(str, allowed)) and _bare(after) == _bare(before)


def _bare(data: dict[str, Any]) -> dict[str, Any]:
    """Without the list, and without tables that only it made."""
    tool = dict(data.get("tool", {}))
    ours = {name: value for name, value in tool.pop("cutesmith", {}).items() if name != _NAME}
    tool |= {"cutesmith": ours} if ours else {}
    rest = {name: value for name, value in data.items() if name != "tool"}
    return rest | ({"tool": tool} if tool else {})
