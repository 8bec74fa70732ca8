"""The kernels of a CUDA graph, as the driver knows them."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

_KERNEL = 0  # CU_GRAPH_NODE_TYPE_KERNEL


class _Launch(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2: a kernel is either a function or, of a library, a kernel of any context."""

    _fields_ = (
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("parameters", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    )


def kernels_of(graph: int) -> list[str]:
    """Symbols of the kernels in a graph (cudaGraph_t). Raises OSError where the driver does not say, AttributeError
    where it is too old to."""
    driver = ctypes.CDLL("libcuda.so.1")
    return [_symbol(driver, node) for node in _nodes(driver, graph) if _type(driver, node) == _KERNEL]


def _nodes(driver: ctypes.CDLL, graph: int) -> list[int]:
    count = c_size_t()
    _check(driver.cuGraphGetNodes(c_void_p(graph), None, byref(count)))
    nodes = (c_void_p * max(count.value, 1))()
    _check(driver.cuGraphGetNodes(c_void_p(graph), nodes, byref(count)))
    return [node for node in nodes[: count.value] if node]


def _type(driver: ctypes.CDLL, node: int) -> int:
    kind = c_int()
    _check(driver.cuGraphNodeGetType(c_void_p(node), byref(kind)))
    return kind.value


def _symbol(driver: ctypes.CDLL, node: int) -> str:
    launch, name = _Launch(), c_char_p()
    _check(driver.cuGraphKernelNodeGetParams_v2(c_void_p(node), byref(launch)))
    if launch.function:
        _check(driver.cuFuncGetName(byref(name), c_void_p(launch.function)))
    else:
        _check(driver.cuKernelGetName(byref(name), c_void_p(launch.kernel)))
    return (name.value or b"").decode(errors="replace")


def _check(status: int) -> None:
    if status:
        raise OSError(f"CUDA's driver answered {status}")
