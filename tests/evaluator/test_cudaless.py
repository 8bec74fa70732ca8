"""Indexing as the mode for CPU builds writes it gives what PyTorch's own indexing gives."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from cutesmith_evaluator.worker.cudaless import assign, cuda_without_build, read

SIZES = (4, 3, 5)
PIECES = st.sampled_from([0, -1, 2, slice(None), slice(1, None), slice(None, -1), slice(0, 3, 2), slice(2, 1)])


@st.composite
def keys(draw: st.DrawFn) -> tuple[object, ...]:
    """Anything that indexes a tensor of SIZES: numbers, slices, new axes, an ellipsis, index tensors and masks."""
    count = draw(st.integers(0, len(SIZES)))
    items: list[object] = list(draw(st.lists(PIECES, min_size=count, max_size=count)))
    if items and draw(st.booleans()):
        place = draw(st.integers(0, count - 1))
        indices = draw(st.sampled_from([torch.tensor([0, 2, 1]), torch.tensor([[1], [0]]), [2, 0]]))
        items[place] = indices
    if count < len(SIZES) and draw(st.booleans()):
        items.insert(draw(st.integers(0, count)), Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return tuple(items)


def numbers() -> torch.Tensor:
    return torch.arange(60.0).view(SIZES)


@given(keys())
def test_reading(key: tuple[object, ...]):
    expected = numbers()[key]  # type: ignore[index]
    found = read(numbers(), key)
    assert found.shape == expected.shape
    assert torch.equal(found, expected)
    assert found.stride() == expected.stride() or found.numel() < 2


@given(keys(), st.booleans())
def test_writing(key: tuple[object, ...], from_tensor: bool):
    expected, found = numbers(), numbers()
    value = expected[key].mul(-1) if from_tensor else -7  # type: ignore[index]
    expected[key] = value  # type: ignore[index]
    assign(found, key, value)
    assert torch.equal(found, expected)


def test_masks():
    mask = numbers()[:, :, 0] > 20
    assert torch.equal(read(numbers(), (mask, 1)), numbers()[mask, 1])
    expected, found = numbers(), numbers()
    expected[mask] = 0.0
    assign(found, mask, 0.0)
    assert torch.equal(found, expected)


def test_what_a_cpu_build_refuses_is_traced():
    with torch.no_grad(), cuda_without_build(), FakeTensorMode():
        x = torch.randn(4, 6, device="cuda")
        y = x.t().contiguous()
        y[1:, ::2] = x.t()[1:, ::2] * 2
        y[0] = 1.0
        y.copy_(torch.ones(6, 4).cuda())
        with torch.device("cuda"):
            layer = torch.nn.Linear(4, 3)
        results = [x[..., None, 0], x[x[:, 0].argsort()], torch.ones(3).to("cuda"), layer(y), x.new_zeros(2)]
    assert {result.device for result in results} == {torch.device("cuda", 0)}
    assert [tuple(result.shape) for result in results] == [(4, 1), (4, 6), (3,), (6, 3), (2,)]
