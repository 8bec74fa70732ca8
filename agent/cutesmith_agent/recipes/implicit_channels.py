"""Reductions over a convolution's channels (softmax, minimum) in its kernel: text of a candidate file, for Hopper.

A tile has all channels of its positions. A thread has some channels of two positions, as vectors; the four threads of a
position reduce theirs and exchange what they have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import implicit_finish, implicit_rows
from .accesses import Access
from .contract import Unsupported
from .implicit_epilogue import Ending
from .ir import Load, Reduce
from .passes import COMBINE, NEUTRAL, REDUCE_OP
from .product_engine import placed
from .rows import RowEmitter, RowSchedule
from .text import NOUNS, Writer, helpers

if TYPE_CHECKING:
    from .implicit import Windows

FINISH = '''
@cute.jit
def finish(
    total: cute.Tensor,
    places: cute.Tensor,
    undo: cutlass.Float32,
    phase: cutlass.Constexpr,
    n: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
    {own}
    {parameters}
):
    """A warpgroup's results, at positions from (z, y, x) on, to memory: a thread's two positions one by one."""
    {once}
    for line in cutlass.range_constexpr(2):
        row = places[2 * line][0]
        {place}
        at_z, at_y, at_x, inside = result_of(z, y + row // 8, x + row % 8, phase)
        at = n, cutlass.min(at_z, RESULTS_Z - 1), cutlass.min(at_y, RESULTS_Y - 1), cutlass.min(at_x, RESULTS_X - 1)
        convolved = convolution_at(total, places, line, undo, at, source, weight, weight_undo)
        {body}

@cute.jit
def convolution_at(
    total: cute.Tensor,
    places: cute.Tensor,
    line: cutlass.Constexpr,
    undo: cutlass.Float32,
    at,
    source: cute.Tensor,
    weight: cute.Tensor,
    weight_undo: cute.Tensor,
):
    """A position's values of the convolution in a thread's channels: by fp32 arithmetic where they are not finite."""
    n, z, y, x = at
    values = cute.make_rmem_tensor((TILE_N // 4,), cutlass.Float32)
    for k in cutlass.range_constexpr(TILE_N // 4):
        channel = channel_of(places, k)
        values[k] = unscaled(total[k // 2 * 4 + k % 2 + 2 * line], undo, weight_undo[channel])
    watch = cutlass.Float32((values.load() * 0.0).reduce(cute.ReductionOp.ADD, 0.0, 0))
    if cute.arch.vote_any_sync(watch != 0.0):
        for turn in cutlass.range(TILE_N // 4, unroll=1):
            again = plain(source, weight, n, channel_of(places, turn), z, y, x)
            for k in cutlass.range_constexpr(TILE_N // 4):  # an index that varies would take values from registers
                values[k] = again if turn == k else values[k]
    return values.load()

def channel_of(places, k):
    """A thread's k-th channel; past the last one the last."""
    return cutlass.min(places[k // 2 * 4 + k % 2][1], OUT_CHANNELS - 1)

def over_channels(values, op, combine, neutral):
    """A thread's values, and those of the three others that have the position, to one."""
    value = cutlass.Float32(values.reduce(op, neutral, 0))
    return cute.arch.warp_reduction(value, combine, threads_in_group=4)
'''

LOAD = '''
def load(g, at, places):
    """What lies at a position, in a thread's channels, in fp32."""
    n, z, y, x = at
    values = cute.make_rmem_tensor((TILE_N // 4,), cutlass.Float32)
    for k in range(TILE_N // 4):
        values[k] = g[n, channel_of(places, k), z, y, x].to(cutlass.Float32)
    return values.load()
'''

KEEP = '''
@cute.jit
def keep(values, places: cute.Tensor, neutral: cutlass.Constexpr):
    """`values`, with `neutral` in channels past the last one."""
    kept = cute.make_rmem_tensor((TILE_N // 4,), cutlass.Float32)
    kept.store(values)
    for k in cutlass.range_constexpr(TILE_N // 4):
        kept[k] = kept[k] if places[k // 2 * 4 + k % 2][1] < OUT_CHANNELS else cutlass.Float32(neutral)
    return kept.load()
'''

STORE = '''
@cute.jit
def store(results, g: cute.Tensor, at, places: cute.Tensor, inside: cutlass.Boolean):
    """A position's results in a thread's channels."""
    n, z, y, x = at
    values = cute.make_rmem_tensor((TILE_N // 4,), g.element_type)
    values.store(results.to(g.element_type))
    if inside:
        for k in cutlass.range_constexpr(TILE_N // 4):
            channel = places[k // 2 * 4 + k % 2][1]
            if cutlass.const_expr(OUT_CHANNELS % TILE_N == 0):
                g[n, channel, z, y, x] = values[k]
            elif channel < OUT_CHANNELS:
                g[n, channel, z, y, x] = values[k]
'''

KEEP_RESULTS = '''
def keep_results(results, turned, places, place):
    """A position's results in a thread's channels to shared memory, at this place in the tile."""
    values = cute.make_rmem_tensor((TILE_N // 4,), cutlass.Float32)
    values.store(results)
    for k in range(TILE_N // 4):
        turned[place, places[k // 2 * 4 + k % 2][1]] = values[k]

@cute.jit
def write(
    turned: cute.Tensor,
    phase: cutlass.Constexpr,
    tidx: cutlass.Int32,
    n: cutlass.Int32,
    z: cutlass.Int32,
    y: cutlass.Int32,
    x: cutlass.Int32,
    g: cute.Tensor,
):
    """Results of a tile from (z, y, x) on to memory."""
    place, beside = tidx % PLANE, tidx // PLANE
    z, y, x, inside = result_in_row(place, phase, z, y, x)
    if inside:
        line = g[n, None, z, y, x]
        for c in cutlass.range(beside, OUT_CHANNELS, BESIDE, unroll=8):
            line[c] = turned[place, c].to(g.element_type)
'''

TILE = """
if cutlass.const_expr(phase % STEP_X == 0):
    cute.arch.sync_threads()  # what was there before has been written
{finish}
if cutlass.const_expr(phase % STEP_X == STEP_X - 1):
    cute.arch.sync_threads()
    write(turned, phase, tidx, n, z, y, x, {result})
"""

TAKEN = (
    *("total", "places", "undo", "phase", "n", "z", "y", "x", "source", "weight", "weight_undo", "row", "at_z", "at_y"),
    *("at_x", "inside", "values", "convolved", "plain", "result_of", "unscaled", "over_channels", "channel_of"),
)


@dataclass
class ChannelEmitter(RowEmitter):
    """Writes what becomes of a position's channels."""

    padded: bool = False  # a tile has channels past the last one
    in_rows: bool = False  # results go by way of shared memory
    once: list[str] = field(default_factory=list)  # what positions share

    def _load(self, e: Load) -> None:
        access = self.access[id(e)]
        name = self.writer.name(e, access.local)
        if not access.per_column:
            self.writer.lines.append(f"{name} = {access.gmem}[n, 0, at[1], at[2], at[3]].to(cutlass.Float32)")
        elif any(e.strides[:-1]):
            self.writer.lines.append(f"{name} = load({access.gmem}, at, places)")
        else:
            self.once.append(f"{name} = load({access.gmem}, (0, 0, 0, 0), places)")

    def _reduce(self, e: Reduce) -> None:
        if not e.arg.per_column or e.kind not in NEUTRAL:
            raise Unsupported(f"no recipe covers this {e.kind} over a convolution's channels")
        arg = self.writer.write(e.arg)
        kept = f"keep({arg}, places, {NEUTRAL[e.kind]})" if self.padded else arg
        how = f"cute.ReductionOp.{REDUCE_OP[e.kind]}, {COMBINE[e.kind]}, {NEUTRAL[e.kind]}"
        name = self.writer.name(e, NOUNS[e.kind].replace("row_", "channels_"))
        self.writer.lines.append(f"{name} = over_channels({kept}, {how})")

    def _store(self, store: Access, expr: object) -> None:
        assert store.store is not None
        value = self.writer.write(store.store.expr)
        if store.per_column and self.in_rows:
            self.writer.lines.append(f"keep_results({value}, turned, places, place)")
        elif store.per_column:
            self.writer.lines.append(f"store({value}, {store.gmem}, at, places, inside)")
        else:
            self.writer.lines += [
                "if inside and cute.arch.lane_idx() % 4 == 0:",
                f"    {store.gmem}[n, 0, at_z, at_y, at_x] = ({value}).to({store.gmem}.element_type)",
            ]


OWN = "turned: cute.Tensor,\ncorner: cutlass.Int32,"
PLACE = "place = corner + row // 8 * ROW + row % 8 * STEP_X + phase % STEP_X"


def over_channels(windows: Windows, *, padded: bool, fast: bool, in_rows: bool) -> Ending:
    """From sums to results. `padded`: a tile has channels past the last one; `fast`: sums are as precise as TF32."""
    writer = Writer(fast, rough=True, taken={*TAKEN})
    writer.names[id(windows.result)] = "convolved"
    schedule = RowSchedule(1, 4, 1, 0)
    emitter = ChannelEmitter(windows.program, schedule, windows.tensors, writer, padded=padded, in_rows=in_rows)
    body = emitter.straight()
    lines = [*emitter.once, *body]
    finish = FINISH
    for mark, block in (
        ("{once}", "\n".join(emitter.once)),
        ("{body}", "\n".join(body)),
        ("{own}", OWN if in_rows else ""),
        ("{place}", PLACE if in_rows else ""),
    ):
        finish = placed(finish, mark, block)
    own = "turned, (own_z * TILE_Y + own_y) * ROW + own_x * STEP_X, " if in_rows else ""
    call = f"finish(total, places, undo, phase, n, z + own_z, y + own_y, x + own_x, {own}{{tensors}})"
    helping = ((" load(", LOAD), ("keep(", KEEP), ("store(", STORE), ("keep_results(", KEEP_RESULTS))
    functions = (
        *((implicit_rows.PLACES,) if in_rows else ()),
        "\n".join(helpers(body)),
        implicit_finish.PLACES,
        *(text for sign, text in helping if any(sign in line for line in lines)),
        finish,
        implicit_finish.PLAIN,
    )
    if not in_rows:
        return Ending(functions, call)
    tile = placed(TILE, "{finish}", call).replace("{result}", windows.tensors.stores[0].gmem)
    return Ending(functions, tile, implicit_rows.STATES)
