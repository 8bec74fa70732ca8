"""A file's pieces: where they are cut, that they say what a parse of the whole says, and that an edit costs little."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import tree_sitter_python
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Language, Node, Parser

from cutesmith_agent.source import pieces
from cutesmith_agent.source.outline import outline
from cutesmith_agent.source.parsing import Source, parse
from module_texts import ModuleText, module_texts

HEAD = "from torch import nn\n"
BETWEEN = (
    "TEXT = '''\nimport torch\nclass Fake(nn.Module): pass\n'''\n",
    'A = """\nclass Fake: # \'\'\'\n"""\nB = """\ndef f():\n"""\n',
    "x = (a\nif b else c)\n",
    "x = [a\n@ b]\n",
    "x = a \\\nif b else c\n",
    "if x:\n    T = '''\nclass Fake(nn.Module): pass\n'''\nelse:\n    T = 1\n",
    "try:\n    T = '''\nimport y\n'''\nexcept E:\n    pass\nfinally:\n    pass\n",
    "def f(\na,\n):\n    return '''\n@a\n'''\n",
    "@a(1,\n   2)\n@b\n# why\n\nclass C:\n    pass\n",
    "async def g():\n    pass\nasync with a: pass\n",
    "x = 'it''s' \"'''\"  # '''\n",
    "f'''{x + '''a'''}\nclass Fake: {y}'''\n",
    "match x:\n    case 1:\n        pass\n",
    "# class Fake: '''\n",
    "\n\x0c\n    \n",
    "def h(): return 1; x = 2\n",
)


def shape(nodes: list[Node]) -> list[tuple[object, ...]]:
    """Kinds and places, all the way down."""
    return [
        (node.type, node.byte_range, node.start_point, node.end_point, shape(node.named_children)) for node in nodes
    ]


@settings(max_examples=150)
@given(module_texts(newlines=("\n", "\r\n")), st.lists(st.sampled_from(BETWEEN), max_size=5), st.booleans())
def test_pieces_give_the_statements_of_the_whole(module: ModuleText, between: list[str], below: bool):
    extra = "".join(between)
    text = module.text.rstrip("\r\n") + "\n" + extra if below else extra + module.text.removeprefix("\ufeff")
    whole = Parser(Language(tree_sitter_python.language())).parse(text.encode()).root_node
    source = parse(text)
    assert b"".join(piece.data for piece in source.pieces) == text.encode()
    assert source.has_error == whole.has_error
    if not whole.has_error:
        assert shape(list(source.statements())) == shape(whole.named_children)


@pytest.mark.parametrize("between", BETWEEN)
def test_what_stands_in_strings_and_brackets_is_no_statement(between: str):
    text = HEAD + between + "class Real(nn.Module): pass\n" + between
    source = parse(text)
    assert not source.has_error
    assert [found.qualname for found in outline(source)] == ["Real"]


def test_a_string_without_an_end_hides_no_class():
    text = HEAD + "x = '''\nclass A(nn.Module): pass\nclass B(nn.Module):\n    '''Doc.'''\n"
    assert [found.qualname for found in outline(text)] == ["A", "B"]


def test_nodes_are_found_by_their_bytes():
    source = parse(HEAD + "class A(nn.Module): pass\nclass B: pass\n")
    for name in ("torch", "A", "B"):
        start = source.data.index(name.encode())
        node = source.node_at(start, start + len(name))
        assert node is not None
        assert (source.read(node), node.start_byte) == (name, start)
    assert source.node_at(len(source.data), len(source.data)) is None
    assert parse("").node_at(0, 0) is None


def test_an_edit_parses_only_the_piece_that_it_changed():
    before = parse(large(40))
    after = parse(before.text.replace("x * 20", "x *\n 20"), before)
    assert len(after.pieces) == len(before.pieces) > 40
    changed = [i for i, pair in enumerate(zip(before.pieces, after.pieces, strict=True)) if pair[0] is not pair[1]]
    assert len(changed) == 1


FRAGMENTS = (
    *BETWEEN,
    "class A(nn.Module):\n    pass\n",
    "class B((((:\n",
    "x = 1\n",
    "'''",
    '"""',
    "(",
    "]",
    "@",
    "@a\n",
    "\\\n",
    "\\\r\n",
)
FRAGMENTS += ("\r", "\n", "\r\n", "class ", "import y\n", "else:\n", "    ", "#", "é", "im", "port", "finally", ":")


@settings(max_examples=400)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12), st.data(), st.sampled_from([(40, 2), (1 << 15, 16)]))
def test_an_edited_file_has_the_pieces_of_one_read_anew(
    fragments: list[str], data: st.DataObject, limits: tuple[int, int]
):
    """Every edit of a chain; with small limits, too, since a small text does not reach the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_REACH", limits[0])
        patch.setattr(pieces, "_TRIES", limits[1])
        source = parse("".join(fragments))
        for _ in range(3):
            start, end = sorted(data.draw(st.integers(0, len(source.text))) for _ in range(2))
            end = data.draw(st.sampled_from([start, end]))
            text = source.text[:start] + data.draw(st.sampled_from(("", *FRAGMENTS))) + source.text[end:]
            source = parse(text, source)
            assert list(map(told, source.pieces)) == list(map(told, parse(text).pieces))


def told(piece: pieces.Piece) -> tuple[object, ...]:
    return piece.data, piece.rows, piece.has_error, piece.kinds, piece.names


def large(functions: int) -> str:
    """Ten lines a function; every tenth is a module's forward."""
    module = "class Module{n}(nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
    module += "        self.proj = nn.Linear(width, width)\n\n    def forward(self, x):\n        return x * {n}\n\n\n\n"
    function = "def helper_{n}(values):\n    total = 0\n    for value in values:\n        if value > {n}:\n"
    function += "            total += value * 2\n        else:\n            total -= 1\n    return total\n\n\n"
    return HEAD + "".join((module if n % 10 == 0 else function).format(n=n) for n in range(functions))


def cpu_s(work: Callable[[], object]) -> float:
    """The least CPU time of five runs."""
    times = []
    for _ in range(5):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


@pytest.mark.parametrize("typed", ["x", "\n", "(", "'", "'''", "class "])
def test_an_edit_in_twenty_thousand_lines_costs_a_fraction_of_a_parse(typed: str):
    text = large(2000)
    at = text.index("helper_101(")
    source, edited = parse(text), text[:at] + typed + text[at:]
    assert len(outline(source)) == 200

    def retyped() -> Source:
        after = parse(edited, source)
        outline(after)
        return after

    spent, whole = cpu_s(retyped), cpu_s(lambda: outline(parse(edited)))
    print(f"{typed!r}: edit {spent * 1e3:.1f} ms, from scratch {whole * 1e3:.1f} ms")
    assert spent < whole / 2


@pytest.mark.parametrize(
    "line", ["class A((((:\n", "x = '''\nclass A: '\n", "class A(nn.Module): '''\n", "print 'x\n", "@(\n"]
)
def test_the_time_for_broken_text_grows_with_its_length_alone(line: str):
    started = time.process_time()
    outline(HEAD + line * 10_000)
    assert time.process_time() - started < 5
