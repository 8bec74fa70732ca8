"""Products in half precision, triangles, tiles split by the product itself, windows along lines, several kernels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from corpus.recipe import FORMS, Recipe, of_module

_product = partial(of_module, "product_modules")
_triangle = partial(of_module, "triangle_modules")
_window = partial(of_module, "window_modules")
_chain = partial(of_module, "chain_modules")
_tail = partial(of_module, "library_modules", values="whole")
_HALVES = ("bf16", "fp16")
_HALF_PRODUCTS = ("Product", "BothTransposed", "Batched", "SharedRight", "Scores", "Turned", "TwoResults")
_TALL = "((132, 40), (40, 16))"


def newest_recipes() -> Iterator[Recipe]:
    yield from _half_products()
    yield from _split_by_themselves()
    yield from _triangles()
    yield from _lines()
    yield from _chains()


def _half_products() -> Iterator[Recipe]:
    for form in _HALVES:
        for kind in _HALF_PRODUCTS:
            yield _product(f"half product {kind} {form}", kind, form)
        yield _triangle(f"half product HalfLayer {form}", "HalfLayer", form)
        yield _product(f"half product of odd depth {form}", "Product", form, "((20, 701), (701, 24))")
        yield _product(f"half product of 2 below {form}", "Product", form, _TALL, cluster_m=2)
        yield _product(f"sm_80 half product {form}", "Product", form, arch="sm_80")
        yield _triangle(f"sm_80 half product HalfLayer {form}", "HalfLayer", form, arch="sm_80")
    yield _product("sm_80 half product by depth", "Product", "fp16", "((20, 1100), (1100, 24))", arch="sm_80", splits=4)


def _split_by_themselves() -> Iterator[Recipe]:
    for kind in ("Product", "Turned", "Batched", "LinearGELU", "TwoResults"):
        yield _product(f"product split in its kernel {kind}", kind, is_direct=1)
    special = "((20, 72), (72, 24))"
    yield _product("product split in its kernel special", "Product", shapes=special, values="special", is_direct=1)
    yield _product("product in two blocks", "Product", shapes="((140, 40), (40, 72))", blocks_per_mp=2)


def _triangles() -> Iterator[Recipe]:
    yield _triangle("upper triangle", "Upper", tile_n=128, tile_k=64, cluster_m=1)
    yield _triangle("lower triangle", "Lower")
    yield _triangle("sm_80 upper triangle", "Upper", arch="sm_80")


def _lines() -> Iterator[Recipe]:
    for kind in ("LongDepthwiseLine", "LineOfMaxima", "LineOfComputed", "LineOfHalves", "LineNextToItself"):
        yield _window(f"line of {kind} by results", kind, results=8)
    for kind in ("LongDepthwiseLine", "LineOfMaxima", "LineOfHalves"):
        yield _window(f"line of {kind} by runs", kind, run=7)
    for form in FORMS:
        yield _window(f"line of maxima {form}", "LineOfMaxima", form, "(1, 2, 3080)", results=8)


def _chains() -> Iterator[Recipe]:
    yield _chain("chain NormThenMean", "NormThenMean")
    yield _chain("chain NormThenPool", "NormThenPool", values="whole")
    for channels in (0, 8):
        pick = {"channels": channels} if channels else {}
        yield _chain(f"chain ConvolutionOfPooled of {channels}", "ConvolutionOfPooled", values="whole", **pick)
    for kind in ("PooledTail", "TurnedTail", "LeastChannel"):
        yield _tail(f"tail {kind}", kind)
    for kind in ("PooledTail", "TurnedTail"):
        yield _tail(f"tail {kind} of tiles", kind, channels=16)
    yield _tail("tail TurnedTail in registers", "TurnedTail", lanes=2)
    yield _tail("tail LeastChannel by rows", "LeastChannel", threads_per_row=8)
