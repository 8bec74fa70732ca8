"""Which classes are modules, where they are, and that damage elsewhere does not hide them."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cutesmith_agent.source.outline import ModuleClass, outline
from cutesmith_agent.source.parsing import decode, encode, parse
from module_texts import ModuleText, module_texts

FORWARD = "\n    def forward(self, x):\n        return x\n"


def names(text: str) -> list[str]:
    return [found.qualname for found in outline(text)]


def only(text: str) -> ModuleClass:
    (found,) = outline(text)
    return found


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch", "torch.nn.Module"),
        ("import torch.nn", "torch.nn.Module"),
        ("import torch as T", "T.nn.Module"),
        ("import torch.nn as N", "N.Module"),
        ("from torch import nn", "nn.Module"),
        ("from torch import nn as n", "n.Module"),
        ("from torch.nn import Module", "Module"),
        ("from torch.nn import (\n    Linear,\n    Module as M,\n)", "M"),
        ("from torch.nn.modules import Module", "Module"),
        ("from torch.nn.modules.module import Module", "Module"),
        ("from torch.nn import *", "Module"),
        ("import torch.nn.modules as m", "m.activation.GELU"),
        ("import torch\nnn = torch.nn", "nn.Module"),
        ("from torch import nn\nBase = nn.Module", "Base"),
        ("try:\n    from torch import nn\nexcept ImportError:\n    nn = None", "nn.Module"),
        ("from torch import nn", "nn.Linear"),
        ("from torch.nn import LayerNorm as LN", "LN"),
        ("from torch import nn", "Mixin, nn.Module, metaclass=Meta"),
        ("from torch import nn\nclass B(nn.Module, Generic[T]): pass", "B[int]"),
    ],
)
def test_modules_are_found_by_their_base(imports: str, base: str):
    assert "Found" in names(f"{imports}\n\nclass Found({base}):{FORWARD}")


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("", "nn.Module"),
        ("from mylib import nn", "nn.Module"),
        ("from .torch import nn", "nn.Module"),
        ("from torch import nn", "nn.Parameter"),
        ("from torch import nn", "object"),
        ("from torch.nn import *", "object"),
        ("import torch.nn.functional as F", "F.Module"),
        ("from torch.nn import Module\nclass Module: pass", "Module"),
        ("def f():\n    from torch import nn", "nn.Module"),
        ("class A(A): pass", "A"),
    ],
)
def test_other_classes_are_not(imports: str, base: str):
    assert "Found" not in names(f"{imports}\n\nclass Found({base}):{FORWARD}")


def test_bases_are_followed_through_the_file_and_through_nesting():
    text = (
        "import torch.nn as nn\nclass Base(nn.Module): pass\nclass Derived(Base): pass\n"
        "class Outer:\n    class Inner(Derived): pass\n    class Twice(Inner): pass\n"
        "class ByPath(Outer.Inner): pass\nclass Not(Outer): pass\n"
    )
    assert names(text) == ["Base", "Derived", "Outer.Inner", "Outer.Twice", "ByPath"]


def test_classes_in_blocks_are_found_and_in_functions_are_not():
    text = (
        "from torch import nn\nif True:\n    class A(nn.Module): pass\nelse:\n    class B(nn.Module): pass\n"
        "def make():\n    class C(nn.Module): pass\nwith x:\n    class D(nn.Module): pass\n"
    )
    assert names(text) == ["A", "B", "D"]


def test_the_class_that_shadows_its_base_is_a_module():
    assert names("from torch.nn import Module\nclass Module(Module): pass\nclass B(Module): pass") == ["Module", "B"]


def test_two_classes_of_one_name_are_flagged():
    text = "from torch import nn\nclass A(nn.Module): pass\nclass B(nn.Module): pass\nclass A(nn.Module): pass"
    assert [found.is_duplicate for found in outline(text)] == [True, False, True]


def test_forward_is_read_as_written():
    text = (
        "from torch import nn\nclass A(nn.Module):\n\t@nn.no\n"
        "\tdef forward(me, x: Tensor, y=1, /, z: int = 2, *a, k, **kw):\n\t\t'''Doc é'''\n\t\treturn x\n"
    )
    forward = only(text).forward
    assert forward is not None
    assert [(p.name, p.kind, p.annotation, p.default) for p in forward.parameters] == [
        ("me", "positional", None, None),
        ("x", "positional", "Tensor", None),
        ("y", "positional", None, "1"),
        ("z", "positional", "int", "2"),
        ("a", "args", None, None),
        ("k", "keyword", None, None),
        ("kw", "kwargs", None, None),
    ]
    assert (forward.line, forward.decorators, forward.indent, forward.def_indent) == (4, ("@nn.no",), "\t\t", "\t")
    assert forward.docstring_end is not None
    assert forward.body_start is not None
    assert text[: forward.header_end].endswith("**kw):")
    assert text[: forward.docstring_end].endswith("é'''")
    assert text[forward.body_start :] == "return x\n"


@pytest.mark.parametrize(
    ("body", "is_stub"),
    [
        ('"""Doc."""', True),
        ("...", True),
        ("pass", True),
        ('"""Doc."""\n        # soon\n        raise NotImplementedError', True),
        ('raise NotImplementedError(\n            "later"\n        )', True),
        ("return x", False),
        ("raise NotImplementedError if x else ValueError", False),
        ("raise ValueError", False),
        ('"""Doc."""\n        x = 1\n        ...', False),
    ],
)
def test_a_forward_that_is_not_written_is_known(body: str, is_stub: bool):
    found = only(f"from torch import nn\n\n\nclass A(nn.Module):\n    def forward(self, x):\n        {body}\n")
    assert found.forward is not None
    assert found.forward.is_stub is is_stub


def test_the_kernel_of_a_guard_is_named_however_it_is_laid_out():
    text = (
        "from torch import nn\nclass A(nn.Module):\n    def forward(self, x):\n"
        "        if (a_cute . supports(\n            self,\n            x,\n        )):  # fast\n            # yes\n"
        "            return a_cute.forward(self, x,)\n        return x\n"
    )
    assert only(text).kernel == "a_cute"


@pytest.mark.parametrize(
    "statement",
    [
        "if a.supports(self, x):\n            return b.forward(self, x)",
        "if a.supports(self, x):\n            return a.forward(self, x)\n        else:\n            return x",
        "if a.supports(self, x):\n            x = 1\n            return a.forward(self, x)",
        "if a.ready(self, x):\n            return a.forward(self, x)",
        "if self.a.supports(x):\n            return self.a.forward(x)",
        "if a.supports(self, x):\n            return",
    ],
)
def test_other_ifs_are_no_guards(statement: str):
    text = (
        f"from torch import nn\nclass A(nn.Module):\n    def forward(self, x):\n        {statement}\n        return x\n"
    )
    assert not only(text).has_kernel


BROKEN = (
    "def forward(self, x):\n        return (x",
    "def forward(self, x:\n        return x",
    "x = '''",
    "def",
    "@",
    "x = [1, {2: (",
    "if x ==",
    "print 'hi",
)


@pytest.mark.parametrize("broken", BROKEN)
def test_damage_in_one_class_leaves_the_others(broken: str):
    before = f"from torch import nn\nclass A(nn.Module):{FORWARD}\n"
    after = f"@decorated\nclass C(nn.Module):{FORWARD}"
    text = f"{before}class B(nn.Module):\n    {broken}\n\n{after}"
    found = {item.qualname: item for item in outline(text)}
    assert {"A", "C"} <= set(found)
    assert text[found["C"].span.start : found["C"].span.end] == after.rstrip()
    assert found["C"].forward is not None
    assert found["C"].forward.parameters[1].name == "x"
    assert found["A"].forward is not None
    assert found["A"].end_line == 4


@given(module_texts(adoptable=False))
def test_places_agree_with_pythons_own_parser(module: ModuleText):
    text = module.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    classes = {node.name: node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)}
    found = outline(module.text)
    assert {item.qualname for item in found} >= {module.qualname}
    for item in found:
        node = classes[item.qualname.rpartition(".")[2]]
        assert (item.line, item.end_line) == (node.lineno, node.end_lineno)
        assert module.text[item.name_range.start : item.name_range.end] == node.name
        forward = next(child for child in node.body if isinstance(child, ast.FunctionDef) and child.name == "forward")
        assert item.forward is not None
        assert item.forward.line == forward.lineno
        arguments = forward.args
        expected = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        assert [parameter.name for parameter in item.forward.parameters] == expected


EDITS = st.tuples(  # place (modulo the length), characters removed, text inserted
    st.integers(0, 2000), st.integers(0, 30), st.text(st.sampled_from("( \n\r)':\"é😀xclass "), max_size=8)
)
TWO_MODULES = """\
# Licence
# é

