"""Adoption writes what a developer would have written, and removal takes exactly that out again."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_agent.source.adoption import adopt, adopt_if_unchanged, remove, without_kernel
from cutesmith_agent.source.edits import EditRefusedError, StaleClassError, apply_edits, unified_diff
from cutesmith_agent.source.fingerprint import class_hash
from cutesmith_agent.source.naming import is_in_package, kernel_module
from cutesmith_agent.source.outline import outline
from cutesmith_agent.source.parsing import parse
from cutesmith_evaluator.names import snake_case
from module_texts import ModuleText, module_texts

HEAD = "import torch\nfrom torch import nn\n"


def adopted(text: str, qualname: str = "A", kernel: str = "a_cute", relative: bool = True) -> str:
    return apply_edits(text, adopt(text, qualname, kernel, relative=relative))


def removed(text: str, qualname: str = "A", kernel: str = "a_cute") -> str:
    return apply_edits(text, remove(text, qualname, kernel))


def module(forward: str, head: str = HEAD) -> str:
    return f"{head}\n\nclass A(nn.Module):\n    {forward}\n"


PLAIN = module("def forward(self, x):\n        return x")


@settings(max_examples=300)
@given(module_texts(), st.booleans())
def test_removal_undoes_adoption_byte_for_byte(file: ModuleText, relative: bool):
    text = adopted(file.text, file.qualname, relative=relative)
    assert text != file.text
    assert removed(text, file.qualname) == file.text
    assert without_kernel(text, file.qualname) == file.text
    found = {item.qualname: item.kernel for item in outline(text)}
    assert found.pop(file.qualname) == "a_cute"
    assert not any(found.values())


@given(module_texts(), st.booleans())
def test_adoption_adds_an_import_and_a_guard_and_nothing_else(file: ModuleText, relative: bool):
    before, after = tree(file.text), tree(adopted(file.text, file.qualname, relative=relative))
    imports = [n for n in after.body if isinstance(n, ast.Import | ast.ImportFrom) and n.names[0].name == "a_cute"]
    assert [getattr(n, "level", 0) for n in imports] == [int(relative)]
    after.body.remove(imports[0])
    name = file.qualname.rpartition(".")[2]
    (cls,) = [n for n in ast.walk(after) if isinstance(n, ast.ClassDef) and n.name == name]
    forward = next(n for n in cls.body if isinstance(n, ast.FunctionDef) and n.name == "forward")
    guard = forward.body.pop(1 if ast.get_docstring(forward, clean=False) is not None else 0)
    names = ", ".join(argument.arg for argument in (*forward.args.posonlyargs, *forward.args.args))
    assert ast.unparse(guard) == f"if a_cute.supports({names}):\n    return a_cute.forward({names})"
    assert ast.dump(after) == ast.dump(before)


def tree(text: str) -> ast.Module:
    return ast.parse(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))


@settings(max_examples=25)
@given(module_texts(newlines=("\n",)))
def test_removal_after_a_formatter_leaves_what_the_formatter_makes_of_the_original(file: ModuleText):
    tidy = formatted(formatted(file.text))  # the first pass splits `import a; b = c`
    text = formatted(adopted(tidy, file.qualname))
    assert formatted(removed(text, file.qualname)) == tidy


def formatted(text: str) -> str:
    for command in (["check", "--select", "I", "--fix", "--exit-zero", "--quiet"], ["format", "--quiet"]):
        run = [sys.executable, "-m", "ruff", *command, "--isolated", "--stdin-filename", "pkg/a.py", "-"]
        text = subprocess.run(run, input=text, capture_output=True, text=True, check=True).stdout
    return text


def test_the_guard_is_what_a_developer_would_have_written():
    text = module('def forward(me, x, mask=None):\n        """Doc."""\n\n        return x')
    assert adopted(text) == (
        "import torch\nfrom torch import nn\n\nfrom . import a_cute\n\n\nclass A(nn.Module):\n"
        "    def forward(me, x, mask=None):\n"
        '        """Doc."""\n'
        "        if a_cute.supports(me, x, mask):\n"
        "            return a_cute.forward(me, x, mask)\n"
        "\n        return x\n"
    )


def test_the_surrounding_indentation_and_line_ends_are_used():
    text = "from torch import nn\r\nclass A(nn.Module):\r\n\tdef forward(self, x):\n\t\treturn x\r\n"
    assert adopted(text, relative=False) == (
        "from torch import nn\r\n\r\nimport a_cute\r\nclass A(nn.Module):\r\n\tdef forward(self, x):\n"
        "\t\tif a_cute.supports(self, x):\n\t\t\treturn a_cute.forward(self, x)\n\t\treturn x\r\n"
    )


@pytest.mark.parametrize(
    ("head", "above"),
    [
        ("import os\nfrom torch import nn\n\nX = 1\n", "from torch import nn\n\n"),
        ('"""Doc."""\n', '"""Doc."""\n\n'),
        ("#!/usr/bin/python\n# coding: utf-8\nX = 1\n", "# coding: utf-8\n"),
        ("from __future__ import annotations\n", "from __future__ import annotations\n\n"),
        ("import torch\nif TYPE_CHECKING:\n    import os\n\n", "import torch\n\n"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\n", "    torch = None\n\n"),
        ("import torch\n\nfrom .x import (\n    y,\n)\n", "    y,\n)\n"),
        ("def f():\n    import torch\n\nimport torch\n", "\nimport torch\n\n"),
        ("import torch\n\n\ndef f(): ...\n\n\nimport wandb\n", "import torch\n\n"),
        ("import torch; X = [\n    1,\n]\n", "    1,\n]\n\n"),
        ("", ""),
    ],
)
def test_the_import_goes_where_a_developer_would_put_it(head: str, above: str):
    text = f"{head}class A(nn.Module):\n    def forward(self, x):\n        return x\n"
    result = adopted(text)
    assert result.partition("from . import a_cute\n")[0].endswith(above)
    assert "from . import a_cute\n" in result
    assert removed(result) == text


def test_an_import_that_is_there_is_used():
    text = module("def forward(self, x):\n        return x", HEAD + "\nfrom . import a_cute, b_cute\n")
    assert adopted(text).count("import a_cute") == 1


def test_classes_may_share_a_kernel_and_its_import_stays_for_the_other():
    text = PLAIN + "\n\n" + PLAIN.split("\n\n\n")[1].replace("class A", "class B")
    both = adopted(adopted(text, "A"), "B")
    assert both.count("from . import a_cute") == 1
    assert removed(both, "A") == adopted(text, "B")
    assert removed(removed(both, "A"), "B") == text


def test_a_second_kernel_joins_the_first():
    text = PLAIN + "\n\n" + PLAIN.split("\n\n\n")[1].replace("class A", "class B")
    both = adopted(adopted(text, "A", "a_cute"), "B", "b_cute")
    assert "from . import a_cute\nfrom . import b_cute\n" in both
    assert removed(removed(both, "A", "a_cute"), "B", "b_cute") == text
    assert removed(removed(both, "B", "b_cute"), "A", "a_cute") == text


@pytest.mark.parametrize(
    ("imported", "left"),
    [
        ("from . import a_cute, b\n", "from . import b\n"),
        ("from . import b, a_cute\n", "from . import b\n"),
        ("from . import (\n    a_cute,\n    b,\n)\n", "from . import (\n    b,\n)\n"),
        ("from . import (\n    b,\n    a_cute,\n)\n", "from . import (\n    b,\n)\n"),
        ("import os, a_cute\n", "import os\n"),
        ("from pkg.sub import a_cute  # noqa\n", ""),
    ],
)
def test_a_merged_import_loses_one_name_only(imported: str, left: str):
    guarded = module("def forward(self, x):\n        return x", HEAD + imported)
    text = apply_edits(guarded, adopt(guarded, "A", "a_cute", relative=True))
    assert removed(text) == module("def forward(self, x):\n        return x", HEAD + left)


def test_the_import_stays_where_something_else_uses_it():
    text = adopted(PLAIN) + "\nprint(a_cute.explain)\n"
    assert removed(text) == text.replace(
        "        if a_cute.supports(self, x):\n            return a_cute.forward(self, x)\n", ""
    )


REFUSED = {
    "def forward(self, x): return x": "shares a line with its body",
    "def forward(self, x): \\\n        return x": "shares a line with its body",
    "def forward(self, x):\n        '''Doc.'''; return x": "shares a line with its body",
    "def forward(self, *xs):\n        return xs": "takes *xs",
    "def forward(self, x, **extra):\n        return x": "takes **extra",
    "def forward(self, x, *, flag=False):\n        return x": "takes keyword-only flag",
    "async def forward(self, x):\n        return x": "coroutine or a generator",
    "def forward(self, x):\n        yield x": "coroutine or a generator",
    "@staticmethod\n    def forward(x):\n        return x": "decorated with @staticmethod",
    "def forward():\n        return 1": "no self parameter",
    "def forward(self, x):\n        '''Doc.'''": "has no statements",
    "def run(self, x):\n        return x": "has no forward of its own",
    "def forward(self, a_cute):\n        return a_cute": "already used on line 6",
    "def forward(self, x):\n        a_cute = 1\n        return x": "already used on line 7",
    "def forward(self, x):\n        return (x": "syntax error",
}


@pytest.mark.parametrize("forward", REFUSED)
def test_what_a_guard_cannot_stand_in_is_refused_with_the_reason(forward: str):
    with pytest.raises(EditRefusedError, match=r"\w") as refusal:
        adopt(module(forward), "A", "a_cute", relative=True)
    assert REFUSED[forward] in str(refusal.value)
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize(
    "line",
    [
        "a_cute = 1",
        "def a_cute(): ...",
        "class a_cute: ...",
        "import os as a_cute",
        "for a_cute in []: ...",
        "f(a_cute)",
    ],
)
def test_a_name_the_file_uses_for_something_else_is_refused(line: str):
    with pytest.raises(EditRefusedError, match="a_cute is already used on line 3"):
        adopt(
            f"{HEAD}{line}\n\nclass A(nn.Module):\n    def forward(self, x):\n        return x\n",
            "A",
            "a_cute",
            relative=True,
        )


def test_the_name_as_an_attribute_keyword_or_text_is_no_clash():
    text = PLAIN + "\nx.a_cute = f(a_cute=1)  # a_cute\ny = 'a_cute'\n"
    assert removed(adopted(text)) == text


def test_ambiguous_unknown_and_conditional_classes_are_refused():
    twice = PLAIN + PLAIN.split("\n\n\n")[1]
    conditional = (
        "import torch\nif torch:\n    class A(torch.nn.Module):\n        def forward(self, x):\n            return x\n"
    )
    for text, name, reason in (
        (twice, "A", "lines 5 and 8"),
        (PLAIN, "B", "no class B"),
        (conditional, "A", "block such as if"),
    ):
        with pytest.raises(EditRefusedError, match=reason):
            adopt(text, name, "a_cute", relative=True)


def test_a_class_with_a_kernel_is_refused_unless_replacing_is_asked_for():
    text = adopted(PLAIN)
    with pytest.raises(EditRefusedError, match="already has the kernel a_cute"):
        adopt(text, "A", "b_cute", relative=True)
    assert apply_edits(text, adopt(text, "A", "b_cute", relative=True, replace=True)) == adopted(PLAIN, kernel="b_cute")
    assert adopt(text, "A", "a_cute", relative=True, replace=True) == ()


def test_removal_without_a_kernel_is_refused():
    with pytest.raises(EditRefusedError, match="has no kernel a_cute"):
        remove(PLAIN, "A", "a_cute")


def test_valid_python_that_tree_sitter_cannot_read_may_be_edited():
    text = (
        PLAIN + '\nx = f"{f"{1}"!r:{">"}{3}}"\nprint(*(y for y in z), sep="")\nmatch x:\n    case {"a": [*_]}: pass\n'
    )
    try:
        ast.parse(text)
    except SyntaxError:
        text = PLAIN
    assert removed(adopted(text)) == text


def test_an_edit_is_made_anew_on_a_text_that_moved_but_not_on_a_class_that_changed():
    proved = class_hash(PLAIN, "A")
    moved = "# a new comment\nimport os\n" + PLAIN.replace("        return x", "        # why\n\n        return  x")
    edits = adopt_if_unchanged(moved, "A", "a_cute", relative=True, proved=proved)
    assert apply_edits(moved, edits) == adopted(moved)
    with pytest.raises(StaleClassError, match="has changed since"):
        adopt_if_unchanged(PLAIN.replace("return x", "return x + 1"), "A", "a_cute", relative=True, proved=proved)
    with pytest.raises(EditRefusedError, match="no class A"):
        adopt_if_unchanged(PLAIN.replace("class A", "class B"), "A", "a_cute", relative=True, proved=proved)


@given(module_texts())
def test_an_adopted_class_has_the_hash_it_was_proved_with(file: ModuleText):
    assert class_hash(adopted(file.text, file.qualname), file.qualname) == class_hash(file.text, file.qualname)


def test_a_helper_that_the_class_uses_belongs_to_what_was_proved():
    text = f"{HEAD}SCALE = 2\n\ndef inner(x):\n    return x * SCALE\n\ndef helper(x):\n    return inner(x)\n\n"
    text += "def other(): ...\n\nclass A(nn.Module):\n    def forward(self, x):\n        return helper(x)\n"
    same, changed = text.replace("other()", "another()"), text.replace("SCALE = 2", "SCALE = 3")
    assert class_hash(text, "A") == class_hash(same, "A")
    assert class_hash(text, "A") != class_hash(changed, "A")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NewGELU", "new_gelu"),
        ("RMSNorm", "rms_norm"),
        ("GPT2MLP", "gpt2_mlp"),
        ("LayerNorm2d", "layer_norm2d"),
        ("Model", "model"),
        ("my_relu", "my_relu"),
        ("Outer.Inner", "outer_inner"),
        ("Ärger", "ärger"),
    ],
)
def test_kernels_are_named_after_their_class(name: str, expected: str):
    assert snake_case(name) == expected


def test_two_files_with_a_class_of_one_name_get_kernels_of_two_names(tmp_path: Path):
    file = tmp_path / "19-ReLU.py"
    text = PLAIN.replace("class A", "class Model")

    def name(text: str, *ours: str) -> str:
        return kernel_module(parse(text), "Model", file, is_ours=lambda path: path.name in ours)

    assert name(text) == "model_cute"
    (tmp_path / "model_cute.py").write_text("")
    assert name(text, "model_cute.py") == "model_cute"
    assert name(text) == "model_19_re_lu_cute"
    (tmp_path / "model_19_re_lu_cute.py").write_text("")
    assert name(text) == "model_19_re_lu_2_cute"
    assert name(adopted(text, "Model", "model_cute")) == "model_cute"


def test_a_file_beside_an_init_is_in_a_package(tmp_path: Path):
    assert not is_in_package(tmp_path / "a.py")
    (tmp_path / "__init__.py").write_text("")
    assert is_in_package(tmp_path / "a.py")


@given(module_texts())
@settings(max_examples=20)
def test_the_diff_is_a_patch_that_git_applies(file: ModuleText):
    after = adopted(file.text, file.qualname)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.py"
        path.write_bytes(file.text.encode())
        patch = unified_diff(file.text, after, "a.py").encode()
        run = ["git", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(run, input=patch, cwd=folder, check=True, capture_output=True)
        assert path.read_bytes() == after.encode()
