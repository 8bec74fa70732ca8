"""Kernels of the corpus in CuTe DSL: the project's own recipes on every example, and ones with TMA, wgmma and mma.

Needs torch; a case imports the DSL when it runs. The same code runs on a GPU and on the emulated device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from corpus.checks import EXACT, Check
from corpus.matrix_values import elements

_HERE = Path(__file__).parent
TORCH = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "e4m3": torch.float8_e4m3fn}
_CARRIERS = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}


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
    from corpus.recipe_cases import recipe_cases

    made = [*recipe_cases(), *kernel_cases()]
    return {case.name: case for case in made}


def kernel_case(name: str, forward: Callable[..., Any], inputs: Sequence[Tensor], *files: str) -> CuteCase:
    """A kernel of one of this package's own files."""
    sources = tuple(_HERE / file for file in files)
    return CuteCase(name, forward, nn.Identity(), tuple(inputs), (EXACT,) * 3, sources)
