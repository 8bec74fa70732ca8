"""The user's file is imported as its project imports it, and again once it has changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.names import snake_case
from cutesmith_evaluator.types import Inspection, Task


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def scale_of(inspection: Inspection) -> object:
    """The number by which a module multiplies its argument."""
    assert inspection.findings == ()
    assert inspection.graph is not None
    (node,) = inspection.graph.nodes
    return node.args[1]


MODEL = "import torch\nfrom torch import nn\n{}\nclass Model(nn.Module):\n    def forward(self, x): return x * {}\n"
INPUTS = "def get_inputs(): return [torch.ones(2)]\n"


def test_packages_called_server_agent_and_evaluator(worker: Worker, tmp_path: Path):
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "server/__init__.py": "PORT = 80\n",
            "agent/__init__.py": "",
            "agent/plan.py": "from server import PORT\n",
            "evaluator/__init__.py": "from agent.plan import PORT\n",
            "evaluator/model.py": MODEL.format("from server import PORT as A\nfrom . import PORT as B", "(A + B)")
            + INPUTS,
        },
    )
    assert scale_of(worker.inspect(Task(str(tmp_path / "evaluator/model.py"), "Model"))) == 160


def test_the_projects_files_that_were_imported_are_told_kernels_aside(worker: Worker, tmp_path: Path):
    kernel = "".join(f"def {name}(*_): pass\n" for name in ("supports", "explain", "forward", "warm_up"))
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "names.py": "FACTOR = 5\n",
            "scales.py": "from names import FACTOR\n",
            "model_cute.py": kernel,
            "unused.py": "",
            "model.py": MODEL.format("from scales import FACTOR\nimport model_cute", "FACTOR") + INPUTS,
        },
    )
    found = worker.inspect(Task(str(tmp_path / "model.py"), "Model"))
    assert scale_of(found) == 5
    assert found.imported == (str(tmp_path / "names.py"), str(tmp_path / "scales.py"))


def test_whatever_a_parameter_is_called_its_path_leads_to_it(worker: Worker, tmp_path: Path):
    body = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        one = lambda: nn.Parameter(torch.ones(2))
        self.table = nn.ParameterDict({"0": one(), "in-put": one(), "plain": one()})
        self.rows = nn.ParameterList([one()])

    def forward(self, x):
        return x * self.table["0"] + self.table["in-put"] * self.table["plain"] + self.rows[0]
"""
    source = f"import torch\nfrom torch import nn\n{body}\n{INPUTS}"
    write(tmp_path, {"pyproject.toml": "", "odd.py": source})
    found = worker.inspect(Task(str(tmp_path / "odd.py"), "Model"))
    assert found.graph is not None
    paths = [each.path for each in found.graph.inputs if each.kind == "parameter"]
    assert "table.plain" in paths
    assert len(paths) == 4
    names: dict[str, Any] = {}
    exec(source, names)
    names["module"] = module = names["Model"]()
    assert {id(eval(f"module.{path}", names)) for path in paths} == {id(each) for each in module.parameters()}


def test_relative_imports_in_a_nested_package(worker: Worker, tmp_path: Path):
    write(
        tmp_path,
        {
            "src/zoo/__init__.py": "from .layers import norm\n",
            "src/zoo/types.py": "FACTOR = 3\n",
            "src/zoo/layers/__init__.py": "",
            "src/zoo/layers/norm.py": MODEL.format("from ..types import FACTOR", "FACTOR") + INPUTS,
        },
    )
    assert scale_of(worker.inspect(Task(str(tmp_path / "src/zoo/layers/norm.py"), "Model"))) == 3


def test_a_package_whose_modules_hide_the_librarys(worker: Worker, tmp_path: Path):
    """A package may hold types.py or logging.py; a script's folder comes first, as Python itself has it."""
    write(
        tmp_path,
        {
            "app/__init__.py": "",
            "app/types.py": "raise RuntimeError('not the library')\n",
            "app/logging.py": "raise RuntimeError('not the library')\n",
            "app/model.py": MODEL.format("import types, logging.config", "7") + INPUTS,
        },
    )
    assert scale_of(worker.inspect(Task(str(tmp_path / "app/model.py"), "Model"))) == 7


