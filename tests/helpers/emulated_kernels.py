"""CuTe kernels for the emulated device: a right one of each kind, and the same with one planted fault.

The line on which the emulator has to find it ends with `# HERE`.
"""

from __future__ import annotations

from dataclasses import dataclass

CANDIDATE = """
import torch

PLAIN = (torch.Tensor, torch.nn.Parameter)


def explain(module, x):
    return None if type(x) in PLAIN and x.is_cuda else "x is not a CUDA tensor"


def supports(module, x):
    return explain(module, x) is None


def warm_up(module, x):
    _compiled(x)


def forward(module, x):
    y = torch.empty({shape})
    _compiled(x)(x, y)
    return y


_COMPILED = {{}}


def _compiled(x):
    if not _COMPILED:
        _COMPILED[0] = _compile()
    return _COMPILED[0]


def _compile():
    import cutlass
    import cutlass.cute as cute
    from cuda.bindings.driver import CUstream
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    @cute.kernel
    def body_kernel(gX: cute.Tensor, gY: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, _, _ = cute.arch.block_idx()
        i = bidx * 128 + tidx
{body}

    @cute.jit
    def launch(mX: cute.Tensor, mY: cute.Tensor, stream: CUstream):
        grid = [cute.ceil_div(cute.size(mX), 128), 1, 1]
        body_kernel(mX, mY).launch(grid=grid, block=[{threads}, 1, 1], stream=stream)

    fakes = [make_fake_compact_tensor(cutlass.Float32, (cute.sym_int(),), assumed_align=4) for _ in range(2)]
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(launch, *fakes, stream, options="--enable-tvm-ffi")
"""

_SHARED = """
smem = cutlass.memory.SmemAllocator()
s = smem.allocate_tensor(cutlass.Float32, cute.make_layout(128), 16)
"""


@dataclass(frozen=True)
class Planted:
    """`kind`: the finding's; None for a right kernel. `length`: of x."""

    name: str
    body: str
    kind: str | None = None
    threads: int = 128
    shape: str = "x.shape, dtype=x.dtype, device=x.device"
    length: int = 1000

    @property
    def source(self) -> str:
        body = "\n".join("        " + line for line in self.body.strip().split("\n"))
        return CANDIDATE.format(body=body, threads=self.threads, shape=self.shape)

    @property
    def line(self) -> int | None:
        lines = self.source.split("\n")
        return next((number for number, line in enumerate(lines, 1) if line.endswith("# HERE")), None)


# Each doubles x, whose length is a multiple of 128 but for the first's.
RIGHT = (
    Planted("pointwise", "if i < cute.size(gX):\n    gY[i] = gX[i] + gX[i]"),
    Planted(
        "through shared memory",
        _SHARED
        + """
s[127 - tidx] = gX[i]
cute.arch.sync_threads()
gY[i] = s[127 - tidx] + s[127 - tidx]
""",
    ),
    Planted(
        "shared memory used twice",
        _SHARED
        + """
s[127 - tidx] = gX[i]
cute.arch.sync_threads()
first = s[tidx]
cute.arch.sync_threads()
s[127 - tidx] = first
cute.arch.sync_threads()
gY[i] = s[tidx] + s[tidx]
""",
    ),
    Planted(
        "a loop with barriers",
        _SHARED
        + """
total = cutlass.Float32(0.0)
for step in cutlass.range(4):
    s[(tidx + 1) % 128] = gX[i]
    cute.arch.sync_threads()
    total += s[(tidx + 1) % 128]
    cute.arch.sync_threads()
gY[i] = total * 0.5
""",
    ),
    Planted(
        "between lanes", "v = gX[i]\ngY[i] = v + cute.arch.shuffle_sync_bfly(cute.arch.shuffle_sync_bfly(v, 5), 5)"
    ),
    Planted(
        "half the threads diverge",
        """
v = gX[i]
if tidx % 2 == 0:
    v = v + v
else:
    v = v * 2.0
gY[i] = v
""",
    ),
)

