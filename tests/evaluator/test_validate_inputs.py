"""Inputs that candidates are checked on: distributions in place, other sizes, slices, and which of them are tried."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.checks_case import Case
from cutesmith_evaluator.worker.inputs import DISTRIBUTIONS, cut, odd_sizes, redraw, resized, tensors, total_bytes
from cutesmith_evaluator.worker.inputs_plan import Plan, groups_of, other_cases, own_cases
from cutesmith_evaluator.worker.reference import load_reference
from planted_candidates import QUALNAME, TASK, write_task

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_are_what_they_are_called(name: str, dtype: torch.dtype):
    tensor = torch.empty(200, 64, dtype=dtype)
    assert redraw((tensor, 3.0, "mode"), name, seed=0)
    values = tensor.float()
    finite = values[values.isfinite()]
    assert (tensor.numel() == finite.numel()) == (name not in ("NaN sprinkled", "±Inf sprinkled"))
    spread = {
        "normal": 0.9 < finite.std() < 1.1,
        "uniform [0, 1)": finite.min() >= 0 and finite.max() <= 1 and 0.4 < finite.mean() < 0.6,
        "wide range": finite.abs().max() / finite.abs().min() > 2**14 and 0.4 < (finite > 0).float().mean() < 0.6,
        "all equal": finite.unique().numel() == 1,
        "large (30 × normal)": 25 < finite.std() < 35,
        "NaN sprinkled": values.isnan().any() and not values.isinf().any(),
        "±Inf sprinkled": (values == torch.inf).any() and (values == -torch.inf).any() and not values.isnan().any(),
    }
    assert spread[name]


@given(st.integers(1, 40), st.sampled_from(["NaN sprinkled", "±Inf sprinkled"]), st.integers(0, 100))
def test_even_a_tiny_input_gets_a_special_value(size: int, name: str, seed: int):
    tensor = torch.empty(size)
    redraw((tensor,), name, seed)
    assert not tensor.isfinite().all()


def test_redrawing_depends_on_the_seed_alone_and_keeps_memory():
    one, other = torch.empty(50), torch.empty(50)
    address = one.data_ptr()
    redraw((one,), "normal", 4)
    redraw((other,), "normal", 4)
    assert torch.equal(one, other)
    redraw((one,), "normal", 5)
    assert not torch.equal(one, other)
    assert one.data_ptr() == address


def test_integers_masks_and_expanded_memory_stay_valid():
    index, mask, row = torch.arange(6), torch.ones(6, dtype=torch.bool), torch.zeros(1, 8).expand(6, 8)
    assert redraw((index, [mask], {"row": row}), "normal", 0)
    assert torch.equal(index, torch.arange(6))
    assert mask.all()
    assert row.stride() == (0, 1)
    assert torch.equal(row[0], row[5])
    assert row.abs().sum() > 0
    assert not redraw((index, mask), "normal", 0)
    assert total_bytes((row,)) == 32


def test_strided_inputs_keep_their_strides():
    base = torch.zeros(8, 10)
    view = base[:, ::2]
    redraw((view,), "large (30 × normal)", 0)
    assert view.stride() == (10, 2)
    assert (base[:, 1::2] == 0).all()
    assert (view != 0).any()


@given(st.integers(1, 9), st.integers(1, 30), st.integers(0, 50))
def test_resized_inputs_repeat_the_tasks_own_values(length: int, size: int, start: int):
    labels, x = torch.arange(length) % 3, torch.arange(length * 4.0).reshape(length, 4)
    new_x, weight, new_labels = resized((x, 2.5, labels), ((0, 0), (2, 0)), size, start)
    assert isinstance(new_x, torch.Tensor)
    assert isinstance(new_labels, torch.Tensor)
    assert weight == 2.5
    assert new_x.shape == (size, 4)
    places = (torch.arange(size) + start) % length
    assert torch.equal(new_x, x[places])
    assert torch.equal(new_labels, labels[places])


def test_resized_inputs_keep_the_memory_format():
    image = torch.zeros(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    (other,) = resized((image,), ((0, 0),), 5)
    assert isinstance(other, torch.Tensor)
    assert other.is_contiguous(memory_format=torch.channels_last)


@given(st.integers(1, 1 << 20))
def test_odd_sizes_are_odd_new_and_small(size: int):
    sizes = odd_sizes(size)
    assert sizes
    assert size not in sizes
    assert all(each > 0 and each % 2 for each in sizes)
    assert max(sizes) <= 4099
    assert len(set(sizes)) == len(sizes)


def test_cut_takes_views_of_the_named_inputs_only():
    x, weight = torch.zeros(10, 2), torch.zeros(10)
    part, same = cut((x, weight), (0,), 4, 7)
    assert isinstance(part, torch.Tensor)
    assert part.shape == (3, 2)
    assert part.data_ptr() == x[4].data_ptr()
    assert same is weight


def test_groups_follow_the_first_tensor():
    x, weight, scalar, labels = torch.zeros(16, 8), torch.zeros(8), 2, torch.zeros(16)
    assert groups_of((x, weight, scalar, labels)) == (((0, 0), (3, 0)), ((0, 1), (1, 0)))
    assert groups_of((scalar,)) == ()


def labels_of(task: Path, plan: Plan) -> list[str]:
    reference = load_reference(Task(str(task), QUALNAME))
    module, own = reference.build("cpu"), reference.inputs(0, "cpu")
    cases = (*own_cases(reference, own, plan), *other_cases(module, own, plan))
    return [case.label if isinstance(case, Case) else case for case in cases]


def test_every_distribution_and_size_is_tried(tmp_path: Path):
    labels = labels_of(write_task(tmp_path), Plan())
    assert labels[:2] == ["the task's inputs, seed 0", "the task's inputs, seed 1"]
    assert [label for label in labels if label.endswith(" inputs")] == [f"{name} inputs" for name in DISTRIBUTIONS]
    assert "size 3 in dimension 0 of input 0" in labels
    assert "size 41 in dimension 1 of input 0" in labels


def test_the_graphs_dimensions_are_resized_where_they_are_known(tmp_path: Path):
    labels = labels_of(write_task(tmp_path), Plan(groups=(((0, 0),),)))
    assert any("dimension 0" in label for label in labels)
    assert not any("dimension 1" in label for label in labels)


def test_integer_inputs_are_not_redrawn(tmp_path: Path):
    source = TASK.replace("torch.randn(64, 40)", "torch.randint(0, 9, (64, 40))")
    labels = labels_of(write_task(tmp_path, source), Plan())
    assert labels[-1] == "no other distributions: no input is floating"


def test_own_inputs_are_fresh_for_each_seed(tmp_path: Path):
    reference = load_reference(Task(str(write_task(tmp_path)), QUALNAME))
    own = reference.inputs(0, "cpu")
    first, second = own_cases(reference, own, Plan())
    (one,), (other,) = tensors(first.inputs), tensors(second.inputs)
    assert one.data_ptr() != other.data_ptr()
    assert not torch.equal(one, other)
