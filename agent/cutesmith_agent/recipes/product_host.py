"""The host function of a product: views, workspace, launches. Text of a candidate file."""

from __future__ import annotations

from .accesses import Access
from .pointwise import parameters
from .product_engine import Engine
from .product_finish import Finish
from .product_pack import packed_size, packing
from .product_views import Views

SIDES = (("left", "rows"), ("right", "columns"))

PLACE = '''
def place(work, down, across):
    """The tile and the batch of a piece of work: `GROUP` rows of tiles at a time, so that L2 keeps what they share."""
    within = work % (down * across)
    first = within // (GROUP * across) * GROUP
    height = cutlass.min(GROUP, down - first)
    within -= first * across
    return first + within % height, within // height, work // (down * across)
'''

PARTS = '''
def parts_at(pointer, lines, batches):
    """The two parts of a matrix in the workspace: as TMA reads them, and as they are written."""
    step = cute.assume(cutlass.Int64(lines) * PITCH, divby=8)  # or 16-byte accesses would not be known to be aligned
    read = cute.make_layout((lines, DEPTH, 2 * batches), stride=(PITCH, 1, step))
    written = cute.make_layout((lines, PITCH, batches, 2), stride=(PITCH, 1, 2 * step, step))
    return cute.make_tensor(pointer, read), cute.make_tensor(pointer, written)
'''

WORKSPACE = """
work = cute.make_ptr(cutlass.Float32, mWork.iterator.toint(), cute.AddressSpace.gmem, assumed_align=16)
halves = cute.recast_ptr(work, dtype=cutlass.Float16)
left_parts, left_written = parts_at(halves, rows, batches)
after = cute.assume(cutlass.Int64(rows) * (2 * batches * PITCH), divby=8)
right_parts, right_written = parts_at(halves + after, columns, batches)
undo = work + cutlass.Int64(rows + columns) * (batches * PITCH)
right_undo = cute.make_tensor(undo, cute.make_layout((columns, batches)))
left_undo = cute.make_tensor(undo + columns * batches, cute.make_layout((rows, batches)))
rest = undo + batches * (rows + columns)
"""

SPLIT_LINES = """
split_lines({side}, {side}_written, {side}_undo, {width}).launch(
    grid=[cute.ceil_div(cute.size({side}_undo), LINES_PER_BLOCK), 1, 1], block=[256, 1, 1], stream=stream
)
"""

SPLIT_ACROSS = """
slices = cute.make_tensor(cute.recast_ptr(rest, dtype=cutlass.Int32), cute.make_layout(({lines}, SLICES, batches)))
blocks = cute.ceil_div({lines}, 32) * batches
find_peaks({side}, slices).launch(grid=[blocks, SLICES, 1], block=[256, 1, 1], stream=stream)
split_across({side}, slices, {side}_written, {side}_undo).launch(
    grid=[blocks, cute.ceil_div(PITCH, 128), 1], block=[256, 1, 1], stream=stream
)
"""

REST = "rest = cute.make_ptr(cutlass.Float32, at, cute.AddressSpace.gmem, assumed_align=16)"

PARTIALS = """
partials = cute.make_tensor(
    rest, cute.make_layout((rows, columns, batches * SPLITS), stride=(columns, 1, rows * columns))
)
"""

COMBINE = """
combine(partials, {tensors}).launch(
    grid=[rows, cute.ceil_div(columns, 256), batches], block=[256, 1, 1], stream=stream
)
"""


SPLIT = ("left", "right", "left_undo", "right_undo")  # what finishing a tile of split factors needs besides


def tensors_of(views: Views, finish: Finish) -> tuple[str, ...]:
    """What finishes a tile, by its names in the text."""
    if views.is_half:
        return finish.tensors
    return (*(SPLIT[:2] if views.is_direct else SPLIT), *finish.tensors)


def scratch(views: Views, engine: Engine, k: int, *, split: bool) -> str:
    """fp32 values of workspace, as an expression of the file's launcher: both factors' parts and scales, then what the
    largest magnitudes need before the product, and the sums of a split depth after it."""
    results = f"{views.tensors.outputs[0]}.numel()"
    rows, columns, batches = (views.count(group, results) for group in ("rows", "columns", "batches"))
    if views.is_whole:
        size = packed_size(views, engine, k, {"rows": rows, "columns": columns, "batches": batches})
    else:
        lines = f"({rows} + {columns})" if batches == "1" else f"({batches}) * ({rows} + {columns})"
        size = f"{lines} * (PITCH + 1 + SLICES)"
    return f"{size} + SPLITS * {results}" if split else size


def host(views: Views, finish: Finish, engine: Engine, name: str, *, k: int, split: bool) -> list[str]:
    results = f"cute.size({views.tensors.stores[0].param})"
    counts = ", ".join(views.count(group, results) for group in ("rows", "columns", "batches"))
    tensors = tensors_of(views, finish)
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(views.tensors))
    launch = engine.host.replace("{name}", name).replace(
        "{tensors}", "partials," if split else "\n    ".join(f"{tensor}," for tensor in tensors)
    )
    body = [
        f"rows, columns, batches = {counts}",
        *(f"{side} = {views.operand(_side(views, side), lines)}" for side, lines in SIDES),
        *(f"{a.gmem} = {views.around(a)}" for a in (*finish.operands, *finish.outputs)),
        *(packing(views, engine, k) if views.is_whole else _splitting(views)),
        *_lines(REST if split and views.is_whole else ""),
        *_lines(PARTIALS if split else ""),
        *_lines(launch),
        *_lines(COMBINE.replace("{tensors}", ", ".join(tensors)) if split else ""),
    ]
    return [
        "@cute.jit",
        f"def {name}({arguments}, mWork: cute.Tensor, stream: CUstream):",
        *(f"    {line}" if line else "" for line in body),
        "",
        f"return {name}",
    ]


def _side(views: Views, side: str) -> Access:
    return views.left if side == "left" else views.right


def _lines(text: str) -> list[str]:
    lines: list[str] = text.strip("\n").splitlines()
    return lines


def _splitting(views: Views) -> list[str]:
    return [*_lines(WORKSPACE), *(line for side, lines in SIDES for line in _splitting_of(views, side, lines))]


def _splitting_of(views: Views, side: str, lines: str) -> list[str]:
    access = _side(views, side)
    if not views.is_by_lines(access):
        return _lines(SPLIT_ACROSS.replace("{side}", side).replace("{lines}", lines))
    width = "8 if vector > 1 else 1" if views.width(access) > 1 else "1"
    return _lines(SPLIT_LINES.replace("{side}", side).replace("{width}", width))
