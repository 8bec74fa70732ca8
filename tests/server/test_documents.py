"""Incremental synchronisation against the obvious whole-text model, in every encoding and with every line end."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from cutesmith_server.documents import Documents, Text

CHARACTERS = st.sampled_from([*"ab é€😀\t\x0c\u2028\x0b\x85", "\n", "\r", "\r\n"])
TEXTS = st.lists(CHARACTERS, max_size=30).map("".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


def units(text: str, encoding: str) -> int:
    code_unit = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    return len(text.encode(f"{encoding}-le" if encoding != "utf-8" else encoding)) // code_unit


def position(text: str, offset: int, encoding: str) -> types.Position:
    """LSP's definition, spelled out: lines end in CRLF, LF or CR, columns count code units."""
    lines = re.split(r"\r\n|\r|\n", text[:offset])
    return types.Position(len(lines) - 1, units(lines[-1], encoding))


def is_inside_line_end(text: str, offset: int) -> bool:
    return text[offset - 1 : offset + 1] == "\r\n"


@given(TEXTS, TEXTS, ENCODINGS, st.data())
def test_an_edit_changes_just_its_range(before, inserted, encoding, data):
    offsets = st.integers(0, len(before)).filter(lambda at: not is_inside_line_end(before, at))
    start, end = sorted((data.draw(offsets), data.draw(offsets)))
    place = types.Range(position(before, start, encoding), position(before, end, encoding))
    after = Text(before, encoding).changed(types.TextDocumentContentChangePartial(place, inserted))
    assert after.content == before[:start] + inserted + before[end:]


@given(TEXTS, ENCODINGS, st.data())
def test_ranges_are_reported_in_the_editors_encoding(content, encoding, data):
    offset = data.draw(st.integers(0, len(content)).filter(lambda at: not is_inside_line_end(content, at)))
    place = Text(content, encoding).range_of(offset, len(content))
    assert (place.start, place.end) == (position(content, offset, encoding), position(content, len(content), encoding))


def test_a_whole_document_change_replaces_the_text():
    changed = Text("old", "utf-8").changed(types.TextDocumentContentChangeWholeDocument("new\n"))
    assert (changed.content, changed.encoding) == ("new\n", "utf-8")


def test_positions_past_the_end_are_the_end():
    text = Text("ab\ncd")
    assert text.offset_at(types.Position(0, 99)) == 2
    assert text.offset_at(types.Position(7, 0)) == 5


def test_two_spellings_of_a_uri_are_one_file():
    documents = Documents()
    documents.open(types.TextDocumentItem("file:///tmp/a%20b.py", types.LanguageKind.Python, 3, "x"))
    found = documents.get("file:///tmp/a b.py")
    assert found is not None
    assert (found.version, str(found.path)) == (3, "/tmp/a b.py")


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "vscode-notebook-cell:/a.ipynb#W0", "git:/a.py"])
def test_what_is_no_file_is_left_alone(uri):
    documents = Documents()
    assert documents.open(types.TextDocumentItem(uri, types.LanguageKind.Python, 1, "x")) is None
    assert documents.get(uri) is None
