"""Runs the host code of a compiled function here: what it asks of CUDA is answered by the emulated device.

The host code is the candidate's own: it computes the grid, the block, the shared memory and the kernels' arguments.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cutesmith_evaluator.emulator.device import Device, LoadedModule
from cutesmith_evaluator.emulator.faults import EmulationError, UnsupportedError
from cutesmith_evaluator.emulator.launch import Launch, Triple
from cutesmith_evaluator.emulator.packing import Value, entry_of
from cutesmith_evaluator.emulator.properties import Properties
from cutesmith_evaluator.emulator.ptx import Kernel
from cutesmith_evaluator.emulator.tensormaps import Encoding

I32, I64, PTR = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
_FAILED = 1  # any CUDA error: the exception is kept and raised when the host code has returned
_CLUSTER_DIMENSION = 4  # cudaLaunchAttributeID
_ATTRIBUTE_BYTES = 72  # of one cudaLaunchAttribute


class Engine(Protocol):
    """MLIR's ExecutionEngine, as far as it is needed."""

    def raw_register_runtime(self, name: str, callback: Any) -> None: ...
    def raw_lookup(self, name: str) -> int: ...


class HostFunction:
    """The host code of one compile. A call launches its kernels on the device and returns when they are done."""

    def __init__(self, engine: Engine, host: str, ptx: str, device: Device, properties: Properties) -> None:
        """`host`: the module that `engine` runs, printed. Raises UnsupportedError."""
        self._engine, self._device, self._properties = engine, device, properties
        self._module: LoadedModule = device.load(ptx)
        self._kernels = list(self._module.module.kernels)  # a kernel's handle is its place here, from 1
        self._entry, self.shapes = entry_of(host)
        self._error: BaseException | None = None
        self._callbacks = self._register()
        library = (PTR * 1)()
        self._call("cuda_init", [bytearray(struct.pack("<Q", ctypes.addressof(library)))])
        self._call("cuda_load", [bytearray(struct.pack("<Q", ctypes.addressof(library)))])
        self._library = library

    def __call__(self, arguments: Sequence[Sequence[Value]]) -> None:
        """`arguments`: the numbers of each: pointer, dynamic extents, dynamic strides. Raises EmulationError."""
        packed = [shape.packed(values) for shape, values in zip(self.shapes, arguments, strict=True)]
        self._call(self._entry, packed)

    def call_packed(self, addresses: Sequence[int]) -> None:
        """`addresses`: of the arguments as the host code takes them. Raises EmulationError."""
        if len(addresses) != len(self.shapes):
            words = f"the host code takes {len(self.shapes)} arguments where {len(addresses)} are known"
            raise UnsupportedError(f"{words}: such arguments are not emulated yet")
        self._call_at(self._entry, addresses)

    def _call(self, name: str, arguments: list[bytearray]) -> None:
        buffers = [(ctypes.c_char * len(each)).from_buffer(each) for each in arguments]
        self._call_at(name, [ctypes.addressof(buffer) for buffer in buffers])

    def _call_at(self, name: str, addresses: Sequence[int]) -> None:
        result = I32(0)
        slots = [*addresses, ctypes.addressof(result)]
        pointers = (PTR * len(slots))(*slots)
        self._error = None
        ctypes.CFUNCTYPE(None, PTR)(self._engine.raw_lookup(name))(ctypes.addressof(pointers))
        if self._error is not None:
            raise self._error
        if result.value:
            raise EmulationError("launch-error", f"the host code ends with CUDA error {result.value}")

    def _register(self) -> list[Any]:
        """Gives the engine what the host code calls; the callbacks live as long as this object."""
        kept = []
        for name, (arguments, function) in self._hooks().items():
            callback = ctypes.CFUNCTYPE(I32, *arguments)(self._guarded(function))
            self._engine.raw_register_runtime(name, ctypes.cast(callback, PTR))
            kept.append(callback)
        return kept

    def _guarded(self, function: Callable[..., None]) -> Callable[..., int]:
        """An exception must not cross the host code: it becomes an error code, and is raised later."""

        def run(*arguments: Any) -> int:
            try:
                function(*arguments)
            except BaseException as error:  # noqa: BLE001 - none may cross into the host code
                self._error = self._error or error
                return _FAILED
            return 0

        return run

    def _hooks(self) -> dict[str, tuple[list[Any], Callable[..., None]]]:
        ignore: Callable[..., None] = lambda *_: None  # noqa: E731
        occupancy = "_cudaOccupancyMaxActiveBlocksPerMultiprocessor"
        return {
            "_cudaGetDevice": ([PTR], lambda where: _write(where, I32, 0)),
            "_cudaDeviceGetAttribute": ([PTR, I32, I32], self._device_attribute),
            "_cudaLibraryLoadData": ([PTR, PTR, PTR, PTR, I32, PTR, PTR, I32], lambda where, *_: _write(where, PTR, 1)),
            "_cudaLibraryGetKernel": ([PTR, PTR, PTR], self._find_kernel),
            "_cuKernelGetAttribute": ([PTR, I32, PTR, I32], self._kernel_attribute),
            "_cudaFuncSetAttribute": ([PTR, I32, I32], ignore),
            "_cudaKernelSetAttributeForDevice": ([PTR, I32, I32, I32], ignore),
            "_cudaLaunchKernel": ([PTR, I32, I32, I32, I32, I32, I32, PTR, I64, PTR], self._launch_plain),
            "_cudaLaunchKernelEx": ([PTR, PTR, PTR], self._launch),
            "_cuTensorMapEncodeTiled": ([PTR, I32, I32, PTR, PTR, PTR, PTR, PTR, I32, I32, I32, I32], _encode_map),
            "cuda_dialect_assert_success": ([I32], ignore),
            occupancy: ([PTR, PTR, I32, I64], self._occupancy),
        }

    def _device_attribute(self, where: int, attribute: int, _: int) -> None:
        value = self._properties.attribute(attribute)
        if value is None:
            raise UnsupportedError(f"the host code asks for device attribute {attribute}, which is not emulated yet")
        _write(where, I32, value)

    def _find_kernel(self, where: int, _: int, name: int) -> None:
        wanted = ctypes.string_at(name).decode()
        if wanted not in self._kernels:
            raise UnsupportedError(f"the PTX has no kernel {wanted}", wanted)
        _write(where, PTR, self._kernels.index(wanted) + 1)

    def _kernel_attribute(self, where: int, attribute: int, kernel: int, _: int) -> None:
        """CUfunction_attribute: 0 threads per block, 1 static shared memory; others are 0."""
        shared = self._device.program(self._module, self._kernels[kernel - 1]).shared_bytes
        _write(where, I32, {0: 1024, 1: shared}.get(attribute, 0))

    def _occupancy(self, where: int, kernel: int, threads: int, shared: int) -> None:
        static = self._device.program(self._module, self._kernels[kernel - 1]).shared_bytes
        _write(where, I32, self._properties.resident_blocks(threads, static + shared))

    def _launch_plain(self, kernel: int, *rest: int) -> None:
        gx, gy, gz, bx, by, bz, arguments, shared, _ = rest
        self._run(kernel, (gx, gy, gz), (bx, by, bz), shared, arguments)

    def _launch(self, config: int, kernel: int, arguments: int) -> None:
        gx, gy, gz, bx, by, bz, shared, _, attributes, count = struct.unpack("<6IQQQI", ctypes.string_at(config, 52))
        cluster = (1, 1, 1)
        for number in range(count):
            kind = ctypes.string_at(attributes + number * _ATTRIBUTE_BYTES, 20)
            identity, _, x, y, z = struct.unpack("<IIIII", kind)
            cluster = (x, y, z) if identity == _CLUSTER_DIMENSION else cluster
        self._run(kernel, (gx, gy, gz), (bx, by, bz), shared, arguments, cluster)

    def _run(
        self, handle: int, grid: Triple, block: Triple, shared: int, arguments: int, cluster: Triple = (1, 1, 1)
    ) -> None:
        name = self._kernels[handle - 1]
        data = _argument_bytes(self._module.module.kernels[name], arguments)
        limits = (self._properties.shared_per_block, cluster, self._properties.blocks_per_cluster)
        config = Launch(grid, block, shared, data, *limits)
        self._device.launch(self._module, name, config)


