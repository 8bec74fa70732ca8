"""Recipes of elements and rows in the corpus: every example, and modules for each family, at small sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from corpus.recipe import FORMS, Recipe, of_module
from suite import EXAMPLE_MODULES, SOFTMAXES

_EVEN = dict.fromkeys(("COLUMNS", "FEATURES", "CLASSES"), "512") | {
    "ROWS": "8",
    "BATCH": "2",
    "HEADS": "2",
    "LENGTH": "16",
    "HEAD_DIM": "64",
}
_SIZES = {
    "fp32": dict.fromkeys(("COLUMNS", "FEATURES", "CLASSES"), "259")
    | {"ROWS": "5", "BATCH": "1", "HEADS": "3", "LENGTH": "13", "HEAD_DIM": "34"},
    "bf16": _EVEN | {"DTYPE": "torch.bfloat16"},
    "fp16": _EVEN | {"DTYPE": "torch.float16"},
}

# Shapes of the modules' inputs here, where the tests' own would leave large results.
_SHAPES = {
    "PerChannel": "((2, 16, 3, 5),)",
    "Transposed": "((2, 16, 64),)",
    "NarrowSoftmax": "((13, 7),)",
    "LayerNorm": "((5, 256),)",
    "WholeLoss": "((130, 256), (130, 256))",
    "LongSoftmax": "((1, 66000),)",
    **dict.fromkeys(("Arithmetic", "TwoResults", "Halves"), "((5, 256), (5, 256))"),
}
_PLAIN = "((5, 256),)"
_KINDS = {
    "fp32": [
        "Activations",
        "Arithmetic",
        "Powers",
        "PerChannel",
        "ScalarParameter",
        "Transposed",
        "Gated",
        "Joined",
        "JoinedUnequal",
        "Interleaved",
        "TwoResults",
        "Maximum",
        "Best",
        "Worst",
        "Product",
        "UnitLength",
        "MeanAbsolute",
        "LogSumExp",
        "Spread",
        "SoftmaxBetween",
        "LayerNorm",
        "RootMeanSquare",
        "Masked",
        "NarrowSoftmax",
        "WholeLoss",
        "Configured",
    ],
    "bf16": [
        "Activations",
        "Arithmetic",
        "Transposed",
        "Gated",
        "JoinedUnequal",
        "Interleaved",
        "TwoResults",
        "Best",
        "Spread",
        "SoftmaxBetween",
        "LongSoftmax",
        "WholeLoss",
        "Halves",
    ],
    "fp16": [
        "Activations",
        "Powers",
        "Gated",
        "Joined",
        "Interleaved",
        "TwoResults",
        "Worst",
        "LogSumExp",
        "SoftmaxBetween",
        "WholeLoss",
    ],
}

# Of the modules whose reductions, scans and windows run along other dimensions: the kinds in each form, at the shapes
# of the tests, and at ones where other kernels of the same family are chosen.
_ALONG_OTHERS = {
    "fp32": [
        *("EvalBatchNorm", "EvalBatchNorm1d", "EvalBatchNorm3d", "BatchStatistics", "BatchStatistics1d", "Instances"),
        *("TrackedInstances", "Groups", "GroupsOfOne", "OneGroup", "ChannelRootMeanSquare", "ChannelLayerNorm"),
        *("MiddleSums", "MiddleExtremes", "MiddlePlaces", "MiddleMaximum", "FirstProduct", "OuterAndInner"),
        *("MiddleSoftmax", "MiddleLogSoftmax", "ChannelUnit", "BothSums", "LoneMiddle"),
        *("ScanOfExponentials", "ScanFromTheEnd", "ScanWithoutItself", "MiddleScan"),
        *("PaddedMaximum", "DilatedMaximum", "VolumeMaximum", "PaddedMean", "MeanInside", "DividedMean"),
    ],
    "bf16": [
        *("HalfChannels", "MiddleSums", "MiddlePlaces", "MiddleLogSoftmax", "FirstProduct", "Instances"),
        *("ScanOfExponentials", "PaddedMaximum", "PaddedMean"),
    ],
    "fp16": [
        *("HalfChannels", "MiddleExtremes", "MiddleSoftmax", "Groups", "ScanFromTheEnd", "DilatedMaximum"),
        "MeanInside",
    ],
}
_EVEN_MIDDLE = "(2, 96, 40)"


def row_recipes() -> Iterator[Recipe]:
    for example, size in itertools.product(EXAMPLE_MODULES, _SIZES):
        name, file = f"{example.stem} {size}", example.file
        yield Recipe(name, file, example.qualname, _SIZES[size], sources=(file,))
    for form, kinds in _KINDS.items():
        for kind in kinds:
            yield _module(f"{kind} {form}", kind, form, _SHAPES.get(kind, _PLAIN))
    norm = next(example for example in EXAMPLE_MODULES if example.stem == "rms_norm")
    yield Recipe("early loads rms_norm bf16", norm.file, norm.qualname, _SIZES["bf16"], {"preload": 1})
    yield from _across_blocks()
    yield from _few_rows()
    yield from _along_others()


def _module(name: str, kind: str, form: str, shapes: str, **pick: int) -> Recipe:
    return of_module("modules", name, kind, form, shapes, **pick)


def _across_blocks() -> Iterator[Recipe]:
    """Rows that many blocks share: a loss over a batch, and clusters of each size. Most have small results."""
    focal = next(example for example in EXAMPLE_MODULES if example.stem == "focal_loss")
    for form, dtype in FORMS.items():
        sizes = {"ROWS": "64", "CLASSES": "1024", "DTYPE": dtype}
        yield Recipe(f"one row focal_loss {form}", focal.file, focal.qualname, sizes)
    for cluster, columns in ((2, 66000), (4, 116000), (8, 232003)):
        yield _module(f"cluster Spread fp32 {cluster}", "Spread", "fp32", f"((2, {columns}),)", cluster=cluster)
    for form in ("bf16", "fp16"):
        yield _module(f"cluster Spread {form}", "Spread", form, "((3, 130000),)", cluster=2)
    yield _module("cluster LongSoftmax bf16", "LongSoftmax", "bf16", "((2, 66000),)", cluster=2)
    softmax = {"ROWS": "2", "COLUMNS": "65544", "DTYPE": FORMS["fp16"]}
    yield Recipe("cluster Softmax fp16", SOFTMAXES, "Softmax", softmax, {"cluster": 2})
    yield _module("cluster Spread fp32 vector 1", "Spread", "fp32", "((2, 66001),)", cluster=2, vector=1)


def _few_rows() -> Iterator[Recipe]:
    """Few long rows, each by many blocks in two kernels; and the same rows by a block each."""
    for kind, form in (("Spread", "fp32"), ("LogSumExp", "fp32"), ("MeanAbsolute", "fp16"), ("Maximum", "bf16")):
        yield _module(f"few rows {kind} {form}", kind, form, "((2, 66000),)")
    for kind in ("Frobenius", "LongLayerNorm"):
        yield _module(f"few rows {kind} bf16", kind, "bf16", "((1, 70000),)")
    for kind in ("Spread", "LogSumExp"):
        yield _module(f"long rows {kind} fp32", kind, "fp32", "((2, 66000),)", rows_per_block=1)
    yield _module("long rows LongLayerNorm bf16", "LongLayerNorm", "bf16", "((1, 70000),)", rows_per_block=1)


def _along_others() -> Iterator[Recipe]:
    for form, kinds in _ALONG_OTHERS.items():
        for kind in kinds:
            yield _reduced(f"{kind} {form}", kind, form)
    for kind in ("MiddleSums", "MiddleExtremes", "MiddlePlaces", "MiddleMaximum", "MiddleSoftmax"):
        yield _reduced(f"held {kind}", kind, "fp32", _EVEN_MIDDLE)
        yield _reduced(f"streamed {kind}", kind, "fp32", _EVEN_MIDDLE, unroll=8, vector=4)
    yield _reduced("streamed FirstProduct", "FirstProduct", "fp32", unroll=8)
    for kind in ("ScanOfExponentials", "ScanFromTheEnd", "ScanWithoutItself"):
        yield _reduced(f"long {kind}", kind, "fp32", "(2, 2600)", threads_per_row=256, steps=4)
    for kind in ("PaddedMaximum", "PaddedMean"):
        yield _reduced(f"wide {kind}", kind, "fp32", vector=4, steps=2)


def _reduced(name: str, kind: str, form: str, shape: str | None = None, **pick: int) -> Recipe:
    return of_module("reduced_modules", name, kind, form, shape, **pick)
