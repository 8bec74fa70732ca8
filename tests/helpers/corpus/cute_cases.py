"""Kernels of the corpus in CuTe DSL: the project's own recipes on every example, and ones with TMA, wgmma and mma.

Needs torch; a case imports the DSL when it runs. The same code runs on a GPU and on the emulated device.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from corpus.checks import EXACT, Check, close
from corpus.matrix_values import elements
from corpus.values import bits
from suite import EXAMPLE_MODULES, ROOT, Example

_HERE = Path(__file__).parent
RECIPES = ROOT / "tests" / "emulator" / "corpus" / "data"
TORCH = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "e4m3": torch.float8_e4m3fn}
_CARRIERS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}
_SIZES = {
    "fp32": dict.fromkeys(("COLUMNS", "FEATURES", "CLASSES"), "259")
    | {"ROWS": "5", "BATCH": "1", "HEADS": "3", "LENGTH": "13", "HEAD_DIM": "34"},
    "bf16": dict.fromkeys(("COLUMNS", "FEATURES", "CLASSES"), "512")
    | {"ROWS": "8", "BATCH": "2", "HEADS": "2", "LENGTH": "16", "HEAD_DIM": "64", "DTYPE": "torch.bfloat16"},
}


@dataclass(frozen=True)
class CuteCase:
    """`forward` takes a module and `inputs` on the device and gives its outputs. `sources`: what it runs."""

    name: str
    forward: Callable[..., Any]
    module: nn.Module
    inputs: tuple[Tensor, ...]
    checks: tuple[Check, ...]
    sources: tuple[Path, ...]

    @property
    def digest(self) -> str:
        parts = [self.name.encode(), *(path.read_bytes() for path in self.sources)]
        parts += [as_bits(tensor).tobytes() for tensor in (*self.inputs, *self.module.state_dict().values())]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def as_bits(tensor: Tensor) -> np.ndarray:
    """The elements in order, as integers."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().view(_CARRIERS[tensor.element_size()]).reshape(tuple(tensor.shape))


def tensor_of(form: str, shape: tuple[int, ...], name: str, variant: str = "plain", *, turned: bool = False) -> Tensor:
    """Hashed elements. `turned`: the first of two dimensions is the one without gaps."""
    extents = shape[::-1] if turned else shape
    made = elements(form, variant, name, int(np.prod(shape)))
    tensor = torch.from_numpy(made.view(_CARRIERS[made.itemsize])).view(TORCH[form]).reshape(extents)
    return tensor.t() if turned else tensor


def compiled(
    make: Callable[[], Any], outputs: Sequence[tuple[str, tuple[int, ...]]], *, keeps: int = 0
) -> Callable[..., tuple[Tensor, ...]]:
    """A forward that compiles what `make` gives for its inputs' and outputs' exact shapes, and calls it.

    `keeps`: so many of the last inputs are copied and given as outputs, instead of new ones.
    """

    def forward(_: nn.Module, *inputs: Tensor) -> tuple[Tensor, ...]:
        import cutlass.cute as cute
        from cutlass.cute.runtime import make_fake_stream

        fresh = [torch.zeros(shape, dtype=TORCH[form], device="cuda") for form, shape in outputs]
        kept = [tensor.clone() for tensor in inputs[len(inputs) - keeps :]] if keeps else []
        given = [*inputs[: len(inputs) - keeps], *kept, *fresh]
        stream = make_fake_stream(use_tvm_ffi_env_stream=True)
        function = cute.compile(make(), *map(_fake, given), stream, options="--enable-tvm-ffi")
        function(*given)
        return (*kept, *fresh)

    return forward


def _fake(tensor: Tensor) -> Any:
    import cutlass
    from cutlass.cute.runtime import make_fake_compact_tensor

    known = {"f16": cutlass.Float16, "bf16": cutlass.BFloat16, "f32": cutlass.Float32, "e4m3": cutlass.Float8E4M3FN}
    form = next(form for form, dtype in TORCH.items() if dtype == tensor.dtype)
    order = sorted(range(tensor.dim()), key=lambda mode: tensor.stride(mode))
    ranks = tuple(order.index(mode) for mode in range(tensor.dim()))
    return make_fake_compact_tensor(known[form], tuple(tensor.shape), stride_order=ranks, assumed_align=16)


FAMILIES = ("recipe", "transpose", "row sums", "wide copy", "product by mma.sync", "tile copy", "product by wgmma")


def family_of(case: CuteCase) -> str:
    return next(family for family in FAMILIES if case.name.startswith(family))


@cache
def cute_cases() -> dict[str, CuteCase]:
    """By name. Only cases whose inputs are small; built in some tenths of a second."""
    from corpus.cute_kernels import kernel_cases

    made = [*recipe_cases(), *kernel_cases()]
    return {case.name: case for case in made}


def recipe_cases() -> list[CuteCase]:
    return [_recipe(example, size) for example, size in itertools.product(EXAMPLE_MODULES, _SIZES)]


def _recipe(example: Example, size: str) -> CuteCase:
    """What the recipes wrote for the example, kept as a file so that a change of theirs needs no GPU at once."""
    kernel = RECIPES / f"{example.stem}_{size}_cute.py"
    name = f"recipe {example.stem} {size}"
    constants = "".join(f"{key} = {value}\n" for key, value in _SIZES[size].items())
    source = f"{example.file.read_text()}\n\n{constants}"
    space: dict[str, Any] = {"__name__": f"corpus_{example.stem}_{size}"}
    exec(compile(source, str(example.file), "exec"), space)  # an example of this project, at another size
    module = space[example.qualname](*space["get_init_inputs"]()).eval().requires_grad_(False)
    for key, parameter in module.state_dict().items():
        parameter.copy_(_spread(parameter, f"{name}/{key}") / 4 + 1)
    inputs = tuple(_filled(tensor, f"{name}/{place}") for place, tensor in enumerate(space["get_inputs"]()))
    # ptxas may fuse a product with a sum; in bfloat16 nothing of that is left. The largest seen: 2^-21.
    check = EXACT if size == "bf16" else close("f32", relative=2.0**-20, absolute=2.0**-20)

    def forward(module: nn.Module, *tensors: Tensor) -> Any:
        return _candidate(kernel).forward(module, *tensors)

    return CuteCase(name, forward, module, inputs, (check,) * 3, (kernel, example.file))


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


def kernel_case(name: str, forward: Callable[..., Any], inputs: Sequence[Tensor], *files: str) -> CuteCase:
    """A kernel of one of this package's own files."""
    sources = tuple(_HERE / file for file in files)
    return CuteCase(name, forward, nn.Identity(), tuple(inputs), (EXACT,) * 3, sources)
