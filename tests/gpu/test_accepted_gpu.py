"""An accepted module stays the module it was: other inputs, training, autocast, streams, graphs, torch.compile."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.client import Worker
from gpu_kernels import Kernel, accepted_kernel, assert_like_eager, flat, load
from suite import EXAMPLE_MODULES, Example

pytestmark = pytest.mark.gpu

SMALL = {
    "ROWS": "64",
    "FEATURES": "1024",
    "CLASSES": "1024",
    "BATCH": "2",
    "HEADS": "4",
    "LENGTH": "128",
    "HEAD_DIM": "64",
}


@pytest.fixture(scope="module", params=EXAMPLE_MODULES, ids=lambda example: example.stem)
def kernel(request: pytest.FixtureRequest, worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Kernel:
    example: Example = request.param
    return accepted_kernel(worker, example.case(example.stem, SMALL), tmp_path_factory.mktemp(example.stem))


def misaligned(tensor: torch.Tensor) -> torch.Tensor:
    """The same values in memory that starts one element off any vector's alignment."""
    moved = torch.empty(tensor.numel() + 1, dtype=tensor.dtype, device=tensor.device)[1:].view(tensor.shape)
    return moved.copy_(tensor)


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, every second element of a larger tensor."""
    return torch.stack((tensor, tensor), dim=-1)[..., 0]


def transposed(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.transpose(-1, -2).contiguous().transpose(-1, -2) if tensor.dim() > 1 else tensor


def requiring_grad(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor


def test_runs_on_its_own_inputs(kernel: Kernel) -> None:
    assert kernel.supports(*kernel.inputs)
    assert_like_eager(kernel, *kernel.inputs)


@pytest.mark.parametrize("layout", [misaligned, strided, transposed])
def test_other_layouts_give_eagers_result(kernel: Kernel, layout: Callable[[torch.Tensor], torch.Tensor]) -> None:
    inputs = tuple(layout(tensor) for tensor in kernel.inputs)
    kernel.supports(*inputs)
    assert_like_eager(kernel, *inputs)


def test_one_misaligned_input_gives_eagers_result(kernel: Kernel) -> None:
    for position, tensor in enumerate(kernel.inputs):
        inputs = (*kernel.inputs[:position], misaligned(tensor), *kernel.inputs[position + 1 :])
        kernel.supports(*inputs)
        assert_like_eager(kernel, *inputs)


@pytest.mark.parametrize("rows", [1, 3, 63])
def test_fewer_rows_give_eagers_result(kernel: Kernel, rows: int) -> None:
    if kernel.inputs[0].dim() == 2:
        inputs = tuple(tensor[:rows] if tensor.shape[0] == 64 else tensor for tensor in kernel.inputs)
    else:
        inputs = tuple(tensor[:1] if tensor.shape[0] == 2 else tensor for tensor in kernel.inputs)
    kernel.supports(*inputs)
    assert_like_eager(kernel, *inputs)


def test_no_rows_give_eagers_result(kernel: Kernel) -> None:
    batch = kernel.inputs[0].shape[0]
    inputs = tuple(tensor[:0] if tensor.shape[0] == batch else tensor for tensor in kernel.inputs)
    kernel.supports(*inputs)
    assert_like_eager(kernel, *inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_another_dtype_gives_eagers_result(kernel: Kernel, dtype: torch.dtype) -> None:
    inputs = tuple(tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in kernel.inputs)
    kernel.supports(*inputs)
    try:
        kernel.original(*inputs)
    except RuntimeError as refused:  # a module whose state has another dtype
        with pytest.raises(RuntimeError, match=re.escape(str(refused).splitlines()[0])):
            kernel.accepted(*inputs)
    else:
        assert_like_eager(kernel, *inputs)


def test_inputs_are_left_alone(kernel: Kernel) -> None:
    before = [tensor.clone() for tensor in kernel.inputs]
    with torch.no_grad():
        kernel.accepted(*kernel.inputs)
    assert all(torch.equal(tensor, kept) for tensor, kept in zip(kernel.inputs, before, strict=True))


def test_gradients_come_from_the_original_code(kernel: Kernel) -> None:
    inputs = tuple(
        tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor for tensor in kernel.inputs
    )
    assert not kernel.supports(*inputs)
    sum(output.float().sum() for output in flat(kernel.accepted(*inputs))).backward()
    assert inputs[0].grad is not None


def test_under_no_grad_inputs_that_require_grad_are_served(kernel: Kernel) -> None:
    inputs = tuple(
        tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor for tensor in kernel.inputs
    )
    with torch.no_grad():
        assert kernel.supports(*inputs)


def test_autocast_changes_nothing_about_the_result(kernel: Kernel) -> None:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert_like_eager(kernel, *kernel.inputs)


def test_the_kill_switch_refuses_the_kernel(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTESMITH_DISABLE", "1")
    assert kernel.module.__file__ is not None
    switched_off = load(Path(kernel.module.__file__), f"{kernel.module.__name__}_off")
    assert not switched_off.supports(kernel.accepted, *kernel.inputs)
    assert "CUTESMITH_DISABLE" in switched_off.explain(kernel.accepted, *kernel.inputs)


def test_cpu_tensors_take_the_original_code(kernel: Kernel) -> None:
    inputs = tuple(tensor.cpu() for tensor in kernel.inputs)
    assert not kernel.supports(*inputs)


def test_work_is_ordered_by_the_current_stream(kernel: Kernel) -> None:
    """Inputs are written on a side stream behind a long sleep: a launch on another stream would read them too early."""
    with torch.no_grad():
        expected = flat(kernel.original(*kernel.inputs))
        stale = tuple(torch.zeros_like(tensor) for tensor in kernel.inputs)
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(20_000_000)
            for tensor, value in zip(stale, kernel.inputs, strict=True):
                tensor.copy_(value)
            results = flat(kernel.accepted(*stale))
        torch.cuda.synchronize()
    for ours, eager in zip(results, expected, strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-5)


def test_a_cuda_graph_replays_the_kernel(kernel: Kernel) -> None:
    static = tuple(torch.zeros_like(tensor) for tensor in kernel.inputs)
    with torch.no_grad():
        kernel.accepted(*static)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = flat(kernel.accepted(*static))
        for tensor, value in zip(static, kernel.inputs, strict=True):
            tensor.copy_(value)
        graph.replay()
        expected = flat(kernel.original(*kernel.inputs))
    for ours, eager in zip(captured, expected, strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-5)


def test_torch_compile_keeps_one_graph_and_the_result(kernel: Kernel) -> None:
    torch.compiler.reset()
    kernel.module._DEVICES.clear()  # as where the first call is a compiled one
    with torch.no_grad():
        compiled = flat(torch.compile(kernel.accepted, fullgraph=True)(*kernel.inputs))
        expected = flat(kernel.accepted(*kernel.inputs))
    for ours, direct in zip(compiled, expected, strict=True):
        torch.testing.assert_close(ours, direct, rtol=0, atol=0)
