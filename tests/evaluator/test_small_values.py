"""Values that are wrong where they are small beside others, or few: figures over the whole output do not show them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from cutesmith_evaluator.worker.numerics import Comparison, Measured, ulp


def measured(got: Tensor, eager: Tensor, reference: Tensor) -> Measured:
    comparison = Comparison(ulp(got.dtype))
    comparison.add(got, eager, None, reference)
    found = comparison.measured()
    assert found is not None
    return found


def rows_of_different_scales(seed: int = 0) -> Tensor:
    scales = torch.logspace(-6, 6, 64, dtype=torch.float64)[:, None]
    return scales * torch.randn(64, 128, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda exact: exact.bfloat16().float() * 1.04,
        lambda exact: torch.where(exact.abs() < 1e-3, 0.0, exact),
        lambda exact: torch.where(exact.abs() < 1e-3, exact * 2, exact),
        lambda exact: exact + 1e-6,
        lambda exact: exact.index_fill(0, torch.tensor([3]), 0.0),
    ],
    ids=["all", "flushed", "doubled", "added", "one row of 64"],
)
def test_small_values_must_be_right_too(spoil):
    reference = rows_of_different_scales()
    eager = reference.float()
    found = measured(spoil(eager), eager, reference)
    assert found.precision == "lowered"
    assert found.small is not None
    assert found.usage > 1
    assert "eager" in str(found.small)


def test_one_wrong_element_of_a_million_is_seen():
    reference = torch.randn(1000, 1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    eager = reference.float()
    got = eager.clone()
    place = int((reference.abs() - 1e-3).abs().argmin())
    got.view(-1)[place] *= 1.5
    found = measured(got, eager, reference)
    assert found.small is not None
    assert f"{float(reference.abs().view(-1)[place]):.0e}"[-3:] in str(found.small) or "0.00" in str(found.small)
    assert measured(eager, eager, reference).small is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([8, 100, 1000]), st.booleans())
def test_sums_in_another_order_are_no_alarm(seed: int, length: int, wide: bool):
    """Sums that cancel come out small, and as far off in eager as in any other honest kernel."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(200, length, generator=generator)
    if wide:
        x *= torch.exp2(40 * torch.rand(x.shape, generator=generator) - 20)
    one, other = x.sum(1), x.flip(1).cumsum(1)[:, -1]
    assert measured(other, one, x.double().sum(1)).small is None
    assert measured(one, other, x.double().sum(1)).small is None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([torch.float16, torch.bfloat16, torch.float32]))
def test_other_roundings_of_functions_are_no_alarm(seed: int, dtype: torch.dtype):
    x = (torch.randn(500, generator=torch.Generator().manual_seed(seed)) * 4).to(dtype)
    reference = x.double() * torch.sigmoid(x.double())
    eager, got = torch.nn.functional.silu(x), (x.float() / (1 + torch.exp2(-1.442695 * x.float()))).to(dtype)
    assert measured(got, eager, reference).small is None


def test_values_next_to_nothing_do_not_count():
    reference = torch.full((64,), 1e-35, dtype=torch.float64)
    reference[0] = 1.0
    eager = reference.float()
    assert measured(torch.where(eager < 1e-30, 0.0, eager), eager, reference).small is None
