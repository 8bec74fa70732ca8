"""Tensors that say they are on cuda:0 and lie in the CPU's memory: ops on them, and when their memory is allocated."""

from __future__ import annotations

import pytest
import torch

from cutesmith_evaluator.emulator.memory import GlobalMemory
from cutesmith_evaluator.worker.cudaless import cuda_without_build
from cutesmith_evaluator.worker.emulated_allocations import Allocations
from cutesmith_evaluator.worker.emulated_tensor import EmulatedMode, EmulatedTensor


@pytest.fixture
def memory() -> GlobalMemory:
    return GlobalMemory()


@pytest.fixture
def allocations(memory: GlobalMemory) -> Allocations:
    return Allocations(memory)


def test_they_answer_as_tensors_on_a_gpu_do(allocations: Allocations) -> None:
    host = torch.arange(12.0).view(3, 4).t()
    x = EmulatedTensor(host, allocations)
    assert (x.is_cuda, x.device, x.dtype) == (True, torch.device("cuda", 0), torch.float32)
    assert (x.shape, x.stride(), x.is_contiguous()) == (host.shape, host.stride(), False)
    assert x.data_ptr() == host.data_ptr()


def test_ops_run_on_the_same_memory(allocations: Allocations) -> None:
    host = torch.arange(12.0).view(3, 4)
    x = EmulatedTensor(host, allocations)
    with cuda_without_build():
        view, total = x[1:], x + x
    assert isinstance(view, EmulatedTensor)
    assert view.data_ptr() == host[1:].data_ptr()
    assert torch.equal(total.host, host + host)
    assert x.add_(1) is x
    assert torch.equal(host, torch.arange(1.0, 13.0).view(3, 4))


def test_both_devices_in_one_op_are_an_error(allocations: Allocations) -> None:
    with pytest.raises(RuntimeError, match="same device"):
        EmulatedTensor(torch.ones(3), allocations) + torch.ones(3)


def test_what_is_made_for_the_device_lies_on_it(allocations: Allocations) -> None:
    with EmulatedMode(allocations):
        fresh = torch.empty(8, device="cuda")
        zeros = torch.zeros(8, device=torch.device("cuda", 0))
        plain = torch.empty(8)
    like = torch.empty_like(fresh)
    assert [type(each) for each in (fresh, zeros, plain, like)] == [EmulatedTensor] * 2 + [torch.Tensor, EmulatedTensor]
    assert [allocations.unwritten(each.host) for each in (fresh, zeros, like)] == [32, 0, 32]
    fresh.fill_(1.0)
    assert allocations.unwritten(fresh.host) == 0


def test_memory_is_allocated_while_a_tensor_is_alive(memory: GlobalMemory, allocations: Allocations) -> None:
    host = torch.ones(16)
    x = EmulatedTensor(host, allocations)
    part = x.narrow(0, 4, 12)
    inside = host.data_ptr() + 63
    del x
    assert memory.at(inside) is not None, "a view keeps the storage"
    assert memory.at(inside + 1) is None
    del part
    assert memory.at(inside) is None
