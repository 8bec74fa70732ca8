"""The line that allows a class lowered precision: written into whatever pyproject.toml there is, all else kept."""

from __future__ import annotations

import tomllib
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_server.allowing import with_allowance
from cutesmith_server.errors import RefusedError

TABLES = ("[project]\nname = 'x'", "[tool.ruff]\nline-length = 120", "# a comment with allow_lowered_precision = [")
OURS = (
    "[tool.cutesmith]",
    "[ tool . cutesmith ] # ours",
    "[tool.cutesmith]\nallow_lowered_precision = []",
    '[tool.cutesmith]\ndevice = "none"\nallow_lowered_precision = ["A", # one\n  "B",\n]',
    '[tool.cutesmith]\n  allow_lowered_precision=[\n  "A"]\narchs = ["sm_80"]',
    '[tool]\ncutesmith = { device = "none" }',
    '[tool]\ncutesmith.allow_lowered_precision = ["A"]',
    "",
)
TEXTS = st.tuples(
    st.lists(st.sampled_from(TABLES), unique=True, max_size=3),
    st.sampled_from(OURS),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)


@given(TEXTS, st.sampled_from(["Block", "Outer.Inner", "A", "Größe"]))
def test_the_class_is_allowed_and_nothing_else_is_changed(made, qualname):
    tables, ours, ours_last, end = made
    parts = [*tables, ours] if ours_last else [ours, *tables]
    text = "\n".join(each for each in parts if each).replace("\n", end)
    before = tomllib.loads(text)
    listed = before.get("tool", {}).get("cutesmith", {}).get("allow_lowered_precision", [])
    if ours.startswith("[tool]\n"):  # the one form that is not known
        with pytest.raises(RefusedError, match=qualname) if qualname not in listed else nullcontext():
            with_allowance(text, qualname)
        return
    changed = with_allowance(text, qualname)
    after = tomllib.loads(changed)
    allowed = after["tool"]["cutesmith"].pop("allow_lowered_precision")
    assert set(allowed) == {*listed, qualname}
    before.get("tool", {}).get("cutesmith", {}).pop("allow_lowered_precision", None)
    before.setdefault("tool", {}).setdefault("cutesmith", {})
    assert after == before
    for line in text.splitlines():
        if "[" not in line:
            assert line in changed


def test_a_class_that_is_allowed_already_changes_nothing():
    text = '[tool.cutesmith]\nallow_lowered_precision = ["A"]\n'
    assert with_allowance(text, "A") == text


def test_no_toml_is_left_alone():
    with pytest.raises(tomllib.TOMLDecodeError):
        with_allowance("[tool.cutesmith", "A")