def test_scripts_and_their_neighbours(worker: Worker, tmp_path: Path):
    """Two folders with files of the same names do not see each other's."""
    for folder, value in (("one", 5), ("two", 6), ("three", 7)):
        write(
            tmp_path / folder,
            {
                "helpers.py": f"VALUE = {value}\n",
                "model.py": MODEL.format("from helpers import VALUE", "VALUE") + INPUTS,
            },
        )
    for folder, value in (("one", 5), ("two", 6), ("one", 5), ("three", 7)):
        assert scale_of(worker.inspect(Task(str(tmp_path / folder / "model.py"), "Model"))) == value


@pytest.mark.parametrize("name", ["my-model.py", "random.py", "types.py", "torch.py", "test_model.py", "1st.py"])
def test_awkward_file_names(worker: Worker, tmp_path: Path, name: str):
    write(tmp_path, {name: MODEL.format("import random", "random.Random(0).randint(4, 4)") + INPUTS})
    assert scale_of(worker.inspect(Task(str(tmp_path / name), "Model"))) == 4


def test_an_edit_is_seen_also_in_another_file_of_the_project(worker: Worker, tmp_path: Path):
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "zoo/__init__.py": "",
            "zoo/factors.py": "FACTOR = 3\n",
            "zoo/model.py": MODEL.format("from .factors import FACTOR", "FACTOR") + INPUTS,
        },
    )
    task = Task(str(tmp_path / "zoo/model.py"), "Model")
    assert scale_of(worker.inspect(task)) == 3
    write(tmp_path, {"zoo/factors.py": "FACTOR = 4\n"})
    assert scale_of(worker.inspect(task)) == 4
    write(tmp_path, {"zoo/model.py": MODEL.format("FACTOR = 9", "FACTOR") + INPUTS})
    assert scale_of(worker.inspect(task)) == 9
    write(tmp_path, {"zoo/model.py": "def broken(:\n"})
    assert worker.inspect(task).findings[0].kind == "syntax-error"
    write(tmp_path, {"zoo/model.py": MODEL.format("FACTOR = 2", "FACTOR") + INPUTS})
    assert scale_of(worker.inspect(task)) == 2


def test_nothing_is_written_beside_the_users_files(worker: Worker, tmp_path: Path):
    write(tmp_path, {"zoo/__init__.py": "", "zoo/model.py": MODEL.format("", "2") + INPUTS})
    before = sorted(tmp_path.rglob("*"))
    tmp_path.joinpath("zoo").chmod(0o555)
    try:
        assert scale_of(worker.inspect(Task(str(tmp_path / "zoo/model.py"), "Model"))) == 2
    finally:
        tmp_path.joinpath("zoo").chmod(0o755)
    assert sorted(tmp_path.rglob("*")) == before


def test_paths_are_relative_to_the_projects_root(worker: Worker, tmp_path: Path):
    write(
        tmp_path,
        {
            "pyproject.toml": "",
            "scale.txt": "8",
            "zoo/__init__.py": "",
            "zoo/model.py": MODEL.format("SCALE = int(open('scale.txt').read())", "SCALE") + INPUTS,
        },
    )
    assert scale_of(worker.inspect(Task(str(tmp_path / "zoo/model.py"), "Model"))) == 8


def test_the_functions_with_the_classs_name_come_first(worker: Worker, tmp_path: Path):
    write(
        tmp_path,
        {
            "model.py": MODEL.format("", "2")
            + "class RMSNorm(Model): ...\n"
            + "def get_inputs(): return [torch.ones(2)]\n"
            + "def get_rms_norm_inputs(): return [torch.ones(3, 3)]\n"
        },
    )
    shapes = {}
    for name in ("Model", "RMSNorm"):
        graph = worker.inspect(Task(str(tmp_path / "model.py"), name)).graph
        assert graph is not None
        shapes[name] = graph.inputs[0].spec.shape
    assert shapes == {"Model": (2,), "RMSNorm": (3, 3)}


def test_inputs_are_fresh_per_seed_and_weights_are_the_same(fixtures: Path):
    from cutesmith_evaluator.worker.reference import load_reference

    reference = load_reference(Task(str(fixtures / "modules.py"), "ConvBlock"))
    first, again, other = (reference.inputs(seed, "cpu")[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    one, two = reference.build("cpu"), reference.build("cpu")
    assert not one.training
    for name, value in one.state_dict().items():
        assert torch.equal(value, two.state_dict()[name])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NewGELU", "new_gelu"),
        ("RMSNorm", "rms_norm"),
        ("LlamaMLP", "llama_mlp"),
        ("Outer.Inner", "outer_inner"),
        ("Conv2dBlock", "conv2d_block"),
        ("L1Norm", "l1_norm"),
        ("Model", "model"),
        ("A_B", "a_b"),
    ],
)
def test_snake_case(name: str, expected: str):
    assert snake_case(name) == expected


