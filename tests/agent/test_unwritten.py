"""A forward that is only described: what is read of it, and a body written into it."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.source.edits import EditRefusedError, apply_edits
from cutesmith_agent.source.parsing import parse
from cutesmith_agent.source.unwritten import body_of, unwritten, write_forward

HEAD = "import torch\nfrom torch import nn\n\n\n"
STUBS = {
    "docstring alone": '    def forward(self, x):\n        """Twice x."""\n',
    "ellipsis": '    def forward(self, x):\n        """Twice x."""\n        ...\n',
    "pass after a comment": '    def forward(self, x):\n        """Twice."""\n        # later\n        pass  # TODO\n',
    "raise": '    def forward(self, x):\n        """Twice."""\n        raise NotImplementedError(\n            1)\n',
    "no docstring": "    def forward(self, x):\n        ...\n",
    "on the line of def": "    def forward(self, x): ...\n",
    "spread out": '    def forward(\n        self,\n        x: torch.Tensor,  # input\n    ) -> torch.Tensor:\n'
    '        """Twice x."""\n        ...\n',
    "decorated": '    @torch.no_grad()\n    def forward(self, x):\n        """Twice x."""\n        ...; pass\n',
}  # fmt: skip
BODIES = st.lists(
    st.sampled_from(
        ["y = x + 1", "# why", "if x is None:\n    y = 1\nelse:\n    y = 2", "for i in range(3):\n    x = x * i",
         's = "a # b"', "y = (x +\n     1)", "z = [a\n  for a in x]"]
    ),
    max_size=5,
).map(lambda parts: "\n".join([*parts, "return x"]))  # fmt: skip


def text_of(stub: str, tail: str = "") -> str:
    return f'{HEAD}class A(nn.Module):\n    """Doubles."""\n\n{stub}{tail}\n\ndef get_inputs():\n    return []\n'


def method(body: str, indent: str = "    ") -> str:
    return f"def forward(self, x):\n{textwrap.indent(body, indent)}\n"


@given(
    st.sampled_from(sorted(STUBS)),
    BODIES,
    st.sampled_from(["", "\n    def other(self):\n        return 1\n"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["    ", "  ", "\t"]),
)
def test_a_body_takes_the_stubs_place_and_nothing_else_changes(
    kind: str, body: str, tail: str, line_end: str, indent: str
) -> None:
    text = text_of(STUBS[kind], tail).replace("\n", line_end)
    result = apply_edits(text, write_forward(text, "A", method(body, indent)))
    before, after = ast.parse(text), ast.parse(result)
    forward = next(node for node in ast.walk(after) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    old = next(node for node in ast.walk(before) if isinstance(node, ast.FunctionDef) and node.name == "forward")
    said = ast.get_docstring(old)
    assert ast.get_docstring(forward) == said
    statements = forward.body[1:] if said else forward.body
    wanted = ast.parse(method(body)).body[0]
    assert isinstance(wanted, ast.FunctionDef)
    assert [ast.dump(node) for node in statements] == [ast.dump(node) for node in wanted.body]
    forward.body = old.body
    assert ast.dump(after) == ast.dump(before)
    assert ("\n" in result.replace("\r\n", "")) == (line_end == "\n")
    assert unwritten(parse(result), "A") is None


@pytest.mark.parametrize(
    ("stub", "told"),
    [
        ('    def forward(self, x): """Twice."""\n', "shares a line with its body"),
        ('    def forward(self, x):\n        """Twice."""; ...\n', "shares a line with its body"),
        ("    def forward(self, x):\n        return x\n", "is written by now"),
        ("    def forward(self, x:\n        ...\n", "syntax error"),
    ],
)
def test_what_cannot_be_laid_out_is_refused(stub: str, told: str) -> None:
    with pytest.raises(EditRefusedError, match=told):
        write_forward(text_of(stub), "A", method("return x"))


def test_a_class_that_is_gone_is_refused() -> None:
    with pytest.raises(EditRefusedError, match="no one class B"):
        write_forward(text_of(STUBS["ellipsis"]), "B", method("return x"))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("x = 1", "exactly one function"),
        ("def forward(self, y):\n    return y", r"must be `def forward\(self, x\)`"),
        ("def forward(self, x, *, k=1):\n    return x", "must be"),
        ("async def forward(self, x):\n    return x", "exactly one function"),
        ("@torch.no_grad()\ndef forward(self, x):\n    return x", "without decorators"),
        ('def forward(self, x):\n    """Only words."""', "no statements"),
        ("def forward(self, x:", "no valid Python"),
        ('def forward(self, x):\n    y = """a\n  b"""\n    return x', "no string over several lines"),
    ],
)
def test_a_method_that_does_not_fit_is_named(written: str, told: str) -> None:
    with pytest.raises(EditRefusedError, match=told):
        write_forward(text_of(STUBS["ellipsis"]), "A", written)


def test_what_is_read_of_a_stub() -> None:
    stub = STUBS["spread out"].replace("Twice x.", "Twice x.\n\n        As said.\n        ")
    init = "    def __init__(self, width: int = 4) -> None:\n        super().__init__()\n\n"
    found = unwritten(parse(text_of(init + stub)), "A")
    assert found is not None
    assert found.description == "Doubles.\n\nTwice x.\n\nAs said."
    assert found.signature == "def forward(\n    self,\n    x: torch.Tensor,  # input\n) -> torch.Tensor"
    assert found.constructor == "def __init__(self, width: int = 4) -> None"
    assert found.parameters == ("self", "x")
    assert unwritten(parse(text_of("    def forward(self, x):\n        return x\n")), "A") is None


@pytest.mark.parametrize(
    "written", ["def forward(self, x): return x", "def forward(self, x):\n    # why\n    return x"]
)
def test_comments_and_short_forms_are_kept(written: str) -> None:
    assert body_of(written, ("self", "x")) in ("return x", "# why\nreturn x")
