"""A patch as a model sends it: the tool's JSON schema, and the values made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "description": "One sentence: what changes, and why it helps."},
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "Applied together or not at all. They must not overlap; all quote the file as it was shown.",
            "items": {
                "type": "object",
                "properties": {
                    "find": {
                        "type": "string",
                        "description": (
                            "Whole lines of the file, copied exactly, without line numbers. They must occur once: "
                            "add neighbouring lines until they do."
                        ),
                    },
                    "replace": {"type": "string", "description": "What stands there instead, indented as in the file."},
                    "near_line": {"type": "integer", "description": "The line number that `find` begins on."},
                },
                "required": ["find", "replace"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["summary", "edits"],
    "additionalProperties": False,
}


class PatchFormError(ValueError):
    """The JSON is no patch. `str()` is one sentence for the model: what is wrong with it, and what is wanted."""


@dataclass(frozen=True)
class Change:
    """Replace `find` with `replace`. `near_line` (1-based) says where to look when `find` does not settle it."""

    find: str
    replace: str
    near_line: int | None = None


@dataclass(frozen=True)
class Patch:
    summary: str
    changes: tuple[Change, ...]


def parse(data: object) -> Patch:
    """A patch of the tool's input. An `edits` sent as JSON text, and line numbers sent as text, are read all the same.

    Raises PatchFormError."""
    if not isinstance(data, Mapping):
        raise PatchFormError('A patch is an object: {"summary": ..., "edits": [{"find": ..., "replace": ...}]}.')
    edits = _edits(data.get("edits"))
    summary = data.get("summary")
    return Patch(
        summary.strip() if isinstance(summary, str) else "",
        tuple(_change(edit, number) for number, edit in enumerate(edits, 1)),
    )


def _edits(edits: object) -> list[Any]:
    if isinstance(edits, str):
        try:
            edits = json.loads(edits)
        except ValueError as error:
            raise PatchFormError("`edits` is text that is no JSON: send a list of objects.") from error
    if isinstance(edits, Mapping):
        edits = [edits]
    if not isinstance(edits, list) or not edits:
        raise PatchFormError(
            "`edits` is missing or empty: send a list with at least one object of `find` and `replace`."
        )
    return edits


def _change(edit: object, number: int) -> Change:
    if not isinstance(edit, Mapping):
        raise PatchFormError(f"Edit {number} is no object: send `find` and `replace`, both text.")
    for name in ("find", "replace"):
        if not isinstance(edit.get(name), str):
            raise PatchFormError(f"Edit {number} has no `{name}` that is text.")
    if not edit["find"].strip():
        raise PatchFormError(f"`find` of edit {number} is empty: quote the lines that the new ones replace or follow.")
    return Change(edit["find"], edit["replace"], _line(edit.get("near_line")))


def _line(value: object) -> int | None:
    """A line number; anything else is taken as none given, for it only ever helps."""
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 10:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
