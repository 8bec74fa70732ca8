"""Matrix products in the corpus: every form that PyTorch has for them and every epilogue, on both tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from corpus.recipe import Recipe, of_module

_product = partial(of_module, "product_modules")
_FORMS = (
    *("Product", "BothTransposed", "OfItself", "Batched", "SharedRight", "SharedLeft", "FourDimensions", "Scores"),
    *("TwoDepths", "Turned", "LinearGELU", "AddedAndScaled", "WithoutBias", "AddedBatches", "TwoResults"),
)
_FOR_AMPERE = (
    *("Product", "BothTransposed", "Batched", "SharedLeft", "Scores", "Turned", "LinearGELU", "AddedAndScaled"),
    "TwoResults",
)
_VECTORS = ("MatrixVector", "VectorMatrix", "Thin")
_DEEP = "((20, 1100), (1100, 24))"


def product_recipes() -> Iterator[Recipe]:
    for kind in (*_FORMS, *_VECTORS):
        yield _product(f"product {kind}", kind)
    yield from _hopper()
    yield from _ampere()


def _hopper() -> Iterator[Recipe]:
    """TMA and wgmma: each tile, clusters both ways, a shared depth, more tiles than blocks, unaligned lines."""
    for m, n, k in ((192, 128, 32), (128, 192, 32), (128, 64, 64), (128, 128, 64), (128, 192, 64)):
        yield _product(f"product by {m}x{n}x{k}", "Product", tile_m=m, tile_n=n, tile_k=k)
    yield _product("product of 2 below", "Product", shapes="((132, 40), (40, 12))", cluster_m=2)
    yield _product("product of 2 beside", "Product", shapes="((12, 40), (40, 132))", cluster_n=2)
    yield _product("product by depth", "Product", shapes=_DEEP, splits=4)
    yield _product("product by depth of 2 below", "TwoResults", shapes="((132, 530), (530, 8), (132, 8))", splits=2)
    yield _product("products by persistent blocks", "Batched", shapes="((140, 5, 16), (140, 16, 5))")
    yield _product("product of odd sizes", "BothTransposed", shapes="((37, 11), (13, 37))")
    yield _product("product of special values", "Product", shapes="((20, 70), (70, 24))", values="special")


def _ampere() -> Iterator[Recipe]:
    """cp.async and mma.sync."""
    on_ampere = partial(_product, arch="sm_80")
    for kind in _FOR_AMPERE:
        yield on_ampere(f"sm_80 product {kind}", kind)
    for m, n, warps in ((128, 64, 2), (64, 128, 2), (128, 128, 2), (128, 128, 4)):
        yield on_ampere(f"sm_80 product by {m}x{n} by {warps} warps", "Product", tile_m=m, tile_n=n, warps_m=warps)
    yield on_ampere("sm_80 product by depth", "Product", shapes=_DEEP, splits=4)
    yield on_ampere("sm_80 product of odd sizes", "BothTransposed", shapes="((37, 11), (13, 37))")
    yield on_ampere("sm_80 product of several tiles", "SharedRight", shapes="((2, 70, 40), (40, 12))")
    yield on_ampere("sm_80 product of special values", "Product", shapes="((20, 70), (70, 24))", values="special")
