"""As `turned.py`, without shared memory: a thread reads a few channels of a few positions in wide accesses and writes a
few positions of each channel, in wide accesses, too. Which register is which is the turn."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .accesses import Tensors, tensors_of
from .layout import widest_vector
from .lowering import Program
from .pointwise import KernelText, Operand, maths, operands_of, pools_of
from .text import loads_of
from .turned import Planes, host, kind_of

WARP = 32


@dataclass(frozen=True)
class RegisterSchedule:
    threads: int
    lanes: int  # of a warp along channels; the others along positions
    vector: int

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("THREADS", self.threads, "threads per block"),
            ("VECTOR", self.vector, "channels of an access that reads, positions of one that writes"),
            ("LANES", self.lanes, "threads of a warp side by side along channels"),
        )


def schedules(program: Program) -> tuple[RegisterSchedule, ...]:
    """Best guess first; none for windows, nor where accesses would be narrow on either side."""
    planes = Planes.of(program)
    vector = math.gcd(widest_vector(program), planes.channels, planes.positions)
    if pools_of(tuple(s.expr for s in program.stores)) or vector < 4:
        return ()
    most = 1 << (planes.channels // vector).bit_length() - 1
    shapes = ((256, 8), (256, 4), (128, 8))
    return tuple(dict.fromkeys(RegisterSchedule(threads, min(lanes, most), vector) for threads, lanes in shapes))


def emit(program: Program, name: str, *, fast: bool) -> KernelText:
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    operands = operands_of(roots, tensors)
    planes = Planes.of(program)
    lines = (
        f"CHANNELS_IN_ALL, POSITIONS_IN_ALL = {planes.channels}, {planes.positions}  # of a result",
        f"BESIDE = {WARP} // LANES  # threads of a warp along positions",
        "GROUPS = -(-CHANNELS_IN_ALL // (vector * LANES))  # warps of a plane along channels",
        "CHUNKS = -(-POSITIONS_IN_ALL // (vector * BESIDE))  # and along positions",
        "",
        *maths(roots, operands, fast=fast),
        "",
        *_HELPERS,
        *_kernel(program, tensors, operands, name),
        "",
        *host(program, tensors, name, f"cute.ceil_div(planes * GROUPS * CHUNKS, THREADS // {WARP})"),
    )
    return KernelText(lines, tensors)


_HELPERS = (
    "def turned(g, plane, channel, position):",
    '    """This thread\'s channels of its positions, which lie position by position, in fp32."""',
    "    tiles = cute.zipped_divide(g, (vector,))",
    "    fragment = cute.make_rmem_tensor((vector, vector), g.element_type)",
    "    for w in range(vector):",
    "        row = plane * POSITIONS_IN_ALL + position + w",
    "        at = row * (CHANNELS_IN_ALL // vector) + channel // vector",
    "        cute.autovec_copy(tiles[None, at], fragment[None, w])",
    "    return fragment.load().to(cutlass.Float32)",
    "",
    "def of_channels(g, channel):",
    '    """An element for each of this thread\'s channels, in fp32."""',
    "    fragment = cute.make_rmem_tensor((vector, vector), cutlass.Float32)",
    "    for d in range(vector):",
    "        value = g[channel + d].to(cutlass.Float32)",
    "        for w in range(vector):",
    "            fragment[d, w] = value",
    "    return fragment.load()",
    "",
    "def in_order(g, plane, channel, position):",
    '    """This thread\'s elements of a tensor that lies channel by channel, in fp32."""',
    "    tiles = cute.zipped_divide(g, (vector,))",
    "    fragment = cute.make_rmem_tensor((vector, vector), cutlass.Float32)",
    "    for d in range(vector):",
    "        row = cute.make_rmem_tensor(vector, g.element_type)",
    "        cute.autovec_copy(tiles[None, place_of(plane, channel + d, position)], row)",
    "        for w in range(vector):",
    "            fragment[d, w] = row[w].to(cutlass.Float32)",
    "    return fragment.load()",
    "",
    "def place_of(plane, channel, position):",
    '    """The access of a channel\'s positions, where a tensor lies channel by channel."""',
    "    return (plane * CHANNELS_IN_ALL + channel) * (POSITIONS_IN_ALL // vector) + position // vector",
    "",
    "def store(result, g, plane, channel, position):",
    "    tiles = cute.zipped_divide(g, (vector,))",
    "    fragment = cute.make_rmem_tensor((vector, vector), g.element_type)",
    "    fragment.store(result.to(g.element_type))",
    "    for d in range(vector):",
    "        row = cute.make_rmem_tensor(vector, g.element_type)",
    "        for w in range(vector):",
    "            row[w] = fragment[d, w]",
    "        cute.autovec_copy(row, tiles[None, place_of(plane, channel + d, position)])",
    "",
)


def _kernel(program: Program, tensors: Tensors, operands: tuple[Operand, ...], name: str) -> list[str]:
    texts = {
        "turned": "turned({}, plane, channel, position)",
        "of a channel": "of_channels({}, channel)",
        "in order": "in_order({}, plane, channel, position)",
        "single": "{}[0].to(cutlass.Float32)",
    }
    calls = [texts[kind_of(program, o)].format(o.access.gmem) for o in operands]
    results = ", ".join(s.local for s in tensors.stores)
    return [
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        f"    warp, lane = bidx * (THREADS // {WARP}) + tidx // {WARP}, tidx % {WARP}",
        "    group, chunk, plane = warp % GROUPS, warp // GROUPS % CHUNKS, warp // (GROUPS * CHUNKS)",
        "    channel = (group * LANES + lane % LANES) * vector",
        "    position = (chunk * BESIDE + lane // LANES) * vector",
        f"    planes = cute.size({tensors.stores[0].gmem}) // (CHANNELS_IN_ALL * POSITIONS_IN_ALL)",
        "    if (channel < CHANNELS_IN_ALL) & (position < POSITIONS_IN_ALL) & (plane < planes):",
        f"        {results} = compute({', '.join(calls)})",
        *(f"        store({s.local}, {s.gmem}, plane, channel, position)" for s in tensors.stores),
    ]
