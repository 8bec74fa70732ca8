"""The recipes' kernels in the corpus: every example, and modules for each family and kind of kernel, at small sizes.

Their sources are kept as they were when they were recorded, so that a change of the recipes needs no GPU at once;
`tests/emulator/corpus/keep_recipes.py` writes them.
"""

from __future__ import annotations

import atexit
import tarfile
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from corpus.checks import EXACT, Check, close
from corpus.cute_cases import CuteCase
from corpus.later_recipes import later_recipes
from corpus.newest_recipes import newest_recipes
from corpus.product_recipes import product_recipes
from corpus.recipe import Recipe, Values
from corpus.row_recipes import row_recipes
from corpus.tensor_core_recipes import tensor_core_recipes
from corpus.values import bits
from cutesmith_evaluator.names import snake_case
from suite import ROOT

KEPT = ROOT / "tests" / "emulator" / "corpus" / "data" / "recipes.tar.xz"
# ptxas may fuse a product with a sum. In bfloat16 nothing of that is left; in float32 the largest seen is 2^-21.
_CHECKS = {
    torch.float32: close("f32", relative=2.0**-20, absolute=2.0**-20),
    torch.float16: close("f16", relative=2.0**-10, absolute=2.0**-24),
}
# A weight of an eighth rounded the other way, times a value of 2.
_WEIGHED = close("f16", relative=2.0**-10, absolute=2.0**-13)


def recipes() -> Iterator[Recipe]:
    yield from row_recipes()
    yield from product_recipes()
    yield from later_recipes()
    yield from newest_recipes()
    yield from tensor_core_recipes()


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
        filled = _whole if recipe.values == "whole" else _spread
        parameter.copy_(filled(parameter, f"{name}/{key}") / 4 + 1)
    made = _inputs_of(space, recipe.qualname)
    inputs = tuple(_filled(tensor, f"{name}/{place}", recipe.values) for place, tensor in enumerate(made))
    kernel = kept_sources() / recipe.member

    def forward(module: nn.Module, *tensors: Tensor) -> Any:
        return _candidate(kernel).forward(module, *tensors)

    return CuteCase(name, forward, module, inputs, _checks(recipe, module, inputs), (kernel, *recipe.sources))


def _checks(recipe: Recipe, module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Check, ...]:
    results = deepcopy(module).to("meta")(*(tensor.to("meta") for tensor in inputs))
    known = _CHECKS | ({torch.float16: _WEIGHED} if recipe.rounds_weights else {})
    return tuple(known.get(each.dtype, EXACT) for each in (results if isinstance(results, tuple) else (results,)))


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


def _inputs_of(space: dict[str, Any], qualname: str) -> list[Tensor]:
    if "inputs_of" in space:
        return space["inputs_of"](qualname)
    return space.get(f"get_{snake_case(qualname)}_inputs", space.get("get_inputs"))()


def _filled(like: Tensor, name: str, values: Values) -> Tensor:
    """Hashed values of the tensor's dtype and shape: places from 0 to 63, zeros and ones where it holds nothing else,
    else from -2 to 2."""
    if like.dtype == torch.int64:
        return torch.from_numpy((bits(name, like.numel()) >> np.uint64(58)).astype(np.int64)).reshape(like.shape)
    if like.dtype == torch.bool or bool(((like == 0) | (like == 1)).all()):
        chosen = (bits(name, like.numel()) >> np.uint64(63)).astype(np.float64)
        return torch.from_numpy(chosen).to(like.dtype).reshape(like.shape)
    return {"spread": _spread, "whole": _whole, "special": _special}[values](like, name)


def _spread(like: Tensor, name: str) -> Tensor:
    values = (bits(name, like.numel()) >> np.uint64(40)).astype(np.float64) / 2.0**22 - 2.0
    return torch.from_numpy(values).to(like.dtype).reshape(like.shape)


def _whole(like: Tensor, name: str) -> Tensor:
    values = (bits(name, like.numel()) >> np.uint64(62)).astype(np.float64) - 2.0
    return torch.from_numpy(values).to(like.dtype).reshape(like.shape)


def _special(like: Tensor, name: str) -> Tensor:
    """Of an fp32 matrix: lines with Inf and with NaN, of zeros, of subnormals, of large numbers, over a wide range."""
    made = _spread(like, name)
    columns = like.shape[1]
    made[1, columns // 2], made[2, 3], made[3, 0] = float("inf"), float("-inf"), float("nan")
    made[4], made[5] = 0, made[5] * 2.0**-130
    made[6], made[7] = made[6] * 2.0**100, made[7] * torch.exp2(torch.arange(columns) % 60 - 30.0)
    return made


@cache
def _candidate(path: Path) -> ModuleType:
    import importlib.util

    spec = importlib.util.spec_from_file_location(f"corpus_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
