"""Structured patches: what is read of a model's JSON, where edits go, and what a refusal says."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_agent import patches
from cutesmith_agent.patches import Applied, Change, Patch, Refused

SOURCE = '''"""Sums rows of x; the tail is masked."""

import cutlass

THREADS = 256


def kernel(x, acc5, acc6):
    for row in range(4):
        # the rows of one tile
        acc5 = acc5 + x[row]
        acc6 = acc6 + x[row + 4]
    if acc5 > 0:
        y = f(
            x,
            acc5,
        )
        store(y)
    else:
        store(acc6)
    sync()
    y = a * b + c
    check(y, "y must be a row of x of 4 values")
    sync()
    return y
'''


def patch(*changes: tuple[str, str] | tuple[str, str, int]) -> Patch:
    return Patch("", tuple(Change(*change) for change in changes))


def applied(*changes: tuple[str, str] | tuple[str, str, int], source: str = SOURCE) -> str:
    result = patches.apply(source, patch(*changes))
    assert isinstance(result, Applied), result
    return result.source


def refused(*changes: tuple[str, str] | tuple[str, str, int], source: str = SOURCE) -> str:
    result = patches.apply(source, patch(*changes))
    assert isinstance(result, Refused), result
    return result.text


def test_a_patch_is_read_from_what_the_tool_was_given():
    data = {"summary": " wider ", "edits": [{"find": "a", "replace": "b", "near_line": "12"}], "more": 1}
    assert patches.parse(data) == Patch("wider", (Change("a", "b", 12),))
    assert patches.parse(data | {"edits": json.dumps(data["edits"])}) == patches.parse(data)
    assert patches.parse({"edits": {"find": "a", "replace": ""}}) == Patch("", (Change("a", ""),))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "A patch is an object"),
        ([], "A patch is an object"),
        ({"summary": "x"}, "`edits` is missing or empty"),
        ({"edits": []}, "`edits` is missing or empty"),
        ({"edits": "[{"}, "no JSON"),
        ({"edits": ["x"]}, "Edit 1 is no object"),
        ({"edits": [{"find": "a", "replace": "b"}, {"find": "a"}]}, "Edit 2 has no `replace`"),
        ({"edits": [{"find": 3, "replace": "b"}]}, "Edit 1 has no `find`"),
        ({"edits": [{"find": " \n", "replace": "b"}]}, "`find` of edit 1 is empty"),
    ],
)
def test_what_is_no_patch_is_refused_in_one_sentence(data: object, words: str):
    with pytest.raises(patches.PatchFormError, match=words):
        patches.parse(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["edits", "find", "replace", "near_line"]), inner)
        ),
    )
)
def test_any_json_is_a_patch_or_is_refused(data: object):
    with contextlib.suppress(patches.PatchFormError):
        assert patches.parse(data).changes


@pytest.mark.parametrize(
    ("find", "new", "line"),
    [
        ("THREADS = 256", "THREADS = 128", "THREADS = 128"),
        ("THREADS  =  256  # threads of a block", "THREADS = 128", "THREADS = 128"),
        ("        acc5 = acc5+x[ row ]", "        acc5 = acc5 - x[row]", "        acc5 = acc5 - x[row]"),
        ("acc5 = acc5 + x[ row ]\n", "acc5 = acc5 - x[row]\n", "        acc5 = acc5 - x[row]"),
        ("\tacc5=acc5 + x[row]\n\tacc6=acc6 + x[row + 4]", "\tacc5 = 0", "        acc5 = 0"),
        ("   9|     for row in range(4):", "   9|     for row in range(8):", "    for row in range(8):"),
        ("y = f(x, acc5)", "y = g(x)", "        y = g(x)"),
        ("check(y, 'y must be one row of x of 4 values')", "check(y, 'no')", "    check(y, 'no')"),
        ("# The rows of one tile.", "# tile by tile", "        # tile by tile"),
        ("a * b", "d", "    y = d + c"),
        ("range(4)", "range(8)", "    for row in range(8):"),
        ("check(y, “y must be a row of x of 4 values”)", "check(y)", "    check(y)"),
        ("acc6 = acc6 + x[row+4]\nacc5 = acc5 + x[row]", "acc5 = 1", "        acc5 = 1"),
    ],
)
def test_one_place_is_found_through_another_layout(find: str, new: str, line: str):
    assert line in applied((find, new)).split("\n")


@pytest.mark.parametrize(
    ("find", "words"),
    [
        ("acc7 = acc7 + x[row]", "Not in the file at all: acc7"),  # acc5 is as near as it gets, and another variable
        ("acc5 = acc5 - x[row]", "is not in the file"),
        ("acc5 = acc5 + x[row + 8]", "is not in the file"),
        ("b + c", "only as a part of longer"),
        ("y = a", "only as a part of longer"),
        ("HREADS = 256", "only as a part of longer"),
        ("THREADS = 25", "only as a part of longer"),
        ("sync()", "is in the file more than once"),
        ("sync( )", "reads so at more than one place"),
        ("    if acc5 > 0:\n      y = f(x, acc5)\n    store(y)", "indented in a way"),
        ("check(y, 'y must be a row of x of 8 values')", "is not in the file"),
    ],
)
def test_what_the_text_does_not_settle_is_refused(find: str, words: str):
    assert words in refused((find, "pass"))


@pytest.mark.parametrize(
    ("first", "second", "changed"),
    [
        ("cute.copy(sA, tA)", "cute.arch.sync_threads()", "cute.copy(sA, tA, pred=pA)"),
        ("acc = acc + tA[0]", "x = acc * 2.0", "acc = acc + tA[1]"),
    ],
)
def test_lines_quoted_in_another_order_never_change_places(first: str, second: str, changed: str):
    source = f"def k(sA, tA, acc):\n    {first}\n    {second}\n"
    quoted = f"    {second}\n    {first}"
    assert isinstance(patches.apply(source, patch((quoted, f"    {second}\n    {changed}"))), patches.Refused)
    kept = patches.apply(source, patch((quoted, f"    {changed}\n    {second}")))
    assert isinstance(kept, patches.Applied)
    assert kept.source == source.replace(first, changed)


def test_a_line_number_chooses_nothing():
    first, second = (number for number, line in enumerate(SOURCE.split("\n"), 1) if line == "    sync()")
    for near in (first, second, 1):
        text = refused(("    sync()", "    wait()", near))
        assert f"lines {first}, {second}" in text


def test_another_layout_brings_its_indentation_along():
    new = "if acc5 > 1:\n  y = g(x)\n  store(y)\nelse:\n  store(acc6)\nwait()"
    find = "if acc5 > 0:\n  y = f(x, acc5)\n  store(y)\nelse:\n  store( acc6 )"
    assert (
        "    if acc5 > 1:\n        y = g(x)\n        store(y)\n    else:\n        store(acc6)\n    wait()\n    sync()"
        in applied((find, new))
    )


def test_one_line_without_indentation_takes_the_reading_that_parses():
    assert "        store(acc6)\n        more()\n    sync()" in applied(("store(acc6)", "store(acc6)\nmore()"))
    last = "def f(x):\n    return x\n"
    assert applied(("return x", "z = x\nreturn z"), source=last) == "def f(x):\n    z = x\n    return z\n"
    assert "two ways" in refused(("return x", "return x\n\n\ny = 1"), source=last)
    assert applied(("    return x", "    return x\ny = 1"), source=last) == "def f(x):\n    return x\ny = 1\n"


def test_nothing_is_applied_when_one_edit_fails():
    text = refused(("THREADS = 256", "THREADS = 128"), ("acc9 = 0", "acc9 = 1", 11), ("return y", "return x"))
    assert "Edit 2" in text
    assert "These edits would have applied: 1 (line 5), 3 (line 25)" in text
    assert "Nothing was changed" in text
    assert "acc5 = acc5 + x[row]" in text


def test_overlapping_edits_are_refused():
    text = refused(("THREADS = 256", "THREADS = 1"), ("THREADS", "WIDTH"))
    assert "Edits 1 and 2 change the same lines" in text


def test_a_result_that_is_no_python_is_refused_with_its_line():
    text = refused(("    return y", "    return y)"))
    assert "unmatched ')' (line 25 of the patched file)" in text


def test_a_patch_that_changes_nothing_is_refused():
    assert "changes nothing" in refused(("THREADS = 256", "THREADS = 256"))


def test_deleting_lines_leaves_no_gap():
    assert "acc5 + x" not in applied(("        acc5 = acc5 + x[row]\n", ""))
    assert SOURCE.count("\n") - applied(("        acc5=acc5 + x[row]\n", "")).count("\n") == 1


def test_windows_line_ends_stay():
    source = SOURCE.replace("\n", "\r\n")
    result = applied(("acc5 = acc5 + x[row]\n        acc6 = acc6 + x[row + 4]", "a = 1\n        b = 2"), source=source)
    assert "        a = 1\r\n        b = 2\r\n" in result
    assert "\n" not in result.replace("\r\n", "")


LINES = [number for number, line in enumerate(SOURCE.split("\n")) if line.strip()]


@settings(max_examples=200)
@given(st.data())
def test_an_edit_changes_its_place_and_nothing_else(data: st.DataObject):
    lines = SOURCE.split("\n")
    first = data.draw(st.sampled_from(LINES))
    stop = data.draw(st.integers(first + 1, min(first + 4, len(lines))))
    find = "\n".join(lines[first:stop])
    if data.draw(st.booleans()):
        find = find.replace(" = ", "=").replace("    ", "  ")
    result = patches.apply(SOURCE, patch((find, data.draw(st.sampled_from(["", "pass", "x = 1\ny = 2", "#", "é"])))))
    if isinstance(result, Applied):
        (edit,) = result.edits
        assert result.source == SOURCE[: edit.start] + edit.text + SOURCE[edit.end :]
        assert edit.start >= len("\n".join(lines[:first]))
        assert edit.end <= len("\n".join(lines[:stop])) + 1


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from(SOURCE.split("\n")), st.text(max_size=8)), min_size=1, max_size=3),
    st.text(max_size=60),
)
def test_whatever_is_sent_the_answer_is_a_result(changes: list[tuple[str, str]], noise: str):
    for source in (SOURCE, noise, SOURCE + noise):
        result = patches.apply(source, patch(*((find + new[:1] or "x", new) for find, new in changes)))
        if isinstance(result, Refused):
            assert "Nothing was changed" in result.text or "changes nothing" in result.text
        else:
            compile(result.source, "x", "exec", flags=0x400)


MARGIN = """\
      def scale(x):
          y = x * 2
   5|     z = y + 1
          return z
"""
BARE = "a = 1\n\ndef scale(x):\n    y = x * 2\n    z = y + 1\n    return z\n"


@pytest.mark.parametrize(
    "new",
    ["      def scale(x):\n   5|     return x * 2 + 1\n", "def scale(x):\n    return x * 2 + 1\n"],
    ids=["with the margin", "without it"],
)
def test_lines_that_were_copied_with_a_listings_margin_find_their_place(new: str):
    done = patches.apply(BARE, patches.parse({"summary": "s", "edits": [{"find": MARGIN, "replace": new}]}))
    assert isinstance(done, Applied)
    assert done.source == "a = 1\n\ndef scale(x):\n    return x * 2 + 1\n"


def test_new_lines_that_may_or_may_not_have_the_margin_are_refused():
    new = "         return 0\n"  # as deep as no line of the file, with or without it
    patch = patches.parse({"summary": "s", "edits": [{"find": MARGIN, "replace": new}]})
    assert isinstance(patches.apply(BARE, patch), Refused)
