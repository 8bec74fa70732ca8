"""Which settings hold for a file: what the editor says, before the project's pyproject.toml, before the defaults."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from cutesmith_agent.llm.settings import Wish
from cutesmith_agent.store.location import workspace_root
from cutesmith_server.settings import Said, Settings, said_by_editor, said_by_project

log = logging.getLogger(__name__)

# Names in [tool.cutesmith] that jobs read.
_OF_JOBS = (*(each.name for each in fields(Wish)), "deadline_s", "memory_gb", "allow_lowered_precision", "precision")
_MOST_BYTES = 2**20


class Configuration:
    """`warn` gets a sentence for each setting that cannot be used, once. `trusted`: None where the editor does not say;
    it counts in `initializationOptions` alone, for a workspace's own files must not grant it."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._editor: Mapping[str, Any] = {}
        self._projects: dict[Path, tuple[tuple[int, int] | None, Said]] = {}
        self._warned: set[str] = set()
        self.trusted: bool | None = None

    def initialize(self, options: Any) -> None:
        self.change(options)
        trusted = options.get("trusted") if isinstance(options, Mapping) else None
        if trusted is not None and not isinstance(trusted, bool):
            self._tell((f"cutesmith.trusted must be true or false, not {trusted!r}: it is ignored.",))
        self.trusted = trusted if isinstance(trusted, bool) else None

    def change(self, values: Any) -> None:
        """The editor's settings are these from now on."""
        said = said_by_editor(values)
        self._editor = said.values
        self._tell(said.problems)

    def of(self, file: Path) -> Settings:
        """The settings for a file's project."""
        root = workspace_root(file)
        said = self._of_project(root)
        values = {**said.values, **self._editor}
        limit = self._editor.get("watch_minutes", Settings.watch_minutes)
        values["watch_minutes"] = min(
            values.get("watch_minutes", limit), limit
        )  # a project's file may only ask for less
        if "interpreter" in said.values and "interpreter" not in self._editor:
            values["interpreter"] = str(root / Path(said.values["interpreter"]).expanduser())
        return Settings(**values)

    def _of_project(self, root: Path) -> Said:
        path = root / "pyproject.toml"
        stamp = _stamp(path)
        known = self._projects.get(root)
        if known is None or known[0] != stamp:
            known = self._projects[root] = stamp, _read(path)
            self._tell(known[1].problems)
        return known[1]

    def _tell(self, problems: tuple[str, ...]) -> None:
        for sentence in problems:
            if sentence not in self._warned:
                self._warned.add(sentence)
                self._warn(sentence)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _read(path: Path) -> Said:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:  # reading a pipe may never end
            return Said({})
        tool = tomllib.loads(path.read_text(encoding="utf-8")).get("tool")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        return Said({}, (f"{path} cannot be read ({error}): its settings for CuteSmith do not count.",))
    table = tool.get("cutesmith", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        return Said({}, (f"tool.cutesmith in {path} must be a table: its settings do not count.",))
    return said_by_project(table, _OF_JOBS)