\"\"\"Module.\"\"\"
from __future__ import annotations
import torch; nn = torch.nn; TEXT = '''
a
'''


class NewGELU(nn.Module):
\tdef __init__(self):
\t\tsuper().__init__()

\tdef forward(self, x):  # noqa
\t\t"a" "b"
\t\t# why
\t\treturn x * 2
class Ärger(nn.Module):
\tdef __init__(self):
\t\tsuper().__init__()

\tdef forward(self, x, y):  # noqa
\t\t"a" "b"

\t\tz = x  # ü

\t\treturn z"""


@settings(max_examples=200)
@example(ModuleText(TWO_MODULES, "NewGELU"), [(140, 4, ":"), (2000, 4, ":"), (177, 0, "'")])
@given(module_texts(), st.lists(EDITS, min_size=1, max_size=3))
def test_a_parse_after_edits_gives_what_a_parse_from_scratch_gives(
    module: ModuleText, edits: list[tuple[int, int, str]]
):
    text, source = module.text, parse(module.text)
    for place, removed, inserted in edits:
        start = place % (len(text) + 1)
        text = text[:start] + inserted + text[start + removed :]
        source = parse(text, source)
        assert outline(source) == outline(text)


@given(st.text())
def test_any_text_has_an_outline(text: str):
    outline(text)


def test_bytes_are_read_as_python_reads_them():
    latin = "# coding: latin-1\nfrom torch import nn\nclass Ärger(nn.Module): pass\n"
    assert names(decode(latin.encode("latin-1"))) == ["Ärger"]
    bom = b"\xef\xbb\xbffrom torch import nn\r\nclass A(nn.Module): pass\r\n"
    assert outline(bom)[0].name_range.start == len("\ufefffrom torch import nn\r\nclass ")
    assert encode(decode(bom), bom) == bom
    assert encode(decode(latin.encode("latin-1")), latin.encode("latin-1")) == latin.encode("latin-1")
