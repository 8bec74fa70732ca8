"""Characters, bytes and editor positions agree with Python's own codecs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.source.positions import Encoding, Lines, Position

TEXTS = st.text(st.sampled_from("ab\n\r\x0c\u2028é€😀\ufeff\ud800"), max_size=40)


@given(TEXTS, st.data())
def test_byte_offsets_are_those_of_utf8(text: str, data: st.DataObject):
    char = data.draw(st.integers(0, len(text)))
    byte = len(text[:char].encode("utf-8", "surrogatepass"))
    lines = Lines(text)
    assert lines.byte(char) == byte
    assert lines.char(byte) == char


@given(TEXTS, st.sampled_from(["utf-8", "utf-16", "utf-32"]), st.data())
def test_positions_count_units_of_the_encoding_and_lead_back(text: str, encoding: Encoding, data: st.DataObject):
    char = data.draw(st.integers(0, len(text)))
    before = re.split(r"\r\n|\r|\n", text[:char])
    if text[char - 1 : char + 1] == "\r\n":
        return  # between CR and LF there is no position
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    expected = Position(
        len(before) - 1, len(before[-1].encode(f"{encoding}-le".replace("8-le", "8"), "surrogatepass")) // width
    )
    lines = Lines(text)
    assert lines.position(char, encoding) == expected
    assert lines.offset(expected, encoding) == char


@given(TEXTS, TEXTS, st.data())
def test_an_edited_texts_lines_are_those_of_the_text_read_anew(text: str, inserted: str, data: st.DataObject):
    start, end = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
    edited = Lines(text).edited(start, end, inserted)
    assert edited.text == text[:start] + inserted + text[end:]
    assert edited.starts == Lines(edited.text).starts


@pytest.mark.parametrize(
    ("position", "char"),
    [(Position(0, 99), 2), (Position(1, 1), 5), (Position(1, 99), 5), (Position(9, 0), 5)],
)
def test_a_position_outside_the_text_is_its_nearest_end(position: Position, char: int):
    assert Lines("ab\r\n😀").offset(position) == char


def test_each_line_keeps_its_own_end():
    lines = Lines("a\r\nb\rc\nd")
    assert [lines.line_end(line) for line in range(4)] == ["\r\n", "\r", "\n", ""]
