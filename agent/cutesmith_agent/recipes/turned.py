"""Pointwise work on results that lie with their channels innermost, written with their channels outside.

PyTorch's convolutions are faster on channels-last tensors, and modules return ordinary ones: a block reads a tile of
positions and channels as it lies, turns it in shared memory, and writes rows of positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from . import turned_pools
from .accesses import Access, Tensors, pointer, tensors_of
from .ir import Load
from .layout import ITEMSIZE, coalesce, layout_text
from .lowering import Program
from .pointwise import KernelText, Operand, maths, operands_of, parameters, pools_of
from .strip_text import Element
from .strips import element_of
from .text import loads_of

Kind = Literal["turned", "pooled", "of a channel", "in order", "single"]


@dataclass(frozen=True)
class TurnedSchedule:
    threads: int
    channels: int  # of a tile
    positions: int  # of a tile
    vector: int

    def constants(self) -> tuple[tuple[str, int, str], ...]:
        return (
            ("THREADS", self.threads, "threads per block"),
            ("VECTOR", self.vector, "channels of an access"),
            ("CHANNELS", self.channels, "channels of a tile"),
            ("POSITIONS", self.positions, "positions of a tile"),
        )


@dataclass(frozen=True)
class Planes:
    """Results as (batch, channels, positions)."""

    channels: int
    positions: int

    @staticmethod
    def of(program: Program) -> Planes:
        return Planes(program.sizes[1], math.prod(program.sizes[2:]))


def applies(program: Program) -> bool:
    """Whether some operand lies with its channels innermost and all else is in order, or the same for a channel."""
    if program.has_reductions or len(program.sizes) < 3 or len(program.stores) != len(program.graph.outputs):
        return False
    roots = tuple(s.expr for s in program.stores)
    pools = pools_of(roots)
    if len(pools) > 1 or not all(turned_pools.fits(program, pool) for pool in pools):
        return False
    kinds = ["turned" if any(p.load is load for p in pools) else _kind(program, load) for load in loads_of(roots)]
    stores = all(tuple(s.strides) == _in_order(program) and s.offset == 0 for s in program.stores)
    return "turned" in kinds and None not in kinds and stores


def _in_order(program: Program) -> tuple[int, ...]:
    """Strides as results lie in memory; none where there is one element."""
    strides = (math.prod(program.sizes[k + 1 :]) for k in range(len(program.sizes)))
    return tuple(s if n > 1 else 0 for s, n in zip(strides, program.sizes, strict=True))


def _kind(program: Program, load: Load) -> Kind | None:
    planes = Planes.of(program)
    in_order = _in_order(program)
    if not any(load.strides):
        return "single"
    if load.strides == in_order and load.offset == 0:
        return "in order"
    if not any(load.strides[:1]) and not any(load.strides[2:]):
        return "of a channel"
    spatial = tuple(s * planes.channels for s in in_order[2:])
    own = (in_order[0], 1 if planes.channels > 1 else 0, *spatial)
    return "turned" if load.strides == own and load.offset == 0 else None


def schedules(program: Program) -> tuple[TurnedSchedule, ...]:
    """Best guess first, as measured on H200."""
    planes = Planes.of(program)
    narrow = min(ITEMSIZE[load.dtype] for load in loads_of(tuple(s.expr for s in program.stores)))
    vector = math.gcd(16 // narrow, planes.channels)
    found = []
    for threads, channels, positions in ((256, 32, 64), (256, 64, 64), (256, 64, 32), (128, 32, 32)):
        kept = min(channels, 1 << max(planes.channels - 1, 1).bit_length())
        if kept % vector == 0 and threads % positions == 0 and kept * positions % threads == 0:
            found.append(TurnedSchedule(threads, kept, positions, vector))
    return tuple(dict.fromkeys(found))


def emit(program: Program, name: str, *, fast: bool) -> KernelText:
    roots = tuple(s.expr for s in program.stores)
    tensors = tensors_of(program, loads_of(roots))
    operands = operands_of(roots, tensors)
    planes = Planes.of(program)
    turned = [o for o in operands if kind_of(program, o) in ("turned", "pooled")]
    pool = next((o.pool for o in operands if o.pool is not None), None)
    element = element_of(pool, tensors, fast=fast) if pool is not None else None
    lines = (
        f"CHANNELS_IN_ALL, POSITIONS_IN_ALL = {planes.channels}, {planes.positions}  # of a result",
        "TILES = (-(-POSITIONS_IN_ALL // POSITIONS), -(-CHANNELS_IN_ALL // CHANNELS))",
        "STEPS = CHANNELS * POSITIONS // THREADS  # results of a thread",
        "APART = THREADS // POSITIONS  # channels between them",
        "",
        *maths(roots, operands, fast=fast),
        "",
        *_HELPERS,
        *(turned_pools.fill_function(program, pool, element) if pool is not None else ()),
        *_kernel(program, tensors, operands, turned, element, name),
        "",
        *host(program, tensors, name, "planes * TILES[0] * TILES[1]"),
    )
    return KernelText(lines, tensors)


def kind_of(program: Program, operand: Operand) -> Kind:
    if operand.pool is not None:
        return "pooled"
    assert operand.access.load is not None
    kind = _kind(program, operand.access.load)
    assert kind is not None
    return kind


_HELPERS = (
    "@cute.jit",
    "def fill(g: cute.Tensor, sTile: cute.Tensor, plane, first_channel, first_position, tidx):",
    '    """A tile of `g`, whose channels lie side by side, into shared memory with its positions side by side."""',
    "    tiles = cute.zipped_divide(g, (vector,))",
    "    for j in cutlass.range_constexpr(-(-CHANNELS // vector * POSITIONS // THREADS)):",
    "        place = j * THREADS + tidx",
    "        channel, position = place % (CHANNELS // vector) * vector, place // (CHANNELS // vector)",
    "        inside = (first_position + position < POSITIONS_IN_ALL) & (first_channel + channel < CHANNELS_IN_ALL)",
    "        if inside & (position < POSITIONS):",
    "            row = plane * POSITIONS_IN_ALL + first_position + position",
    "            at = row * CHANNELS_IN_ALL + first_channel + channel",
    "            fragment = cute.make_rmem_tensor(vector, g.element_type)",
    "            cute.autovec_copy(tiles[None, at // vector], fragment)",
    "            for k in cutlass.range_constexpr(vector):",
    "                sTile[channel + k, position] = fragment[k].to(cutlass.Float32)",
    "",
    "def turned(sTile, channel, position, last_channel, last_position):",
    '    """This thread\'s results\' elements of a tile in shared memory; past its end those of its last ones."""',
    "    position = cutlass.min(position, last_position)",
    "    fragment = cute.make_rmem_tensor(STEPS, cutlass.Float32)",
    "    for step in range(STEPS):",
    "        fragment[step] = sTile[cutlass.min(channel + step * APART, last_channel), position]",
    "    return fragment.load()",
    "",
    "def of_channels(g, channel):",
    '    """An element for each channel of this thread\'s results, in fp32."""',
    "    fragment = cute.make_rmem_tensor(STEPS, cutlass.Float32)",
    "    for step in range(STEPS):",
    "        fragment[step] = g[cutlass.min(channel + step * APART, CHANNELS_IN_ALL - 1)].to(cutlass.Float32)",
    "    return fragment.load()",
    "",
    "def in_order(g, plane, channel, position):",
    '    """This thread\'s results\' elements of a tensor that lies as the results do, in fp32."""',
    "    fragment = cute.make_rmem_tensor(STEPS, cutlass.Float32)",
    "    for step in range(STEPS):",
    "        row = plane * CHANNELS_IN_ALL + cutlass.min(channel + step * APART, CHANNELS_IN_ALL - 1)",
    "        at = row * POSITIONS_IN_ALL + cutlass.min(position, POSITIONS_IN_ALL - 1)",
    "        fragment[step] = g[at].to(cutlass.Float32)",
    "    return fragment.load()",
    "",
    "@cute.jit",
    "def store(result, g: cute.Tensor, plane, channel, position):",
    "    fragment = cute.make_rmem_tensor(STEPS, g.element_type)",
    "    fragment.store(result.to(g.element_type))",
    "    for step in cutlass.range_constexpr(STEPS):",
    "        own = channel + step * APART",
    "        if (own < CHANNELS_IN_ALL) & (position < POSITIONS_IN_ALL):",
    "            g[(plane * CHANNELS_IN_ALL + own) * POSITIONS_IN_ALL + position] = fragment[step]",
    "",
)


