"""Where the float64 reference runs when memory is short: in slices, on the host, or on smaller sizes only."""

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
from cutesmith_evaluator.worker.checks_case import TOO_BIG
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.numerics import chunks
from cutesmith_evaluator.worker.numerics_bits import fingerprint
from cutesmith_evaluator.worker.numerics_float64 import Float64, NoRoomError
from cutesmith_evaluator.worker.reference import load_reference
from planted_candidates import QUALNAME, TASK, write_candidate, write_task

CPU = torch.device("cpu")
OF_COLUMNS = TASK.replace("dim=-1", "dim=0")  # no row's result depends on that row alone
HONEST = "def forward(module, x):\n    return softmax((x * module.weight).t()).t().contiguous()\n"


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def where(function, rows: int = 64) -> str:
    """How a function of a matrix is run with memory for some of its rows."""
    x = torch.randn(rows, 8, generator=torch.Generator().manual_seed(0))
    module = Function(function)
    float64 = Float64(module, CPU, memory=6 * 8 * 2 * 8 * 10, host=1 << 30)
    outputs = [module(x)]
    pieces = list(float64.slices((x,), outputs))
    whole = torch.cat([values[0] for _, values in pieces])
    torch.testing.assert_close(whole, function(x.double()))
    return str(float64.where((x,)))


@pytest.mark.parametrize(
    "function", [torch.tanh, lambda x: x.softmax(1), lambda x: x @ torch.ones(8, 3, dtype=x.dtype), lambda x: x[:, 1:]]
)
def test_what_goes_row_by_row_is_sliced(function):
    assert "in slices of" in where(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.softmax(0),
        lambda x: x.cumsum(0),
        lambda x: x.flip(0),
        lambda x: x.roll(8, 0),
        lambda x: x.roll(12, 0),
        lambda x: x - x[-1],
        lambda x: x * torch.arange(len(x))[:, None],
        lambda x: torch.where(torch.arange(len(x))[:, None] % 2 == 0, x, -x),
        lambda x: x.unflatten(0, (-1, 2)).flip(1).flatten(0, 1) if len(x) % 2 == 0 else x,
    ],
)
def test_rows_that_know_of_one_another_or_of_their_place_are_not_sliced(function):
    assert "on the host" in where(function)


def test_without_room_anywhere_nothing_is_run():
    module, x = Function(lambda x: x.softmax(0)), torch.randn(64, 8)
    float64 = Float64(module, CPU, memory=1000, host=1000)
    with pytest.raises(NoRoomError):
        list(float64.slices((x,), [module(x)]))
    assert not float64.has_room((x,))
    assert float64.has_room((x[:2],))
    assert len(list(float64.slices((x[:1],), [module(x[:1])]))) == 1


def check(folder: Path, task: str, forward: str, *, host: int | None = None, quick: bool = False) -> Outcome:
    reference = load_reference(Task(str(write_task(folder, task)), QUALNAME))
    candidate = load_candidate(write_candidate(folder, forward, "cpu"), reference)
    return run_checks(reference, candidate, CPU, Plan(quick), lambda _: None, memory=50_000, host=host)


def test_what_fits_nowhere_is_compared_with_eager_and_measured_on_smaller_sizes(tmp_path: Path):
    outcome = check(tmp_path, OF_COLUMNS, HONEST, host=50_000)
    assert outcome.findings == []
    assert any("none at the task's own sizes" in label for label in outcome.checks), outcome.checks
    assert outcome.precision == "kept"
    assert outcome.worst is not None
    assert "size" in outcome.worst_label or outcome.worst_label.endswith("inputs with other parameters and buffers")
    assert "the task's inputs, seed 0" not in outcome.by_check


def test_wrong_values_are_found_there_too(tmp_path: Path):
    outcome = check(tmp_path, OF_COLUMNS, HONEST.replace(".contiguous()", ".contiguous().mul_(1.5)"), host=50_000)
    assert {finding.kind for finding in outcome.findings} == {"wrong-values"}


def test_lowered_precision_is_found_on_the_smaller_sizes(tmp_path: Path):
    half = HONEST.replace("x * module.weight", "(x * module.weight).half().float()")
    assert check(tmp_path, OF_COLUMNS, half, host=50_000).precision == "lowered"


def test_without_any_measurement_no_precision_is_claimed(tmp_path: Path):
    """A candidate for the task's own sizes alone."""
    fixed = HONEST + "\n\ndef supports(module, x):\n    return explain(module, x) is None and x.shape[0] == 64\n"
    outcome = check(tmp_path, OF_COLUMNS, fixed, host=50_000)
    assert [finding.kind for finding in outcome.findings] == [TOO_BIG]
    assert "fits neither the device nor the host" in outcome.findings[0].message


@settings(deadline=None)
@given(st.data())
def test_chunks_of_strided_tensors_are_their_elements_in_logical_order(data: st.DataObject):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    order = data.draw(st.permutations(range(len(shape))))
    size = data.draw(st.integers(1, 40))
    tensor = torch.randn([shape[place] for place in order]).permute([order.index(place) for place in range(len(shape))])
    plain = tensor.contiguous()
    pieces = list(chunks(tensor, plain, size=size))
    assert torch.equal(torch.cat([piece for _, (piece, _) in pieces]), plain.flatten())
    assert torch.equal(torch.cat([piece for _, (_, piece) in pieces]), plain.flatten())
    assert [start for start, _ in pieces] == [
        sum(len(p[0]) for _, p in pieces[:number]) for number in range(len(pieces))
    ]
    assert fingerprint(tensor) == fingerprint(plain)
