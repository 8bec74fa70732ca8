"""The recipes' kernels in the corpus: every example, and modules for each family and kind of kernel, at small sizes.

Their sources are kept as they were when they were recorded, so that a change of the recipes needs no GPU at once;
`tests/emulator/corpus/keep_recipes.py` writes them.
"""

from __future__ import annotations

import atexit
import itertools
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from corpus.checks import EXACT, Check, close
from corpus.cute_cases import CuteCase
from corpus.values import bits
from suite import EXAMPLE_MODULES, ROOT, SOFTMAXES, Case

KEPT = ROOT / "tests" / "emulator" / "corpus" / "data" / "recipes.tar.xz"
_MODULES = ROOT / "tests" / "agent" / "recipes" / "modules.py"
_REDUCED = _MODULES.with_name("reduced_modules.py")
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
_TORCH = {"fp32": "torch.float32", "bf16": "torch.bfloat16", "fp16": "torch.float16"}
# ptxas may fuse a product with a sum. In bfloat16 nothing of that is left; in float32 the largest seen is 2^-21.
_CHECKS = {
    torch.float32: close("f32", relative=2.0**-20, absolute=2.0**-20),
    torch.float16: close("f16", relative=2.0**-10, absolute=2.0**-24),
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


@dataclass(frozen=True)
class Recipe:
    """A recipe's kernel: the first draft whose schedule has `pick`. `constants`: what its module's file is given."""

    name: str
    file: Path
    qualname: str
    constants: dict[str, str]
    pick: dict[str, int] = field(default_factory=dict)
    sources: tuple[Path, ...] = ()  # what its digest covers besides the kernel

    @property
    def member(self) -> str:
        """The file's name in the archive."""
        return f"{self.name.replace(' ', '_')}_cute.py"

    def task(self) -> Case:
        return Case(self.name, self.file, self.qualname, "pointwise", self.constants)


def recipes() -> Iterator[Recipe]:
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
    constants = {f"SHAPES[{kind!r}]": shapes, f"DTYPES[{kind!r}]": _TORCH[form]}
    return Recipe(name, _MODULES, kind, constants, pick)


def _across_blocks() -> Iterator[Recipe]:
    """Rows that many blocks share: a loss over a batch, and clusters of each size. Most have small results."""
    focal = next(example for example in EXAMPLE_MODULES if example.stem == "focal_loss")
    for form, dtype in _TORCH.items():
        sizes = {"ROWS": "64", "CLASSES": "1024", "DTYPE": dtype}
        yield Recipe(f"one row focal_loss {form}", focal.file, focal.qualname, sizes)
    for cluster, columns in ((2, 66000), (4, 116000), (8, 232003)):
        yield _module(f"cluster Spread fp32 {cluster}", "Spread", "fp32", f"((2, {columns}),)", cluster=cluster)
    for form in ("bf16", "fp16"):
        yield _module(f"cluster Spread {form}", "Spread", form, "((3, 130000),)", cluster=2)
    yield _module("cluster LongSoftmax bf16", "LongSoftmax", "bf16", "((2, 66000),)", cluster=2)
    softmax = {"ROWS": "2", "COLUMNS": "65544", "DTYPE": _TORCH["fp16"]}
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
    constants = {f"DTYPES[{kind!r}]": _TORCH[form]}
    if shape is not None:
        constants[f"SHAPES[{kind!r}]"] = shape
    return Recipe(name, _REDUCED, kind, constants, pick)


def recipe_cases() -> list[CuteCase]:
    return [_case(recipe) for recipe in recipes()]


def _case(recipe: Recipe) -> CuteCase:
    name = f"recipe {recipe.name}"
    constants = "".join(f"{key} = {value}\n" for key, value in recipe.constants.items())
    source = f"{_text(recipe.file)}\n\n{constants}"
    space: dict[str, Any] = {"__name__": f"corpus_{recipe.file.stem}"}
    exec(compile(source, str(recipe.file), "exec"), space)  # a file of this project, with other sizes
    module = space[recipe.qualname](*space.get("get_init_inputs", tuple)()).eval().requires_grad_(False)
    for key, parameter in module.state_dict().items():
        parameter.copy_(_spread(parameter, f"{name}/{key}") / 4 + 1)
    made = space["inputs_of"](recipe.qualname) if "inputs_of" in space else space["get_inputs"]()
    inputs = tuple(_filled(tensor, f"{name}/{place}") for place, tensor in enumerate(made))
    kernel = kept_sources() / recipe.member

    def forward(module: nn.Module, *tensors: Tensor) -> Any:
        return _candidate(kernel).forward(module, *tensors)

    return CuteCase(name, forward, module, inputs, _checks(module, inputs), (kernel, *recipe.sources))


def _checks(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Check, ...]:
    results = module(*inputs)
    return tuple(_CHECKS.get(each.dtype, EXACT) for each in (results if isinstance(results, tuple) else (results,)))


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def kept_sources() -> Path:
    """The archive's files, in a folder that lasts as long as the process."""
    folder = tempfile.TemporaryDirectory(prefix="corpus_recipes_")
    atexit.register(folder.cleanup)
    with tarfile.open(KEPT) as archive:
        archive.extractall(folder.name, filter="data")
    return Path(folder.name)


def _filled(like: Tensor, name: str) -> Tensor:
    """Hashed values of the tensor's dtype and shape: zeros and ones where it holds nothing else, else from -2 to 2."""
    if like.dtype == torch.bool or bool(((like == 0) | (like == 1)).all()):
        chosen = (bits(name, like.numel()) >> np.uint64(63)).astype(np.float64)
        return torch.from_numpy(chosen).to(like.dtype).reshape(like.shape)
    return _spread(like, name)


def _spread(like: Tensor, name: str) -> Tensor:
    values = (bits(name, like.numel()) >> np.uint64(40)).astype(np.float64) / 2.0**22 - 2.0
    return torch.from_numpy(values).to(like.dtype).reshape(like.shape)


@cache
def _candidate(path: Path) -> ModuleType:
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"corpus_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
