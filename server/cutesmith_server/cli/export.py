"""`cutesmith export --trajectories`: what models were asked, for whoever wants to learn from it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cutesmith_agent.store.location import real_path, workspace_root
from cutesmith_agent.store.opening import open_store
from cutesmith_agent.trajectories import trajectories
from cutesmith_server.cli.target import read_file
from cutesmith_server.errors import RefusedError
from cutesmith_server.records import STORE_ERRORS


def export(options: argparse.Namespace) -> int:
    name, _, qualname = (options.target or "").partition("::")
    file = real_path(name) if name else None
    if file is not None:
        read_file(file)
    root = workspace_root(file or Path.cwd() / "any")
    try:
        count = _write(_lines(root, file, qualname or None), options.output)
    except STORE_ERRORS as error:
        raise RefusedError(f"The store of {root} cannot be read: {error}.") from None
    if count == 0:
        print("No model was asked in this project yet: cutesmith optimize --proposer llm asks one.", file=sys.stderr)
    return 0


def _lines(root: Path, file: Path | None, qualname: str | None) -> Iterator[str]:
    with open_store(root).store as store:
        for record in trajectories(store, root, file, qualname):
            yield _line(record)


def _line(record: dict[str, Any]) -> str:
    """As people read it; half a character, which a model may write, stays the escape that JSON has for it."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace").decode() + "\n"


def _write(lines: Iterator[str], output: Path | None) -> int:
    if output is None:
        return sum(1 for line in lines if sys.stdout.write(line))
    try:
        with output.open("w", encoding="utf-8") as file:
            return sum(1 for line in lines if file.write(line))
    except OSError as error:
        raise RefusedError(f"{output} cannot be written ({error.strerror}): name another file.") from None
