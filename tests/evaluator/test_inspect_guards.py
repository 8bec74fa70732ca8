"""Which Python values a graph depends on, and which sizes it does not depend on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from torch import nn

from cutesmith_evaluator.types import Graph, Inspection, Task
from cutesmith_evaluator.worker.reference import load_reference

Inspect = Callable[..., Inspection]


def graph_of(inspection: Inspection) -> Graph:
    assert inspection.findings == ()
    assert inspection.graph is not None
    return inspection.graph


def guards_of(inspection: Inspection) -> dict[str, object]:
    return {guard.path: guard.value for guard in graph_of(inspection).guards if guard.path is not None}


def test_attributes_that_forward_reads(inspect_source: Inspect):
    guards = guards_of(
        inspect_source(
            "class Model(nn.Module):\n"
            "    SCALE = 3.0\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.eps, self.unread, self.mode, self.window, self.nothing = 1e-3, 7, 'sum', (1, 2.0), None\n"
            "        self.act, self.kind, self.flag = F.silu, torch.float16, True\n"
            "    def helper(self, x): return x * self.eps if self.nothing is None else x\n"
            "    def forward(self, x):\n"
            "        if self.flag and self.mode == 'sum': x = x + self.window[0]\n"
            "        return self.helper(self.act(x)).to(self.kind) * self.SCALE\n"
            "def get_inputs(): return [torch.ones(2, 3)]\n"
        )
    )
    assert guards == {
        "eps": 1e-3,
        "mode": "sum",
        "window": (1, 2.0),
        "nothing": None,
        "act": "torch.nn.functional:silu",
        "kind.__repr__()": "torch.float16",
        "flag": True,
        "SCALE": 3.0,
        "__class__.__qualname__": "Model",  # helper may be another in a subclass
    }


def test_training_is_guarded_only_where_it_is_read(inspect_source: Inspect):
    body = (
        "class Model(nn.Module):\n    def forward(self, x):\n        return {}\n"
        "def get_inputs(): return [torch.ones(2, 3)]\n"
    )
    assert guards_of(inspect_source(body.format("F.dropout(x, 0.5, self.training)"))) == {"training": False}
    assert guards_of(inspect_source(body.format("x * 2"))) == {}


def test_submodules_are_guarded_by_class_and_settings(inspect_source: Inspect):
    guards = guards_of(
        inspect_source(
            "class Model(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.norm = nn.LayerNorm(4, elementwise_affine=False)\n"
            "        self.act = nn.Sequential(nn.ELU(alpha=0.5))\n"
            "    def forward(self, x): return self.act(self.norm(x))\n"
            "def get_inputs(): return [torch.ones(2, 4)]\n"
        )
    )
    assert guards["norm.__class__"] == "torch.nn:LayerNorm"
    assert guards["_modules.__len__()"] == 2
    assert guards["act._modules.__len__()"] == 1
    assert guards["norm.eps"] == 1e-5
    assert guards["norm.normalized_shape"] == (4,)
    assert guards["norm.weight"] is None
    assert "norm.weight" in guards
    assert guards["act[0].__class__"] == "torch.nn:ELU"
    assert guards["act[0].alpha"] == 0.5


def test_a_config_objects_fields_are_guarded_by_path(inspect_source: Inspect):
    guards = guards_of(
        inspect_source(
            "import dataclasses, enum\n"
            "class Mode(enum.Enum):\n    FAST = 1\n"
            "@dataclasses.dataclass(frozen=True)\n"
            "class Config:\n    scale: float = 2.0\n    unread: int = 1\n    mode: Mode = Mode.FAST\n"
            "class Model(nn.Module):\n"
            "    def __init__(self): super().__init__(); self.config = Config()\n"
            "    def forward(self, x): return x * self.config.scale if self.config.mode is Mode.FAST else x\n"
            "def get_inputs(): return [torch.ones(2)]\n"
        )
    )
    assert guards["config.scale"] == 2.0
    assert guards["config.mode.name"] == "FAST"
    assert set(guards) == {"config.scale", "config.mode.name"}


def test_guards_and_state_are_python_after_the_module(inspect_source: Inspect, tmp_path: Path):
    """`module.<path>` evaluates, also below Sequential, ModuleList and names that are no identifiers."""
    inspection = inspect_source(
        "class Model(nn.Sequential):\n"
        "    def __init__(self):\n"
        "        super().__init__(nn.Linear(4, 4), nn.LayerNorm(4))\n"
        "        self.more = nn.ModuleList([nn.Sequential(nn.Linear(4, 4, bias=False), nn.GELU(approximate='tanh'))])\n"
        "        self.odd = nn.ModuleDict({'a-b': nn.LeakyReLU(0.2)})\n"
        "        self.gate = torch.relu\n"
        "    def forward(self, x):\n"
        "        return self.gate(self.odd['a-b'](self.more[0](self[1](self[0](x)))))\n"
        "def get_inputs(): return [torch.ones(2, 4)]\n"
    )
    graph = graph_of(inspection)
    module = load_reference(Task(str(tmp_path / "model.py"), "Model")).build("cpu")
    for each in graph.inputs:
        if each.path:
            assert tuple(eval(f"module.{each.path}", {"module": module}).shape) == each.spec.shape
    paths = {guard.path: guard.value for guard in graph.guards}
    for path, value in paths.items():
        found = eval(f"module.{path}", {"module": module})
        if path.endswith("__class__"):
            found = f"torch.nn:{found.__name__}" if getattr(nn, found.__name__) is found else found
        elif isinstance(value, str) and ":" in value:
            found = f"{found.__module__}:{found.__qualname__}"
        assert found == value
    assert "more[0][0].weight" in {each.path for each in graph.inputs}
    assert paths["more[0][1].approximate"] == "tanh"
    assert paths["get_submodule('odd.a-b').negative_slope"] == 0.2
    assert paths["gate"] == "torch:_VariableFunctionsClass.relu"


def test_a_tensor_attribute_is_state_not_a_number(inspect_source: Inspect):
    inspection = inspect_source(
        "class Model(nn.Module):\n"
        "    def __init__(self): super().__init__(); self.scale = torch.tensor(2.0)\n"
        "    def forward(self, x): return x * self.scale\n"
        "def get_inputs(): return [torch.ones(2)]\n"
    )
    assert [finding.kind for finding in inspection.findings] == ["cpu-constant"]
    graph = graph_of(
        inspect_source(
            "class Model(nn.Module):\n"
            "    def __init__(self): super().__init__(); self.scale = torch.ones(2, device='cuda')\n"
            "    def forward(self, x): return x * self.scale\n"
            "def get_inputs(): return [torch.ones(2)]\n"
        )
    )
    assert [(each.kind, each.path) for each in graph.inputs] == [("constant", "scale"), ("argument", None)]


def test_arguments_that_are_no_tensors(inspect_source: Inspect):
    graph = graph_of(
        inspect_source(
            "class Model(nn.Module):\n"
            "    def forward(self, x, scale, mask=None, shape=((2,), 3), mode='a'):\n"
            "        return (x * scale).view(shape[0] + (3,)) if mask is None else x\n"
            "def get_inputs(): return [torch.ones(6), 2.5]\n"
        )
    )
    assert {guard.position: guard.value for guard in graph.guards} == {1: 2.5, 2: None, 3: ((2,), 3), 4: "a"}
    assert [(each.name, each.position) for each in graph.inputs] == [("x", 0)]


DYNAMIC = {
    "pointwise": ("x * 2", "torch.ones(4, 6)", [{(0, 0)}, {(0, 1)}]),
    "scalar from a shape": ("x / x.shape[-1]", "torch.ones(4, 6)", [{(0, 0)}]),
    "two that move together": ("x + y", "torch.ones(4, 6), torch.ones(4, 6)", [{(0, 0), (1, 0)}, {(0, 1), (1, 1)}]),
    "a vector per channel": ("x * y", "torch.ones(4, 6), torch.ones(6)", [{(0, 0)}, {(0, 1), (1, 0)}]),
    "a cut in the middle": ("x.chunk(2, -1)[0] * 2", "torch.ones(4, 6)", [{(0, 0)}]),
    "a branch on a size": ("x * 2 if x.shape[0] > 5 else x * 3", "torch.ones(4, 6)", [{(0, 1)}]),
    "a fixed view": ("x.view(-1, 2, 3) * 2", "torch.ones(4, 6)", [{(0, 0)}]),
    "a sum over rows": ("x.sum(0)", "torch.ones(4, 6)", [{(0, 0)}, {(0, 1)}]),
    "a permuted input": ("x.t() * y", "torch.ones(4, 6), torch.ones(6, 4)", [{(0, 0), (1, 1)}, {(0, 1), (1, 0)}]),
}


@pytest.mark.parametrize(("expression", "inputs", "groups"), DYNAMIC.values(), ids=DYNAMIC)
def test_dynamic_dims(inspect_source: Inspect, expression: str, inputs: str, groups: list[set[tuple[int, int]]]):
    arguments = "x, y" if "y" in expression else "x"
    graph = graph_of(
        inspect_source(
            f"class Model(nn.Module):\n    def forward(self, {arguments}): return {expression}\n"
            f"def get_inputs(): return [{inputs}]\n"
        )
    )
    assert sorted(map(sorted, graph.dynamic_dims)) == sorted(map(sorted, groups))


def test_what_goes_by_two_names_is_guarded_as_one(inspect_source: Inspect):
    graph = graph_of(
        inspect_source(
            "class Part(nn.Module):\n"
            "    def __init__(self): super().__init__(); self.norm = nn.LayerNorm(4)\n"
            "    def forward(self, x): return self.norm(x)\n"
            "class Model(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.first = Part(); self.parts = nn.ModuleList([self.first, Part()])\n"
            "        self.a = nn.Parameter(torch.ones(4)); self.b = self.a\n"
            "    def forward(self, x): return self.parts[0](self.first(x)) * self.a * self.b\n"
            "def get_inputs(): return [torch.ones(2, 4)]\n"
        )
    )
    ties = {(guard.path, guard.same_as) for guard in graph.guards if guard.same_as}
    assert ties == {("parts[0]", "first"), ("b", "a")}


def test_a_class_that_calls_its_own_methods_is_guarded(inspect_source: Inspect):
    body = (
        "class Base(nn.Module):\n    def helper(self, x): return x * 2\n    def forward(self, x): return {}\n"
        "class Model(Base):\n    pass\n"
        "def get_inputs(): return [torch.ones(2)]\n"
    )
    assert guards_of(inspect_source(body.format("self.helper(x)"))) == {"__class__.__qualname__": "Model"}
    assert guards_of(inspect_source(body.format("x * 2"))) == {}


def test_an_attribute_that_is_not_there_cannot_be_guarded(inspect_source: Inspect):
    inspection = inspect_source(
        "class Model(nn.Module):\n"
        "    def forward(self, x): return x * self.scale if hasattr(self, 'scale') else x + 1\n"
        "def get_inputs(): return [torch.ones(2)]\n"
    )
    assert inspection.graph is None
    assert "reads self.scale, an attribute that is not there" in inspection.findings[0].message
