"""Other parameters and buffers: what is drawn for them, and what a check with them leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.checks_case import Result
from cutesmith_evaluator.worker.checks_compare import Comparer
from cutesmith_evaluator.worker.checks_conduct import conduct_of
from cutesmith_evaluator.worker.checks_redrawn import examine_redrawn, redrawn_case
from cutesmith_evaluator.worker.checks_run import Examiner
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.numerics_bits import equal_bits
from cutesmith_evaluator.worker.redrawing import read_state, redrawn_state, write_state
from cutesmith_evaluator.worker.reference import load_reference
from planted_candidates import (
    KERNELBENCH,
    QUALNAME,
    TASK,
    UNTRAINED,
    UNTRAINED_HONEST,
    write_candidate,
    write_task,
)
from planted_faults import FAULTS

CPU = torch.device("cpu")
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def holding(tensor: torch.Tensor, *, buffer: bool = False) -> nn.Module:
    module = nn.Module()
    if buffer:
        module.register_buffer("state", tensor)
    else:
        module.state = nn.Parameter(tensor)
    return module


def drawn_for(tensor: torch.Tensor, *, buffer: bool = False) -> torch.Tensor:
    return redrawn_state(holding(tensor, buffer=buffer), {"state"})["state"]


@settings(max_examples=200)
@given(
    st.lists(st.integers(1, 9), max_size=3).map(tuple),
    st.sampled_from([0.0, 1.0, -1.0, 0.25, 1e-6, 100.0]),
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_equal_values_become_different_ones(shape: tuple[int, ...], value: float, dtype: torch.dtype, buffer: bool):
    old = torch.full(shape, value, dtype=dtype)
    new = drawn_for(old, buffer=buffer)
    assert (new.shape, new.dtype) == (old.shape, dtype)
    assert new.isfinite().all()
    assert (new != old).any()
    assert new.numel() == 1 or new.unique().numel() > 1
    assert torch.equal(new, drawn_for(old, buffer=buffer))


@given(st.sampled_from(DTYPES), st.floats(0.01, 10), st.integers(0, 100))
def test_what_varies_keeps_its_scale(dtype: torch.dtype, spread: float, seed: int):
    old = torch.empty(40, 50, dtype=dtype).normal_(generator=torch.Generator().manual_seed(seed)).mul_(spread)
    new = drawn_for(old)
    assert float(new.float().std()) == pytest.approx(float(old.float().std()), rel=0.15)
    assert float(new.float().mean()) == pytest.approx(0, abs=0.15 * spread)


def test_products_with_a_matrix_of_zeros_stay_near_one():
    inputs = torch.empty(4096, 50).normal_(generator=torch.Generator().manual_seed(0))
    assert 0.5 < float((drawn_for(torch.zeros(64, 4096)) @ inputs).std()) < 2


@given(st.lists(st.floats(0, 100, width=32), min_size=1, max_size=30))
def test_variances_stay_positive(values: list[float]):
    new = drawn_for(torch.tensor(values), buffer=True)
    assert (new > 0).all()
    assert new.rsqrt().isfinite().all()


def test_infinities_stay_in_place():
    old = torch.zeros(5, 5).masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -torch.inf)
    new = drawn_for(old, buffer=True)
    assert torch.equal(new.isinf(), old.isinf())
    assert (new[new.isfinite()] > 0).all()


def test_integers_masks_and_empty_tensors_are_left_alone():
    for tensor in (torch.arange(4), torch.ones(3, dtype=torch.bool), torch.zeros(0, 3)):
        assert redrawn_state(holding(tensor, buffer=True), {"state"}) == {}


def test_values_are_written_into_the_modules_own_memory():
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.BatchNorm1d(3))
    module[1].weight = module[0].weight  # tied
    module.register_buffer("wide", torch.ones(1, 4).expand(5, 4))
    before = {name: (tensor.data_ptr(), tensor.stride()) for name, tensor in module.state_dict().items()}
    names = set(before)
    old, drawn = read_state(module, names), redrawn_state(module, names)
    assert set(drawn) == names - {"1.weight", "2.num_batches_tracked"}
    write_state(module, drawn)
    assert not any(equal_bits(value, read_state(module, names)[name]) for name, value in old.items())
    assert {name: (tensor.data_ptr(), tensor.stride()) for name, tensor in module.state_dict().items()} == before
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in module.parameters())
    write_state(module, old)
    assert all(equal_bits(value, read_state(module, names)[name]) for name, value in old.items())


class Checked:
    """A candidate examined with other state, and what that left of the module."""

    def __init__(self, folder: Path, forward: str, task: str = UNTRAINED) -> None:
        reference = load_reference(Task(str(write_task(folder, task)), QUALNAME))
        candidate = load_candidate(write_candidate(folder, forward, "cpu"), reference)
        self.module = reference.build(CPU)
        self.before = read_state(self.module, set(self.module.state_dict()))
        comparer = Comparer(self.module, CPU, None, str(candidate.path))
        conduct = conduct_of(candidate.path)
        examiner = Examiner(self.module, reference.file, candidate, CPU, comparer, conduct)
        self.inputs = reference.inputs(0, CPU)
        self.result: Result = examine_redrawn(examiner, redrawn_case(self.inputs))
        self.comparer = comparer

    @property
    def is_restored(self) -> bool:
        after = read_state(self.module, set(self.before))
        same = [equal_bits(value, after[name]) for name, value in self.before.items()]
        assert all(same) or not any(same)
        return all(same)

    def reference_agrees(self) -> bool:
        """The float64 reference is of the state that the module has now."""
        assert self.comparer.float64 is not None
        with torch.no_grad():
            eager = self.module(*self.inputs)
        ((_, (exact,)),) = self.comparer.float64.slices(self.inputs, [eager])
        return torch.allclose(exact, eager.double(), atol=1e-6)


def test_what_follows_is_run_with_the_new_state(tmp_path: Path):
    checked = Checked(tmp_path, UNTRAINED_HONEST)
    assert checked.result.findings == []
    assert not checked.is_restored
    assert checked.reference_agrees()


@pytest.mark.parametrize("fault", ["ignores_the_bias", "ignores_all_state", "raises"])
def test_the_constructors_state_returns_after_a_fault(tmp_path: Path, fault: str):
    if fault == "raises":
        with pytest.raises(Exception, match="no such tile"):
            Checked(tmp_path, FAULTS[fault].source)
        return
    checked = Checked(tmp_path, FAULTS[fault].source)
    assert {finding.kind for finding in checked.result.findings} == {"wrong-values"}
    assert checked.is_restored
    assert checked.reference_agrees()


def test_a_module_that_refuses_other_state_is_left_as_it_was(tmp_path: Path):
    picky = UNTRAINED.replace("        return torch", "        assert self.weight.min() == 1\n        return torch")
    checked = Checked(tmp_path, UNTRAINED_HONEST, picky)
    assert checked.result.note == "left out, the module itself fails there"
    assert checked.is_restored
    assert checked.reference_agrees()


def model_new(folder: Path, source: str) -> Outcome:
    reference = load_reference(Task(str(write_task(folder, UNTRAINED)), QUALNAME))
    candidate = folder / "model_new.py"
    candidate.write_text(source)
    return run_checks(reference, load_candidate(candidate, reference), CPU, Plan(), lambda _: None)


MODEL_NEW = KERNELBENCH.replace(
    "torch.rand(columns) + 0.5)",
    "torch.ones(columns))\n        self.bias = nn.Parameter(torch.zeros(columns))\n"
    '        self.register_buffer("variance", torch.ones(columns))',
)
RIGHT = MODEL_NEW.replace("x * self.weight", "(x * self.weight + self.bias) / self.variance.sqrt()")


def test_kernelbench_candidates_get_the_other_state_where_theirs_has_its_names(tmp_path: Path):
    outcome = model_new(tmp_path, RIGHT)
    assert outcome.findings == []
    assert "the task's inputs with other parameters and buffers" in outcome.checks
    wrong = model_new(tmp_path, RIGHT.replace(" + self.bias", ""))
    assert "model_new.py ignores or misreads bias." in wrong.findings[0].message


def test_kernelbench_candidates_with_state_of_their_own_are_not_asked(tmp_path: Path):
    outcome = model_new(tmp_path, RIGHT.replace("bias", "offset"))
    assert outcome.findings == []
    assert any(check.endswith("left out, they do not reach the candidate") for check in outcome.checks)


def test_a_module_without_state_has_no_such_check(tmp_path: Path):
    task = TASK.replace("x * self.weight", "x").replace(
        "nn.Parameter(torch.rand(columns) + 0.5)", "torch.ones(columns)"
    )
    reference = load_reference(Task(str(write_task(tmp_path, task)), QUALNAME))
    candidate = load_candidate(write_candidate(tmp_path, "def forward(module, x):\n    return softmax(x)\n", "cpu"))
    outcome = run_checks(reference, candidate, CPU, Plan(quick=True), lambda _: None)
    assert outcome.ok
    assert not any("other parameters" in check for check in outcome.checks)
