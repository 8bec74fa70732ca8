"""Python files with nn.Module classes, as hypothesis generates them: every line end, indentation and import style."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

IMPORTS = (
    "import torch\nfrom torch import nn",
    "import torch.nn as nn\nimport torch",
    "import torch\n\nnn = torch.nn",
    "import os; import torch\nfrom torch import (\n    nn,\n)",
    "import torch; nn = torch.nn; TEXT = '''\na\n'''",
    "import torch\nfrom torch import nn\n\nfrom .blocks import Block",
    "import torch\nfrom torch import nn\n\nimport other_cute",
    "try:\n    import torch\n    from torch import nn\nexcept ImportError:\n    torch = None",
    "import torch\nfrom torch import nn\nif torch.cuda.is_available():\n    import os\nFLAG = 1\nimport math",
)
DOCSTRINGS = ("", '"""One line."""', 'r"""Raw.\n\n    x: a tensor é\n"""', "'''q'''  # noqa: D300", '"a" "b"')
PARAMETERS = (
    "x",
    "x, y",
    "x: torch.Tensor, y: float = 1.0",
    "x, *, _ignored",
    "x, y=(1, 2), /",
    "x,\n        y=None,\n    ",
)
BODIES = ("return x", "# why\nreturn x * 2", "\nz = x  # ü\n\nreturn z", "if x is None:\n    return x\nreturn x + 1")
DECORATORS = ("", "@torch.no_grad()\n", "@torch.inference_mode()\n@torch.no_grad()\n")


@dataclass(frozen=True)
class ModuleText:
    """A file and the class in it that is to be adopted."""

    text: str
    qualname: str


def indented(code: str, by: str) -> str:
    """Non-empty lines moved right."""
    return "\n".join(by + line if line.strip() else line for line in code.split("\n"))


@st.composite
def forwards(draw: st.DrawFn, unit: str, parameters: tuple[str, ...]) -> str:
    docstring = draw(st.sampled_from(DOCSTRINGS))
    body = (docstring + "\n" if docstring else "") + draw(st.sampled_from(BODIES)).replace("    ", unit)
    header = f"def forward(self, {draw(st.sampled_from(parameters))}):{draw(st.sampled_from(['', '  # noqa']))}\n"
    return draw(st.sampled_from(DECORATORS)) + header + indented(body, unit)


@st.composite
def module_texts(
    draw: st.DrawFn, *, adoptable: bool = True, newlines: tuple[str, ...] = ("\n", "\r\n", "\r")
) -> ModuleText:
    unit = draw(st.sampled_from(["    ", "  ", "\t"]))
    parameters = tuple(text for text in PARAMETERS if "*" not in text) if adoptable else PARAMETERS
    top = "".join(
        draw(st.sampled_from(choices))
        for choices in (
            ("", "#!/usr/bin/env python\n", "# -*- coding: utf-8 -*-\n", "# Licence\n# é\n\n"),
            ("", '"""Module."""\n', '"""Module.\n\nMore.\n"""\n\n'),
            ("", "from __future__ import annotations\n", "from __future__ import annotations\n\n"),
        )
    )
    top += draw(st.sampled_from(IMPORTS)) + draw(st.sampled_from(["\n", "\n\n", "\n\n\n"]))
    names = draw(
        st.lists(st.sampled_from(["NewGELU", "RMSNorm", "Ärger", "Model"]), min_size=1, max_size=3, unique=True)
    )
    classes = []
    for name in names:
        methods = "def __init__(self):\n" + unit + "super().__init__()\n\n" + draw(forwards(unit, parameters))
        classes.append(f"class {name}(nn.Module):\n{indented(methods, unit)}")
    nested = draw(st.booleans())
    code = draw(st.sampled_from(["\n", "\n\n\n"])).join(classes)
    if nested:
        code = f"class Outer:\n{indented(code, unit)}"
    tail = draw(st.sampled_from(["", "\n", "\n\ndef get_inputs():\n    return [torch.ones(3)]\n"]))
    text = draw(st.sampled_from(["", "\ufeff"])) + with_line_ends(draw, top + code + tail, newlines)
    return ModuleText(text, draw(st.sampled_from([f"Outer.{name}" if nested else name for name in names])))


def with_line_ends(draw: st.DrawFn, text: str, newlines: tuple[str, ...]) -> str:
    """One line end throughout, or (as after a careless merge) two of them mixed."""
    usual = draw(st.sampled_from(newlines))
    if draw(st.booleans()) or len(newlines) == 1:
        return text.replace("\n", usual)
    lines = text.split("\n")
    odd = draw(st.integers(0, len(lines) - 1))
    ends = ["\n" if index == odd else usual for index in range(len(lines) - 1)]
    return "".join(line + end for line, end in zip(lines, [*ends, ""], strict=True))
