"""A kernel that copies a tensor with its channels innermost, for a convolution: PyTorch's copy is slower than memory.

A thread reads a few positions of a few channels and writes the channels of each position: both in wide accesses, the
turn itself is a matter of which register is which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutesmith_evaluator.types import GraphInput

from .accesses import cute_type
from .layout import ACCESS_BYTES, INT32, ITEMSIZE
from .space import channels_last, ranks

WARP = 32
POSITIONS_BESIDE = 4  # threads of a warp along positions: with accesses of 16 bytes each reads 64 in a row
THREADS = 256


@dataclass(frozen=True)
class Turn:
    """`source`: the operand; `memory_format`: "torch.channels_last"."""

    source: GraphInput
    memory_format: str

    @staticmethod
    def of(source: GraphInput, memory_format: str | None) -> Turn | None:
        """None where PyTorch has to turn the tensor, or nothing is to be turned."""
        shape = source.spec.shape
        if memory_format is None or math.prod(shape) >= INT32 or min(shape[1], math.prod(shape[2:])) == 1:
            return None
        return Turn(source, memory_format)

    @property
    def channels(self) -> int:
        return self.source.spec.shape[1]

    @property
    def positions(self) -> int:
        return math.prod(self.source.spec.shape[2:])

    def lines(self) -> list[str]:
        """The functions of a file; `_channels_last(x, index)` is what its launcher calls."""
        return [*self._call(), "", "", *self._program(), "", "", *self._compile()]

    def _call(self) -> list[str]:
        return [
            "def _channels_last(x, index):",
            '    """`x` with its channels innermost."""',
            "    if x.data_ptr() % 16:",
            f"        return x.contiguous(memory_format={self.memory_format})",
            f"    turned = torch.empty_like(x, memory_format={self.memory_format})",
            "    with torch.cuda.device(index):",
            "        _compiled_turn(index)(x, turned)",
            "    return turned",
        ]

    def _program(self) -> list[str]:
        vector = ACCESS_BYTES // ITEMSIZE[self.source.spec.dtype]
        wide, deep = math.gcd(vector, self.positions), math.gcd(vector, self.channels)
        groups = self.channels // deep  # of channels
        lanes = min(WARP // POSITIONS_BESIDE, 1 << (groups.bit_length() - 1))
        body = [
            "import cutlass",
            "import cutlass.cute as cute",
            "from cuda.bindings.driver import CUstream",
            "",
            f"CHANNELS, POSITIONS = {self.channels}, {self.positions}",
            f"WIDE, DEEP = {wide}, {deep}  # positions of an access that reads, channels of one that writes",
            f"LANES, BESIDE = {lanes}, {WARP // lanes}  # threads of a warp along channels and along positions",
            f"THREADS = {THREADS}  # of a block",
            "GROUPS, CHUNKS = -(-CHANNELS // (DEEP * LANES)), -(-POSITIONS // (WIDE * BESIDE))  # warps of a plane",
            "",
            "@cute.kernel",
            "def turn_kernel(gX: cute.Tensor, gTurned: cute.Tensor):",
            "    tidx, _, _ = cute.arch.thread_idx()",
            "    bidx, _, _ = cute.arch.block_idx()",
            "    warp, lane = bidx * (THREADS // 32) + tidx // 32, tidx % 32",
            "    group, chunk, plane = warp % GROUPS, warp // GROUPS % CHUNKS, warp // (GROUPS * CHUNKS)",
            "    channel = (group * LANES + lane % LANES) * DEEP",
            "    position = (chunk * BESIDE + lane // LANES) * WIDE",
            "    inside = (channel < CHANNELS) & (position < POSITIONS)",
            "    if inside & (plane < cute.size(gX) // (CHANNELS * POSITIONS)):",
            "        rows = cute.zipped_divide(gX, (WIDE,))",
            "        columns = cute.zipped_divide(gTurned, (DEEP,))",
            "        elements = cute.make_rmem_tensor((WIDE, DEEP), gX.element_type)",
            "        for d in cutlass.range_constexpr(DEEP):",
            "            at = (plane * CHANNELS + channel + d) * (POSITIONS // WIDE) + position // WIDE",
            "            cute.autovec_copy(rows[None, at], elements[None, d])",
            "        for w in cutlass.range_constexpr(WIDE):",
            "            turned = cute.make_rmem_tensor(DEEP, gX.element_type)",
            "            for d in cutlass.range_constexpr(DEEP):",
            "                turned[d] = elements[w, d]",
            "            at = (plane * POSITIONS + position + w) * (CHANNELS // DEEP) + channel // DEEP",
            "            cute.autovec_copy(turned, columns[None, at])",
            "",
            "@cute.jit",
            "def turn(mX: cute.Tensor, mTurned: cute.Tensor, stream: CUstream):",
            "    n = cute.size(mX)",
            "    gX = cute.make_tensor(mX.iterator, cute.make_layout(n))",
            "    gTurned = cute.make_tensor(mTurned.iterator, cute.make_layout(n))",
            "    warps = n // (CHANNELS * POSITIONS) * GROUPS * CHUNKS",
            "    turn_kernel(gX, gTurned).launch(",
            "        grid=[cute.ceil_div(warps, THREADS // 32), 1, 1], block=[THREADS, 1, 1], stream=stream",
            "    )",
            "",
            "return turn",
        ]
        return [
            "def _turning():",
            '    """Reads rows of positions, writes rows of channels; which register is which is the turn."""',
            *(f"    {line}" if line else "" for line in body),
        ]

    def _compile(self) -> list[str]:
        shape, dtype = self.source.spec.shape, cute_type(self.source.spec.dtype)
        orders = [tuple(reversed(range(len(shape)))), ranks(channels_last(shape))]
        fakes = [f"fake({dtype}, {shape}, stride_order={order}, assumed_align=16)," for order in orders]
        return [
            "_TURNS = {}",
            "",
            "",
            "def _compiled_turn(index):",
            "    if index not in _TURNS:",
            "        _TURNS[index] = _compile_turn()",
            "    return _TURNS[index]",
            "",
            "",
            "def _compile_turn():",
            "    import cutlass",
            "    import cutlass.cute as cute",
            "    from cutlass.cute.runtime import make_fake_compact_tensor as fake",
            "    from cutlass.cute.runtime import make_fake_stream",
            "",
            "    return cute.compile(",
            "        _turning(),",
            *(f"        {line}" for line in fakes),
            "        make_fake_stream(use_tvm_ffi_env_stream=True),",
            '        options="--enable-tvm-ffi",',
            "    )",
        ]
