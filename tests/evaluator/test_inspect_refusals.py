"""Modules that no kernel can be made for: one clear finding each, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Finding, Inspection, Task

Inspect = Callable[..., Inspection]
FORWARD = (
    "class Model(nn.Module):\n    def forward(self, x):\n        {}\n\ndef get_inputs(): return [torch.randn(4, 8)]\n"
)


def only(inspection: Inspection) -> Finding:
    assert inspection.graph is None
    (finding,) = inspection.findings
    assert finding.severity == "error"
    assert "Traceback" not in finding.message
    assert "\n" not in finding.message
    return finding


@pytest.mark.parametrize(
    ("forward", "what"),
    [
        ("async def forward(self, x): return x", "async"),
        ("async def forward(self, x): yield x", "async"),
        ("def forward(self, x): yield x", "a generator"),
    ],
)
def test_a_forward_that_is_no_plain_function(inspect_source: Inspect, forward: str, what: str):
    source = f"class Model(nn.Module):\n    {forward}\n\ndef get_inputs(): return [torch.randn(4, 8)]\n"
    message = only(inspect_source(source)).message
    assert message == f"model.py: forward of Model is {what}: a kernel cannot stand in for it."


@pytest.mark.parametrize(
    ("parameters", "given", "said"),
    [
        ("x", 5, "5 values, forward takes 1"),
        ("x, y", 1, "1 value, forward takes 2"),
        ("x, y, z=1", 4, "4 values, forward takes 2 to 3"),
        ("x, y, *rest", 1, "1 value, forward takes at least 2"),
    ],
)
def test_inputs_of_another_number(inspect_source: Inspect, parameters: str, given: int, said: str):
    source = f"class Model(nn.Module):\n    def forward(self, {parameters}): return x\n\n"
    message = only(inspect_source(f"{source}def get_inputs(): return [torch.randn(4)] * {given}\n")).message
    assert message == f"model.py: get_inputs() gives {said}."


def test_parameters_by_keyword_only(inspect_source: Inspect):
    source = "class Model(nn.Module):\n    def forward(self, x, *, scale=2.0): return x * scale\n\n"
    found = only(inspect_source(f"{source}def get_inputs(): return [torch.randn(4)]\n"))
    assert found.kind == "unsupported-argument"
    assert "forward takes scale by keyword only" in found.message
    assert found.line is not None


FORWARDS = {
    "inverse": ("return torch.linalg.inv(x @ x.T)", "unsupported-op", 6),
    "nonzero": ("return torch.nonzero(x > 0)", "unsupported-op", 6),
    "branch": ("if x.sum() > 0: return x\n        return -x", "data-dependent", 6),
    "item": ("return x * x.sum().item()", "data-dependent", None),
    "boolean index": ("return x[x > 0]", "data-dependent", 6),
    "complex": ("return torch.fft.fft(x).real", "unsupported-dtype", 6),
    "random": ("return x + torch.randn_like(x)", "random", 6),
    "dropout that ignores eval": ("return F.dropout(x, 0.5)", "random", 6),
    "writes its argument": ("return F.relu(x, inplace=True)", "writes-state", None),
    "raises": ("raise ValueError('no such mode')", "forward-raised", 6),
    "exits": ("raise SystemExit(3)", "exits", 6),
    "wrong shape": ("return x @ x", "forward-raised", 6),
    "CPU tensor": ("return x + torch.arange(8)", "device-mismatch", 6),
    "result on the CPU": ("return (x * 2).cpu()", "device-mismatch", None),
    "dict": ("return {'y': x * 2}", "unsupported-output", None),
    "list": ("return [x * 2]", "unsupported-output", None),
    "number in the result": ("return x * 2, 3", "unsupported-output", None),
    "nothing": ("x * 2", "unsupported-output", None),
    "autocast": ("\n        with torch.autocast('cuda', dtype=torch.bfloat16): return x @ x.t()", "autocast", None),
    "literal tensor": ("return x * torch.tensor([1.0] * 8).to(x.device)", "unregistered-constant", None),
}


@pytest.mark.parametrize(("body", "kind", "line"), FORWARDS.values(), ids=FORWARDS)
def test_forwards(inspect_source: Inspect, body: str, kind: str, line: int | None):
    finding = only(inspect_source(FORWARD.format(body)))
    assert finding.kind == kind
    if line is not None:
        assert finding.line == line
        assert f"model.py:{line}" in finding.message


FILES = {
    "syntax": ("class Model(nn.Module)\n    pass\n", "syntax-error", 4),
    "import": ("import a_package_that_is_not_there\nclass Model(nn.Module): ...\n", "import-error", 4),
    "exit at import": ("import sys; sys.exit(1)\nclass Model(nn.Module): ...\n", "exits", 4),
    "missing class": ("class Other(nn.Module): ...\n", "class-missing", None),
    "class in a function": ("def make():\n    class Model(nn.Module): ...\n", "class-missing", 5),
    "not a module": ("class Model: ...\ndef get_inputs(): return []\n", "not-a-module", None),
    "two classes": ("class Model(nn.Module): ...\nclass Model(nn.Module): ...\n", "duplicate-class", 5),
    "no inputs": ("class Model(nn.Module):\n    def forward(self, x): return x\n", "no-inputs", None),
    "no constructor arguments": (
        "class Model(nn.Module):\n    def __init__(self, d): super().__init__()\n    def forward(self, x): return x\n"
        "def get_inputs(): return [torch.ones(2)]\n",
        "no-inputs",
        None,
    ),
    "constructor raises": (
        "class Model(nn.Module):\n    def __init__(self):\n        raise RuntimeError('no weights')\n"
        "def get_inputs(): return [torch.ones(2)]\n",
        "constructor-raised",
        6,
    ),
    "constructor exits": (
        "class Model(nn.Module):\n    def __init__(self):\n        exit()\ndef get_inputs(): return [torch.ones(2)]\n",
        "exits",
        6,
    ),
    "constructor wants too much memory": (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.table = bytearray(1 << 50)\n    def forward(self, x): return x\n"
        "def get_inputs(): return [torch.ones(2)]\n",
        "out-of-memory",
        7,
    ),
    "inputs raise": (
        "class Model(nn.Module):\n    def forward(self, x): return x\n"
        "def get_inputs(): return [torch.load('nowhere.pt')]\n",
        "inputs-raised",
        6,
    ),
    "too many inputs": (
        "class Model(nn.Module):\n    def forward(self, x): return x\ndef get_inputs(): return [torch.ones(2)] * 3\n",
        "inputs-raised",
        None,
    ),
    "a dict as input": (
        "class Model(nn.Module):\n    def forward(self, x): return x['a']\n"
        "def get_inputs(): return [{'a': torch.ones(2)}]\n",
        "unsupported-argument",
        None,
    ),
    "complex input": (
        "class Model(nn.Module):\n    def forward(self, x): return x.real\n"
        "def get_inputs(): return [torch.ones(2, dtype=torch.complex64)]\n",
        "unsupported-dtype",
        None,
    ),
    "lazy module": (
        "class Model(nn.Module):\n    def __init__(self): super().__init__(); self.fc = nn.LazyLinear(4)\n"
        "    def forward(self, x): return self.fc(x)\ndef get_inputs(): return [torch.ones(2, 2)]\n",
        "lazy-module",
        None,
    ),
    "hooks": (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_forward_hook(lambda m, i, o: o * 2)\n    def forward(self, x): return x\n"
        "def get_inputs(): return [torch.ones(2)]\n",
        "hooks",
        None,
    ),
    "buffer that stays on the CPU": (
        "class Model(nn.Module):\n    def __init__(self): super().__init__(); self.table = torch.ones(8)\n"
        "    def forward(self, x): return x * self.table.to(x.device)\ndef get_inputs(): return [torch.ones(2, 8)]\n",
        "cpu-constant",
        None,
    ),
    "buffer that is written": (
        "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('count', torch.zeros(()))\n"
        "    def forward(self, x): self.count += 1; return x\ndef get_inputs(): return [torch.ones(2)]\n",
        "writes-state",
        None,
    ),
    "attribute that is written": (
        "class Model(nn.Module):\n    def forward(self, x):\n        self.last = 3\n        return x * 2\n"
        "def get_inputs(): return [torch.ones(2)]\n",
        "writes-state",
        6,
    ),
    "dict that is read": (
        "class Model(nn.Module):\n    def __init__(self): super().__init__(); self.options = {'scale': 2.0}\n"
        "    def forward(self, x): return x * self.options['scale']\ndef get_inputs(): return [torch.ones(2)]\n",
        "unguarded-state",
        None,
    ),
}


@pytest.mark.parametrize(("body", "kind", "line"), FILES.values(), ids=FILES)
def test_files(inspect_source: Inspect, body: str, kind: str, line: int | None):
    finding = only(inspect_source(body))
    assert finding.kind == kind
    if line is not None:
        assert finding.line == line


def test_the_message_says_what_to_do(inspect_source: Inspect):
    assert "add `def get_inputs():`" in only(inspect_source(FILES["no inputs"][0])).message
    assert "get_init_inputs" in only(inspect_source(FILES["no constructor arguments"][0])).message
    assert "options" in only(inspect_source(FILES["dict that is read"][0])).message
    assert "lines 4 and 5" in only(inspect_source(FILES["two classes"][0])).message


def test_a_file_that_is_not_there(worker: Worker, tmp_path: Path):
    finding = only(worker.inspect(Task(str(tmp_path / "gone.py"), "Model")))
    assert finding.kind == "unreadable-file"
    assert "No such file" in finding.message


def test_alternative_definitions_are_one_class(inspect_source: Inspect):
    inspection = inspect_source(
        "if torch.__version__:\n    class Model(nn.Module):\n        def forward(self, x): return x * 2\n"
        "else:\n    class Model(nn.Module): ...\ndef get_inputs(): return [torch.ones(2)]\n"
    )
    assert inspection.findings == ()