def _kernel(
    program: Program,
    tensors: Tensors,
    operands: tuple[Operand, ...],
    turned: list[Operand],
    element: Element | None,
    name: str,
) -> list[str]:
    texts = {
        "pooled": "turned(sPooled, lane, place, last_channel, last_position)",
        "turned": "turned(s{0}, lane, place, last_channel, last_position)",
        "of a channel": "of_channels({1}, first_channel + lane)",
        "in order": "in_order({1}, plane, first_channel + lane, first_position + place)",
        "single": "{1}[0].to(cutlass.Float32)",
    }
    calls = [texts[kind_of(program, o)].format(o.access.gmem[1:], o.access.gmem) for o in operands]
    results = ", ".join(s.local for s in tensors.stores)
    rooms = [f"    {_tile(o)} = smem.allocate_tensor(cutlass.Float32, layout, 16)" for o in turned]
    place = "plane, first_channel, first_position, tidx"
    needed = "".join(f"{gmem}, " for gmem in (element.needed if element else ()))
    fills = [
        f"    fill({o.access.gmem}, {_tile(o)}, {place})"
        if o.pool is None
        else f"    fill_windows({o.access.gmem}, {needed}{_tile(o)}, {place})"
        for o in turned
    ]
    return [
        "@cute.kernel",
        f"def {name}_kernel({tensors.signature}):",
        "    tidx, _, _ = cute.arch.thread_idx()",
        "    bidx, _, _ = cute.arch.block_idx()",
        "    tile, plane = bidx % (TILES[0] * TILES[1]), bidx // (TILES[0] * TILES[1])",
        "    first_channel, first_position = tile % TILES[1] * CHANNELS, tile // TILES[1] * POSITIONS",
        "    smem = cutlass.memory.SmemAllocator()",
        "    layout = cute.make_layout((CHANNELS, POSITIONS), stride=(POSITIONS + 1, 1))",
        *rooms,
        *fills,
        "    cute.arch.sync_threads()",
        "    lane, place = tidx // POSITIONS, tidx % POSITIONS",
        "    last_channel, last_position = CHANNELS_IN_ALL - 1 - first_channel, POSITIONS_IN_ALL - 1 - first_position",
        f"    {results} = compute({', '.join(calls)})",
        *(
            f"    store({s.local}, {s.gmem}, plane, first_channel + lane, first_position + place)"
            for s in tensors.stores
        ),
    ]


