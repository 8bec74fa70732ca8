"""The CUDA driver through ctypes: loads PTX, launches it, reads back. No compiler, no torch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from corpus.entry import Array, Entry

_ERROR_LOG, _ERROR_LOG_BYTES = 5, 6  # CUjit_option
_DYNAMIC_SHARED = 8  # CUfunction_attribute
_CLUSTER_DIMENSION = 4  # CUlaunchAttributeID
_LOG_BYTES = 4096


class CudaError(Exception):
    """A call that failed. After most failures of a launch the context is of no more use."""


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("pad", ctypes.c_uint), ("value", ctypes.c_uint * 16)]


class _Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    ]


class Driver:
    """Device 0. `version`: of the driver's CUDA, "13.0"."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self._call("cuDeviceGetName", name, 100, device)
        self._call("cuDriverGetVersion", ctypes.byref(version))
        self.device = name.value.decode()
        self.version = f"{version.value // 1000}.{version.value % 1000 // 10}"

    def run(self, entry: Entry) -> list[Array]:
        """What the kernel leaves in each output. Raises CudaError."""
        module = self._load(entry.ptx)
        held = [self._upload(array) for array in (*entry.inputs, *entry.outputs)]
        self._launch(module, entry, held)
        self._call("cuCtxSynchronize")
        results = [np.empty_like(array) for array in entry.outputs]
        for array, address in zip(results, held[len(entry.inputs) :], strict=True):
            self._call("cuMemcpyDtoH_v2", array.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(array.nbytes))
        for address in held:
            self._call("cuMemFree_v2", address)
        self._call("cuModuleUnload", module)
        return results

    def _load(self, ptx: str) -> ctypes.c_void_p:
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(_LOG_BYTES)
        options = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG_BYTES)
        try:
            self._call("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode(), 2, options, values)
        except CudaError as error:
            raise CudaError(f"{error}: {log.value.decode(errors='replace').strip()[:300]}") from None
        return module

    def _upload(self, array: Array) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(array.nbytes))
        data = np.ascontiguousarray(array)
        self._call("cuMemcpyHtoD_v2", address, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        return address

    def _launch(self, module: ctypes.c_void_p, entry: Entry, held: Sequence[ctypes.c_uint64]) -> None:
        function = ctypes.c_void_p()
        self._call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
        self._call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, entry.shared)
        parameters = (ctypes.c_void_p * len(held))(*(ctypes.addressof(address) for address in held))
        attribute = _Attribute(_CLUSTER_DIMENSION, 0, (ctypes.c_uint * 16)(entry.cluster, 1, 1))
        config = _Config(
            (ctypes.c_uint * 3)(entry.grid, 1, 1), (ctypes.c_uint * 3)(entry.block, 1, 1), entry.shared, None
        )
        if entry.cluster > 1:
            config.attributes, config.count = ctypes.pointer(attribute), 1
        self._call("cuLaunchKernelEx", ctypes.byref(config), function, parameters, None)

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorName(code, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'error ' + str(code).encode()).decode()}")
