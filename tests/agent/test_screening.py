"""What a model's reference and checks may not be made of, and what they may."""

from __future__ import annotations

import pytest

from cutesmith_agent.describe.screening import checks_problem, reference_problem
from described_rig import CHECKS, REFERENCE

FILE = (
    "import math\nimport os\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
    "from shutil import rmtree\n\nSCALE = 2.0\n\n\ndef helper(x):\n    return x\n"
)


def formula(expression: str) -> str:
    return REFERENCE.replace("x.flip(0)", expression)


@pytest.mark.parametrize(
    "expression",
    [
        "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        "F.softmax(x / math.sqrt(x.shape[-1]), dim=-1)",
        "helper(x) * SCALE",
        "torch.stack([x[i] for i in range(len(x))])",
        "torch.where(x > 0, x, torch.zeros_like(x)).select(0, 1)",
        "sum(map(lambda part: part * 2, x.unbind(0)))",
        "self.proj(nn.functional.gelu(x, approximate='tanh'))",
    ],
)
def test_a_formula_passes(expression: str) -> None:
    assert reference_problem(formula(expression), FILE) is None


@pytest.mark.parametrize(
    "expression",
    [
        "os.getcwd()", "rmtree(x)", "open('a')", "eval('x')", "exec('x')", "compile('x', '', 'exec')",
        "__import__('os')", "globals()", "vars(self)", "getattr(x, 'data')", "setattr(self, 'a', x)", "breakpoint()",
        "input()", "x.__class__", "x.__reduce__()", "(lambda: 0).__globals__", "f'{x.__class__}'", "'{0.x}'.format(x)",
        "torch.load('a')", "torch.save(x, 'a')", "torch.os.system('a')", "torch.hub.load('a', 'b')",
        "torch.utils.cpp_extension.load(x)", "torch.ops.load_library('a')", "torch.jit.script(x)", "torch.compile(x)",
        "torch.importlib.import_module('os')", "torch.sys.modules", "x.numpy().tofile('a')", "x.cuda()", "torch._C",
        "x.apply_(len)", "unknown", "[open for open in [1]] and open('x') and __builtins__", "F.importlib",
        "torch.Tensor.__init__", "torch.distributed.init_process_group()", "torch.multiprocessing.spawn(x)",
        "torch.from_file('a')", "math.__loader__", "(yield x)", "torch.serialization.load(x)",
    ],
)  # fmt: skip
def test_what_is_more_than_a_formula_does_not(expression: str) -> None:
    assert reference_problem(formula(expression), FILE) is not None


@pytest.mark.parametrize(
    "statement",
    ["import os", "from os import system", "global x", "self.y = x", "self.weight.data[0] = x", "torch.flip = x",
     "class A: pass", "F.gelu = None", "del self.weight", "nn.Linear.forward = x", "import torch.utils.cpp_extension",
     "for torch.flip in x: pass", "with x as torch.flip: pass"],
)  # fmt: skip
def test_a_statement_that_does_more_does_not(statement: str) -> None:
    source = REFERENCE.replace("    return", f"    {statement}\n    return")
    assert reference_problem(source, FILE) is not None


def test_checks_of_the_usual_kind_pass() -> None:
    assert checks_problem(CHECKS) is None
    more = (
        '"""Checks."""\nimport itertools\nimport math\n\nimport torch\nimport torch.nn.functional as F\n\n'
        "EPS = 1e-6\n\n\n"
        "def expected(x):\n    return [math.sqrt(v + EPS) for v in x.tolist()]\n\n\n"
        "def check_all(build, inputs):\n    module = build(4, eps=EPS)\n    module.weight.data.fill_(2.0)\n"
        "    for a, b in itertools.product((1, 2), repeat=2):\n        try:\n            module(torch.ones(a, b))\n"
        "        except RuntimeError as error:\n            raise AssertionError(str(error)) from error\n"
    )
    assert checks_problem(more) is None


@pytest.mark.parametrize(
    ("checks", "told"),
    [
        (f"import subprocess\n{CHECKS}", "Line 1 imports subprocess"),
        (f"from torch.utils import cpp_extension\n{CHECKS}", "imports torch.utils.cpp_extension"),
        (f"from . import secrets\n{CHECKS}", "imports .."),
        (CHECKS.replace("    x = ", "    torch.flip = None\n    x = "), "writes to torch"),
        (CHECKS.replace("    x = ", "    inputs.__globals__['a'] = 1\n    x = "), "uses .__globals__"),
        (CHECKS.replace("    x = ", "    build.reference = 1\n    open('a', 'w')\n    x = "), "uses open"),
        (f"{CHECKS}\nprint(1)\n", "holds imports, constants and functions only"),
        (f"{CHECKS}\nif True:\n    check_a = 1\n", "holds imports, constants and functions only"),
        ("def test_it(build, inputs):\n    pass\n", "begins with check_"),
        ("def check_it(build):\n    pass\n", "must take two arguments"),
        ("def check_it(build, inputs:\n    pass\n", "no valid Python"),
        ("x = " + "(" * 5000 + ")" * 5000, "no valid Python"),
        ("\0", "no valid Python"),
    ],
)
def test_checks_that_do_more_do_not(checks: str, told: str) -> None:
    assert told in str(checks_problem(checks))
