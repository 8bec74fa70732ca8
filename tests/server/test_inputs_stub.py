"""The stub for example inputs: what it holds, and that it is Python wherever it lands."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest
from hypothesis import given

from cutesmith_agent.source.edits import EditRefusedError, apply_edits
from cutesmith_server.inputs_stub import add_inputs, lacks_inputs
from cutesmith_server.outlines import outline_of
from module_texts import ModuleText, module_texts


def stubbed(text: str, qualname: str = "A") -> str:
    return apply_edits(text, add_inputs(outline_of(text), qualname))


def functions(text: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(text.removeprefix("\ufeff"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def one_class(forward: str, init: str = "", head: str = "import torch\nfrom torch import nn\n") -> str:
    constructor = f"    def __init__(self, {init}):\n        super().__init__()\n" if init else ""
    return f"{head}class A(nn.Module):\n{constructor}    def forward(self, {forward}):\n        return x\n"


def test_the_stub_is_what_a_person_would_write():
    text = one_class(
        "x: torch.Tensor, mask, scale: float, ids, extra=None", init="width: int, names: list[str], act=None"
    )
    added = stubbed(text)[len(text) :]
    assert added == dedent(
        """\


        def get_inputs():
            # Example arguments of A.forward. Set the shapes, dtypes and values that you use.
            x = torch.randn(8, 128)
            mask = torch.ones(8, 128, dtype=torch.bool)
            scale = 1.0
            ids = torch.randint(0, 128, (8, 128))
            return [x, mask, scale, ids]


        def get_init_inputs():
            # Arguments of A(...). Set the shapes, dtypes and values that you use.
            width = 128
            names = []
            return [width, names]
        """
    )


def test_only_what_is_missing_is_added():
    text = one_class("x", init="width") + "\ndef get_inputs():\n    return []\n"
    assert set(functions(stubbed(text))) == {"get_inputs", "get_init_inputs"}
    assert stubbed(text).count("def get_inputs") == 1


def test_beside_other_modules_the_stub_has_the_classes_name():
    text = one_class("x") + "class RMSNorm(nn.Module):\n    def forward(self, x):\n        return x\n"
    assert "get_rms_norm_inputs" in functions(stubbed(text, "RMSNorm"))


def test_torch_is_imported_where_the_file_does_not():
    added = functions(stubbed(one_class("x", head="from torch import nn\n")))["get_inputs"]
    assert any(isinstance(node, ast.Import) for node in added.body)


@pytest.mark.parametrize("inputs", ["def get_inputs():\n    pass\n", "get_a_inputs = list\n", "get_inputs=list\n"])
def test_nothing_is_added_where_nothing_is_missing(inputs):
    text = one_class("x") + inputs
    assert not lacks_inputs(outline_of(text), "A")
    with pytest.raises(EditRefusedError, match="already says"):
        add_inputs(outline_of(text), "A")


def test_a_class_without_a_forward_is_refused():
    with pytest.raises(EditRefusedError, match="no forward"):
        add_inputs(outline_of("from torch import nn\nclass A(nn.Module):\n    pass\n"), "A")


@given(module_texts())
def test_on_any_file_the_result_parses_and_nothing_is_missing_any_more(module: ModuleText):
    outline = outline_of(module.text)
    if not lacks_inputs(outline, module.qualname):
        return
    result = stubbed(module.text, module.qualname)
    assert result.startswith(module.text)
    functions(result)
    assert not lacks_inputs(outline_of(result), module.qualname)
