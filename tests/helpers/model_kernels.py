"""Kernels that a model might hand in for a module no recipe covers: a flip, written as an index."""

from __future__ import annotations

import re
from pathlib import Path

import cutesmith_agent

TURNED = "x[torch.arange(x.shape[0] - 1, -1, -1, device=x.device)]"
MODULE = f'''"""A module that no recipe covers."""

import torch
from torch import nn


class Flip(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return {TURNED}


def get_inputs():
    return [torch.randn(300)]


def get_init_inputs():
    return []
'''
UNKNOWN_NAME = "tidx = cute.arch.thread_index()"
KNOWN_NAME = "tidx, _, _ = cute.arch.thread_idx()"
NO_TAIL = "grid = [cute.size(mY) // THREADS, 1, 1]"
WITH_TAIL = "grid = [cute.ceil_div(cute.size(mY), THREADS), 1, 1]"


def example() -> str:
    """The kernel file that prompts show."""
    text = (Path(cutesmith_agent.__file__).parent / "prompts" / "example.md").read_text()
    found = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def flip(thread: str = KNOWN_NAME, grid: str = WITH_TAIL) -> str:
    """A kernel file for Flip, made from the example."""
    source = example().replace("scaled", "flip").replace("Scaled", "Flip")
    begin, end = source.index("@functools.cache\ndef _program"), source.index("# An op, so that")
    return _without_scale(source[:begin]) + _PROGRAM.format(thread=thread, grid=grid) + _without_scale(source[end:])


def _without_scale(source: str) -> str:
    for old, new in (
        ('    if type(module.scale) is not float:\n        return "module.scale is not a float"\n', ""),
        (", module.scale", ""),
        (", scale", ""),
        (", float scale", ""),
        ("VECTOR = 4  # elements per access: 16 bytes\n", ""),
        ("_compiled(x.device.index, True)", "_compiled(x.device.index)"),
        ("_compiled(index, x.data_ptr() % 16 == 0)", "_compiled(index)"),
    ):
        source = source.replace(old, new)
    return source


_PROGRAM = '''@functools.cache
def _compiled(index):
    """The launcher for a device."""
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    @cute.kernel
    def flip_kernel(gX: cute.Tensor, gY: cute.Tensor):
        {thread}
        bidx, _, _ = cute.arch.block_idx()
        n = cute.size(gY)
        i = bidx * THREADS + tidx
        if i < n:
            gY[i] = gX[n - 1 - i]

    @cute.jit
    def flip(mX: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        {grid}
        flip_kernel(mX, mY).launch(grid=grid, block=[THREADS, 1, 1], stream=stream)

    n = cute.sym_int()
    x, y = (
        make_fake_compact_tensor(cutlass.Float32, (n,), stride_order=(0,), assumed_align=4) for _ in range(2)
    )
    return cute.compile(flip, x, y, make_fake_stream(use_tvm_ffi_env_stream=True), options="--enable-tvm-ffi")


'''