def _tile(operand: Operand) -> str:
    """The shared memory of what is turned."""
    return "sPooled" if operand.pool is not None else f"s{operand.access.gmem[1:]}"


def host(program: Program, tensors: Tensors, name: str, blocks: str) -> list[str]:
    """The host function; `blocks`: how many are launched, of THREADS threads."""
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(tensors))
    views = [f"    {a.gmem} = cute.make_tensor({pointer(a)}, {_layout(program, a)})" for a in tensors.views]
    return [
        "@cute.jit",
        f"def {name}({arguments}, stream: CUstream):",
        f"    n = cute.size({tensors.stores[0].param})",
        *views,
        "    planes = n // (CHANNELS_IN_ALL * POSITIONS_IN_ALL)",
        f"    {name}_kernel({tensors.gmem}).launch(",
        f"        grid=[{blocks}, 1, 1], block=[THREADS, 1, 1], stream=stream",
        "    )",
        "",
        f"return {name}",
    ]


def _layout(program: Program, access: Access) -> str:
    if any(pool.load is access.load for pool in pools_of(tuple(s.expr for s in program.stores))):
        return f"cute.make_layout(cute.size({access.param}))"
    kind = _kind(program, access.load) if access.load is not None else "in order"
    if kind == "single":
        return "cute.make_layout(1)"
    if kind == "of a channel" and access.load is not None:
        return layout_text(coalesce(program.sizes[1:2], access.load.strides[1:2]), str(program.sizes[1]))
    return "cute.make_layout(n)"
