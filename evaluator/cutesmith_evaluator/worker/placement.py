"""Puts tensors and modules on a device: real ones, and fake ones on a machine without that device."""

from __future__ import annotations

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor


def indexed(device: torch.device | str) -> torch.device:
    """The device with an index: fake tensors without a GPU know `cuda:0` but not `cuda`."""
    device = torch.device(device)
    return torch.device("cuda", 0) if device.type == "cuda" and device.index is None else device


def moved(value: object, device: torch.device | str) -> object:
    """`value` with every tensor in it detached and on `device`, at the same strides and offset."""
    if isinstance(value, torch.Tensor):
        return _moved_tensor(value.detach(), indexed(device))
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        items = [moved(item, device) for item in value]
        return items if type(value) is list else tuple(items)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    return value


def _moved_tensor(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    if tensor.device == device:
        return tensor
    copy = tensor.to(device)
    if copy.stride() == tensor.stride() and tensor.storage_offset() == 0:
        return copy
    length = tensor.untyped_storage().nbytes() // tensor.element_size()
    base = tensor.as_strided((length,), (1,), 0).to(device)
    return base.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def place(module: nn.Module, device: torch.device) -> nn.Module:
    """`module` with its parameters and buffers on `device`.

    `Module.to` cannot move fake parameters: it swaps them, which their fake mode's weak references forbid.
    """
    state = [*module.parameters(), *module.buffers()]
    if not any(isinstance(tensor, FakeTensor) for tensor in state):
        return module.to(device)
    parameters: dict[int, nn.Parameter] = {}  # tied weights stay tied
    buffers: dict[int, torch.Tensor] = {}
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                new = nn.Parameter(parameter.detach().to(device), parameter.requires_grad)
                part._parameters[name] = parameters.setdefault(id(parameter), new)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = buffers.setdefault(id(buffer), buffer.to(device))
    return module