def test_a_large_constructor_costs_no_memory(worker: Worker, tmp_path: Path):
    """Weights and inputs are fake: 40 GB of them are inspected at once."""
    write(
        tmp_path,
        {
            "model.py": "import torch\nfrom torch import nn\n"
            "class Model(nn.Module):\n"
            "    def __init__(self): super().__init__(); self.up = nn.Linear(100_000, 100_000)\n"
            "    def forward(self, x): return self.up(x)\n"
            "def get_inputs(): return [torch.randn(4, 100_000)]\n"
        },
    )
    graph = worker.inspect(Task(str(tmp_path / "model.py"), "Model"), deadline_s=30).graph
    assert graph is not None
    assert graph.bytes > 40e9


def test_a_constructor_that_reads_values_gets_real_ones(worker: Worker, tmp_path: Path):
    write(
        tmp_path,
        {
            "model.py": "import torch\nfrom torch import nn\n"
            "class Model(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.rates = [rate.item() for rate in torch.linspace(0, 1, 3)]\n"
            "        self.rate = self.rates[1]\n"
            "        self.weight = nn.Parameter(torch.ones(2))\n"
            "    def forward(self, x): return x * self.rate\n"
            "def get_inputs(): return [torch.linspace(0, torch.ones(3).sum().item(), 2)]\n"
        },
    )
    assert scale_of(worker.inspect(Task(str(tmp_path / "model.py"), "Model"))) == 0.5


CAPTURED = """\
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, width, *, dtype=torch.float32):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width, dtype=dtype))
    def forward(self, x, rows=None, shift=0.0):
        return x * self.scale + shift if rows is None else x[rows] * self.scale
"""


def captured(**parts: object) -> str:
    return json.dumps({"init": {"args": [{"value": 6}], "kwargs": {}}, "kwargs": {}, "dtype": None} | parts)


def tensor(shape: list[int], strides: list[int], dtype: str = "float32") -> dict[str, object]:
    return {"tensor": {"dtype": dtype, "shape": shape, "strides": strides}}


def test_a_captured_call_says_how_a_class_is_built_and_called(worker: Worker, tmp_path: Path):
    write(tmp_path, {"pyproject.toml": "", "model.py": CAPTURED})
    file = str(tmp_path / "model.py")
    transposed = worker.inspect(Task(file, "Model", captured(args=[tensor([4, 6], [1, 4])], dtype="bfloat16")))
    assert transposed.graph is not None, transposed.findings
    specs = {each.name: each.spec for each in transposed.graph.inputs}
    assert (specs["x"].shape, specs["x"].strides) == ((4, 6), (1, 4))
    assert {each.spec.dtype for each in transposed.graph.inputs if each.kind == "parameter"} == {"bfloat16"}
    init = {"args": [{"value": 3}], "kwargs": {"dtype": {"dtype": "float16"}}}
    indexed = worker.inspect(
        Task(
            file,
            "Model",
            captured(init=init, args=[tensor([5, 3], [3, 1])], kwargs={"rows": tensor([7], [1], "int64")}),
        )
    )
    assert indexed.graph is not None, indexed.findings
    assert [each.spec.shape for each in indexed.graph.inputs if each.kind == "argument"] == [(5, 3), (7,)]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"args": [{"opaque": "numpy.ndarray"}]}, "numpy.ndarray, which cannot be made again"),
        ({"args": [{"tensor": {"dtype": "float32", "shape": [2, 6], "strides": [6, 1]}}] * 4}, "gives 4 values"),
        ({"args": [], "kwargs": {"y": {"value": 1}}}, "missing a required argument: 'x'"),
        ({"args": [], "init": {"args": [], "kwargs": {}}}, "missing 1 required positional argument"),
    ],
)
def test_a_captured_call_that_does_not_fit_any_more_is_told(worker: Worker, tmp_path: Path, parts: dict, said: str):
    write(tmp_path, {"pyproject.toml": "", "model.py": CAPTURED})
    (finding,) = worker.inspect(Task(str(tmp_path / "model.py"), "Model", captured(**parts))).findings
    assert said in finding.message