FAULTS = (
    Planted("dropped predicate", "gY[i] = gX[i] + gX[i]  # HERE", "out-of-bounds"),
    Planted("off-by-one tail", "if i <= cute.size(gX):\n    gY[i] = gX[i] + gX[i]  # HERE", "out-of-bounds"),
    Planted(
        "reads a neighbour past the end",
        "if i < cute.size(gX):\n    other = gX[i + 1]  # HERE\n    gY[i] = gX[i] + other * 0.0 + gX[i]",
        "out-of-bounds",
    ),
    Planted(
        "reads before the start",
        "if i < cute.size(gX):\n    other = gX[i - 1]  # HERE\n    gY[i] = gX[i] + other * 0.0 + gX[i]",
        "out-of-bounds",
    ),
    Planted(
        "stores past the end",
        "if i < cute.size(gX):\n    v = gX[i]\n    gY[i + 1] = v + v  # HERE",
        "out-of-bounds",
    ),
    Planted(
        "output added to before it is written",
        "if i < cute.size(gX):\n    old = gY[i]  # HERE\n    gY[i] = old + gX[i]",
        "uninitialised-read",
    ),
    Planted(
        "last element left out", "if i < cute.size(gX) - 1:\n    gY[i] = gX[i] + gX[i]  # HERE", "unwritten-output"
    ),
    Planted(
        "every third element left out",
        """
if i % 3 != 2:
    v = gX[i % cute.size(gX)]
    if i < cute.size(gX):
        gY[i] = v + v  # HERE
""",
        "unwritten-output",
    ),
    Planted(
        "last element of a tail left out",
        """
pairs = cute.size(gX) // 2
if i < pairs:
    start = (gY.iterator + i * 2).toint()
    tile = cute.make_tensor(cute.make_ptr(cutlass.Float32, start, cute.AddressSpace.gmem, assumed_align=8), 2)
    fragment = cute.make_rmem_tensor((2,), cutlass.Float32)
    fragment[0] = gX[i * 2]
    fragment[1] = gX[i * 2 + 1]
    cute.autovec_copy(fragment, tile)
last = pairs * 2 + i
if last < cute.size(gX) - 1:
    gY[last] = gX[last]  # HERE
""",
        "unwritten-output",
        length=1001,
    ),
    Planted(
        "a loop that ends too early",
        """
if i < 7:
    for step in cutlass.range(i, cute.size(gX) - 7, 7):
        gY[step] = gX[step]  # HERE
""",
        "unwritten-output",
    ),
    Planted(
        "fewer blocks than elements",
        "at = i % 896\nif at < cute.size(gX):\n    gY[at] = gX[at]  # HERE",
        "unwritten-output",
    ),
    Planted(
        "missing barrier",
        _SHARED + "s[127 - tidx] = cutlass.Float32(tidx)\nv = s[tidx]  # HERE\nif i < cute.size(gX):\n    gY[i] = v",
        "uninitialised-read or race",
    ),
    Planted(
        "missing barrier between two uses",
        _SHARED
        + """
s[127 - tidx] = cutlass.Float32(tidx)
cute.arch.sync_threads()
first = s[tidx]
s[127 - tidx] = first  # HERE
cute.arch.sync_threads()
if i < cute.size(gX):
    gY[i] = s[tidx]
""",
        "race",
    ),
    Planted(
        "two threads write one place",
        _SHARED
        + """
s[tidx // 2] = cutlass.Float32(tidx)  # HERE
cute.arch.sync_threads()
if i < cute.size(gX):
    gY[i] = s[tidx // 2]
""",
        "race",
    ),
    Planted(
        "shared memory never written",
        _SHARED
        + """
if tidx < 64:
    s[tidx] = cutlass.Float32(tidx)
cute.arch.sync_threads()
v = s[tidx]  # HERE
if i < cute.size(gX):
    gY[i] = v
""",
        "uninitialised-read",
    ),
    Planted(
        "past the end of shared memory",
        _SHARED
        + """
s[tidx + 1] = cutlass.Float32(tidx)  # HERE
cute.arch.sync_threads()
if i < cute.size(gX):
    gY[i] = s[tidx]
""",
        "out-of-bounds",
    ),
    Planted(
        "barrier in a branch",
        _SHARED
        + """
s[tidx] = cutlass.Float32(tidx)
if tidx < 64:
    cute.arch.sync_threads()  # HERE
    s[tidx] = cutlass.Float32(0)
    cute.arch.sync_threads()
if i < cute.size(gX):
    gY[i] = s[tidx]
""",
        "barrier-divergence",
    ),
    Planted(
        "barrier for every other thread",
        """
if tidx % 2 == 0:
    cute.arch.sync_threads()  # HERE
v = gX[i % cute.size(gX)]
cute.arch.sync_threads()
if i < cute.size(gX):
    gY[i] = v
""",
        "barrier-divergence",
    ),
    Planted(
        "a lane that takes no part",
        """
v = gX[i % cute.size(gX)]
if tidx % 32 < 16:
    v = cute.arch.shuffle_sync_bfly(v, 16, mask=0xFFFF)  # HERE
if i < cute.size(gX):
    gY[i] = v
""",
        "inactive-lane",
    ),
    Planted(
        "lanes that never come",
        """
v = gX[i % cute.size(gX)]
if tidx % 32 < 16:
    v = cute.arch.shuffle_sync_bfly(v, 8)  # HERE
    if i < cute.size(gX):
        gY[i] = v
""",
        "warp-divergence",
    ),
    Planted(
        "wider than the alignment",
        """
start = (gX.iterator + 1).toint()
pointer = cute.make_ptr(cutlass.Float32, start, cute.AddressSpace.gmem, assumed_align=16)
tile = cute.make_tensor(pointer, cute.make_layout(4))
fragment = cute.make_rmem_tensor((4,), cutlass.Float32)
cute.autovec_copy(tile, fragment)  # HERE
if i < cute.size(gX):
    gY[i] = fragment[0] + fragment[1] + fragment[2] + fragment[3]
""",
        "misaligned-access",
    ),
    Planted(
        "vectors of four over an odd length",
        """
if i * 4 < cute.size(gX):
    start = (gX.iterator + i * 4).toint()
    tile = cute.make_tensor(cute.make_ptr(cutlass.Float32, start, cute.AddressSpace.gmem, assumed_align=16), 4)
    fragment = cute.make_rmem_tensor((4,), cutlass.Float32)
    cute.autovec_copy(tile, fragment)  # HERE
    for element in cutlass.range_constexpr(4):
        if i * 4 + element < cute.size(gX):
            gY[i * 4 + element] = fragment[element]
""",
        "out-of-bounds",
        length=1001,
    ),
    Planted(
        "dropped predicate of an unrolled tail",
        """
for step in cutlass.range_constexpr(2):
    at = i * 2 + step
    if i * 2 < cute.size(gX):
        gY[at] = gX[at] + gX[at]  # HERE
""",
        "out-of-bounds",
        length=1001,
    ),
)
