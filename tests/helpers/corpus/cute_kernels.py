"""The corpus's own CuTe kernels, each at a few shapes and types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from corpus.cute_cases import CuteCase, compiled, kernel_case, tensor_of


def kernel_cases() -> Iterator[CuteCase]:
    yield from _shared()
    yield from _ampere()
    yield from _tma()
    yield from _wgmma()


def _cutlass(form: str) -> Any:
    import cutlass

    return {"f16": cutlass.Float16, "bf16": cutlass.BFloat16, "f32": cutlass.Float32, "e4m3": cutlass.Float8E4M3FN}[
        form
    ]


def _made(module: str, kind: str, form: str, *arguments: Any, **options: Any) -> Callable[[], Any]:
    """Imports the kernel's file when it is compiled."""

    def make() -> Any:
        import importlib

        return getattr(importlib.import_module(f"corpus.{module}"), kind)(_cutlass(form), *arguments, **options)

    return make


def _shared() -> Iterator[CuteCase]:
    made = partial(_made, "shared_cute")
    for form, how in product(("f32", "f16"), ("swizzle", "padding")):
        forward = compiled(made("Transpose", form, how), [(form, (72, 100))])
        name = f"transpose {form} with {how}"
        yield kernel_case(name, forward, [tensor_of(form, (100, 72), name)], "shared_cute.py")
    for form in ("f32", "bf16"):
        name = f"row sums {form}"
        forward = compiled(made("RowSums", form), [("f32", (7,))])
        yield kernel_case(name, forward, [tensor_of(form, (7, 300), name)], "shared_cute.py")
    for form, width in product(("f32", "f16", "bf16"), (1, 2, 4, 8)):
        name = f"wide copy {form} by {width}"
        forward = compiled(made("WideCopy", form, width), [(form, (2048,))])
        yield kernel_case(name, forward, [tensor_of(form, (2048,), name)], "shared_cute.py")


def _ampere() -> Iterator[CuteCase]:
    for form, variant in product(("f16", "bf16"), ("integers", "plain")):
        name = f"product by mma.sync {form} {variant}"
        forward = compiled(_made("ampere_cute", "Gemm", form), [("f32", (128, 64))])
        inputs = [tensor_of(form, shape, f"{name}/{n}", variant) for n, shape in enumerate([(128, 192), (64, 192)])]
        yield kernel_case(name, forward, inputs, "ampere_cute.py")


def _tma() -> Iterator[CuteCase]:
    for form, swizzle, back in product(("f32", "f16"), ("none", "32B", "64B", "128B"), ("threads", "tma", "raw")):
        yield _tile(form, swizzle, back, (100, 72), (64, 64))
    for swizzle in ("none", "128B"):
        yield _tile("f32", swizzle, "add", (100, 72), (64, 64))
    yield _tile("f16", "128B", "tma", (33, 136), (16, 128))
    yield _tile("e4m3", "128B", "raw", (40, 160), (32, 128))


def _tile(form: str, swizzle: str, back: str, shape: tuple[int, int], tile: tuple[int, int]) -> CuteCase:
    name = f"tile copy {form} {shape[0]}x{shape[1]} by {tile[0]}x{tile[1]}, swizzle {swizzle}, {back}"
    make = _made("tma_cute", "TileCopy", form, *tile, swizzle, back)
    x = tensor_of(form, shape, name)
    if back == "add":
        y = tensor_of(form, shape, f"{name}/y")
        return kernel_case(name, compiled(make, [], keeps=1), [x, y], "tma_cute.py")
    tiles = -(-shape[0] // tile[0]) * -(-shape[1] // tile[1])
    result = (tiles * tile[0] * tile[1],) if back == "raw" else shape
    return kernel_case(name, compiled(make, [(form, result)]), [x], "tma_cute.py")


def _wgmma() -> Iterator[CuteCase]:
    for form, turned, variant in product(("f16", "bf16"), ((0, 0), (1, 0), (0, 1), (1, 1)), ("integers", "plain")):
        yield _product(form, variant, turned, (128, 64, 192), (64, 64))
    for variant in ("integers", "plain"):
        yield _product("e4m3", variant, (0, 0), (64, 64, 256), (64, 128))
        yield _product("f16", variant, (0, 0), (128, 64, 192), (64, 64), cluster=2)
        yield _product("f16", variant, (0, 1), (128, 96, 64), (32, 32), cluster=2)
    yield _product("f16", "integers", (0, 0), (128, 64, 72), (64, 64))


def _product(
    form: str,
    variant: str,
    turned: tuple[int, int],
    extents: tuple[int, int, int],
    tile: tuple[int, int],
    cluster: int = 1,
) -> CuteCase:
    """`extents`: M, N, K. `tile`: its columns and depth."""
    m, n, k = extents
    name = f"product by wgmma {form} {variant} {m}x{n}x{k}, turned {turned[0]}{turned[1]}, clusters of {cluster}"
    make = _made("gemm_cute", "Gemm", form, *tile, cluster=cluster)
    a = tensor_of(form, (m, k), f"{name}/a", variant, turned=bool(turned[0]))
    b = tensor_of(form, (n, k), f"{name}/b", variant, turned=bool(turned[1]))
    return kernel_case(name, compiled(make, [("f32", (m, n))]), [a, b], "gemm_cute.py")
