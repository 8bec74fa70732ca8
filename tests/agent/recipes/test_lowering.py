"""Lowered programs compute what the modules compute, read with the worker's own trace."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cutesmith_agent.recipes import Target, propose
from cutesmith_agent.recipes.lowering import lower
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Inspection, Task

HERE = Path(__file__).parent
MODULES = HERE / "modules.py"


def _load(path: Path):
    spec = importlib.util.spec_from_file_location(f"recipe_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILES = tuple(HERE / f"{name}.py" for name in ("modules", "reduced_modules", "window_modules", "product_modules"))
LOADED = {file: _load(file) for file in FILES}
modules = LOADED[MODULES]
machine = _load(HERE / "ir_machine.py")
FILE_OF = {
    name: file
    for file, loaded in LOADED.items()
    for name, value in vars(loaded).items()
    if isinstance(value, type) and value.__module__ == loaded.__name__
}
COMPILED = ("BatchStatistics", "ChannelLayerNorm", "MiddleMaximum", "BothSums", "HalfChannels")  # others run, emulated
COVERED = [name for name in FILE_OF if name not in modules.REFUSED]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker(Path(sys.executable))
    yield worker
    worker.close()


class Inspected(dict[str, Inspection]):
    """Each module's inspection, made when it is first asked for."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self.worker = worker

    def __missing__(self, name: str) -> Inspection:
        self[name] = self.worker.inspect(Task(str(FILE_OF[name]), name))
        return self[name]


@pytest.fixture(scope="module")
def inspected(worker: Worker) -> Inspected:
    return Inspected(worker)


def _tensors(inspection: Inspection, module: torch.nn.Module, inputs: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    assert inspection.graph is not None
    state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    tensors = {}
    for i in inspection.graph.inputs:
        path = re.sub(r"\[(\w+)\]", r".\1", i.path or "")  # layers[0].weight, as the state's names have it
        tensors[i.name] = inputs[i.position] if i.position is not None else state[path].detach()
    return tensors


@pytest.mark.parametrize("name", COVERED)
def test_program_computes_the_module(name: str, inspected: dict[str, Inspection]) -> None:
    inspection = inspected[name]
    assert inspection.graph is not None, inspection.findings
    loaded = LOADED[FILE_OF[name]]
    with torch.no_grad():
        module = getattr(loaded, name)().eval()
    inputs = loaded.inputs_of(name)
    with torch.no_grad():
        expected = (
            module(*[x.double() if x.is_floating_point() else x for x in inputs])
            if not list(module.state_dict())
            else module(*inputs)
        )
    expected = expected if isinstance(expected, tuple) else (expected,)
    results = machine.run(lower(inspection.graph), _tensors(inspection, module, inputs))
    for result, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(result, wanted.double(), rtol=1e-5, atol=1e-6, equal_nan=False)


@pytest.mark.parametrize("name", [name for name in COVERED if FILE_OF[name] == MODULES or name in COMPILED])
def test_first_draft_compiles(name: str, inspected: dict[str, Inspection], worker: Worker, tmp_path: Path) -> None:
    file = FILE_OF[name]
    proposal = propose(inspected[name], Target(name, file, "sm_90a"))
    assert proposal.drafts, proposal.findings
    draft = proposal.drafts[0]
    candidate = tmp_path / f"{name.lower()}_cute.py"
    candidate.write_text(draft.source)
    compilation = worker.compile(Task(str(file), name), candidate, ("sm_90a",))
    assert compilation.ok, compilation.findings
    assert all(r.spill_bytes == 0 for r in compilation.resources), compilation.resources


@pytest.mark.parametrize(("name", "op"), [("Convolution", "aten.convolution"), ("Sorted", "aten.sort")])
def test_the_op_that_stops_the_recipes_is_named(name: str, op: str, inspected: dict[str, Inspection]) -> None:
    proposal = propose(inspected[name], Target(name, MODULES, "sm_90a"))
    assert not proposal.drafts
    assert op in proposal.findings[0].message
    assert proposal.findings[0].line is not None


@pytest.mark.parametrize("name", ["Single", "SingleColumn"])
def test_single_elements_get_a_clear_answer(name: str, inspected: dict[str, Inspection]) -> None:
    proposal = propose(inspected[name], Target(name, MODULES, "sm_90a"))
    assert not proposal.drafts
    assert "single element" in proposal.findings[0].message


def test_every_schedule_is_another_file(inspected: dict[str, Inspection]) -> None:
    for name in ("Activations", "SoftmaxBetween", "Maximum", "LongSoftmax", "WholeLoss"):
        drafts = propose(inspected[name], Target(name, MODULES, "sm_90a")).drafts
        assert 2 <= len(drafts) <= 10
        assert len({d.source for d in drafts}) == len(drafts)
        choices = ("preload", "by_priority")  # of code, not of a constant
        schedules = [(d, key, value) for d in drafts for key, value in d.schedule.items() if key not in choices]
        assert all(f"{key.upper()} = {value} " in d.source for d, key, value in schedules)
