"""Tensors that say they are on device cuda:0 and lie in the CPU's memory, and the ops on them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from cutesmith_evaluator.worker.emulated_allocations import Allocations

DEVICE = torch.device("cuda", 0)
_ALIGNMENT = 256  # bytes, of what CUDA allocates
_DLPACK_CUDA = 2  # kDLCUDA
_DLPACK_DEVICE = 8  # bytes from the start of a DLTensor to its device's type
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_CPU = torch.device("cpu")
_UNWRITTEN = (
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.new_empty.default,
    torch.ops.aten.new_empty_strided.default,
)


class EmulatedTensor(Tensor):
    """`host`: the tensor in the CPU's memory, of the same shape, strides and dtype."""

    host: Tensor
    allocations: Allocations

    @staticmethod
    def __new__(
        cls: type[EmulatedTensor], host: Tensor, allocations: Allocations, *, initialised: bool = True
    ) -> EmulatedTensor:
        made = Tensor._make_wrapper_subclass(
            cls,
            host.shape,
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            device=DEVICE,
            requires_grad=host.requires_grad,
        )
        made.host = host.detach()
        made.allocations = allocations
        allocations.hold(made, made.host, initialised=initialised)
        return made

    def __init__(self, host: Tensor, allocations: Allocations, *, initialised: bool = True) -> None:
        super().__init__()

    def data_ptr(self) -> int:
        return self.host.data_ptr()

    def record_stream(self, s: object) -> None:  # type: ignore[override]
        """Nothing to wait for: everything is done at once."""

    def __dlpack__(self, **_: object) -> Any:
        """Without a stream to wait for: everything is done at once. The capsule says that the memory is CUDA's."""
        self.allocations.exported.append(self)
        capsule = self.host.__dlpack__()
        tensor = _capsule_pointer(capsule, b"dltensor")
        ctypes.cast(tensor + _DLPACK_DEVICE, ctypes.POINTER(ctypes.c_int32))[0] = _DLPACK_CUDA
        return capsule

    def __dlpack_device__(self) -> Any:
        return (_DLPACK_CUDA, 0)

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"EmulatedTensor({self.host!r})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        allocations = next(tensor.allocations for tensor in _emulated((args, kwargs)))
        return _run(func, args, kwargs or {}, allocations)


def aligned(host: Tensor) -> Tensor:
    """The tensor where an allocation of CUDA could begin: the CPU's are at multiples of 64 bytes alone."""
    size = host.untyped_storage().nbytes()
    if not size or host.untyped_storage().data_ptr() % _ALIGNMENT == 0:
        return host
    room = bytearray(size + _ALIGNMENT)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(room)) % _ALIGNMENT
    flat = torch.frombuffer(memoryview(room)[start : start + size], dtype=host.dtype)
    made = flat.as_strided(host.shape, host.stride(), host.storage_offset())
    return made.copy_(host)


class EmulatedMode(TorchFunctionMode):
    """Inside, `torch.empty(..., device="cuda")` and its like make emulated tensors.

    A function mode, since a torch without CUDA refuses the device before it dispatches.
    """

    def __init__(self, allocations: Allocations) -> None:
        super().__init__()
        self._allocations = allocations

    def __torch_function__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if device is None or torch.device(device).type != "cuda":
            return func(*args, **kwargs)
        if next(_emulated((args, kwargs)), None) is not None:
            return func(*args, **{name: value for name, value in kwargs.items() if name != "device"})
        made = aligned(func(*args, **kwargs | {"device": _CPU}))
        return EmulatedTensor(made, self._allocations, initialised=func not in (torch.empty, torch.empty_strided))


def _emulated(values: object) -> Iterator[EmulatedTensor]:
    if isinstance(values, EmulatedTensor):
        yield values
    elif isinstance(values, dict):
        yield from _emulated(tuple(values.values()))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _emulated(value)


def _host(value: object) -> object:
    return value.host if isinstance(value, EmulatedTensor) else value


def _run(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], allocations: Allocations) -> Any:
    """The op on the CPU. What it writes in place counts as initialised from then on."""
    given = {id(tensor.host): tensor for tensor in _emulated((args, kwargs))}
    _require_device(func, args, kwargs)
    if not _is_view(func):
        for tensor in _emulated((args, kwargs)):
            allocations.require_whole(tensor.host)
    if "device" in kwargs:
        kwargs = kwargs | {"device": _CPU}
    result = func(*tree_map(_host, args), **tree_map(_host, kwargs))
    for tensor in _written(func, args):
        allocations.mark_initialised(tensor.host)
    initialised = func not in _UNWRITTEN

    def wrapped(value: object) -> object:
        if not isinstance(value, Tensor) or isinstance(value, EmulatedTensor):
            return value
        known = given.get(id(value))
        return known if known is not None else EmulatedTensor(value, allocations, initialised=initialised)

    with _like_the_viewed(func, (args, kwargs)):
        return tree_map(wrapped, result)


def _like_the_viewed(func: Any, values: object) -> AbstractContextManager[Any]:
    """In inference mode, views of tensors from outside are to be such tensors too: PyTorch wants to count their
    versions."""
    if not torch.is_inference_mode_enabled() or not _is_view(func):
        return nullcontext()
    return torch.inference_mode(any(tensor.is_inference() for tensor in _emulated(values)))


def _require_device(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """As on a GPU: tensors of both devices in one op are an error, but for single numbers and copies."""
    if "copy" in str(func):
        return
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor) and not isinstance(value, EmulatedTensor) and value.dim():
            raise RuntimeError("Expected all tensors to be on the same device, but found at least two, cuda:0 and cpu!")


def _is_view(func: Any) -> bool:
    """Whether the op reads no element: what it gives is the same memory, or new memory of the same shape."""
    returns = func._schema.returns
    return func in _UNWRITTEN or any(each.alias_info is not None and not each.alias_info.is_write for each in returns)


def _written(func: Any, args: tuple[Any, ...]) -> Iterator[EmulatedTensor]:
    for argument, value in zip(func._schema.arguments, args, strict=False):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from _emulated(value)