def _argument_bytes(kernel: Kernel, arguments: int) -> bytes:
    """The parameters side by side, from CUDA's array of pointers to them."""
    last = kernel.parameters[-1] if kernel.parameters else None
    data = bytearray(last.offset + last.size if last else 0)
    pointers = ctypes.cast(arguments, ctypes.POINTER(PTR))
    for number, parameter in enumerate(kernel.parameters):
        start = parameter.offset
        data[start : start + parameter.size] = ctypes.string_at(pointers[number], parameter.size)
    return bytes(data)


def _encode_map(where: int, kind: int, rank: int, address: int, *rest: int) -> None:
    """cuTensorMapEncodeTiled"""
    extents, strides, box, steps, interleave, swizzle, _, fill = rest

    def numbers(place: int, count: int, form: str) -> tuple[int, ...]:
        return struct.unpack(f"<{count}{form}", ctypes.string_at(place, struct.calcsize(f"<{count}{form}")))

    sizes = (numbers(extents, rank, "Q"), numbers(strides, rank - 1, "Q"), numbers(box, rank, "I"))
    encoding = Encoding(kind, address or 0, *sizes, numbers(steps, rank, "I"), interleave, swizzle, fill)
    data = encoding.bytes()
    ctypes.memmove(where, data, len(data))


def _write(where: int, kind: Any, value: int) -> None:
    ctypes.cast(where, ctypes.POINTER(kind))[0] = value
