"""Factors that the kernel reads as they are: where they lie, or copied first to where it can be fed from. Text of a
candidate file."""

from __future__ import annotations

from collections.abc import Mapping

from .accesses import Access
from .product_engine import Engine
from .product_views import Views

PACK = '''
@cute.kernel
def pack(matrix: cute.Tensor, packed: cute.Tensor, across: cutlass.Constexpr):
    """A copy whose lines start at multiples of 16 bytes and end in zeros; a thread has 8 values of a line. `across`:
    neighbouring threads take neighbouring lines, else neighbouring places of one."""
    tidx, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    lines, inside = cute.size(matrix, mode=[0]), cute.size(matrix, mode=[1])
    places = cute.size(packed, mode=[1]) // 8
    number = block * 256 + tidx
    batch, number = number // (lines * places), number % (lines * places)
    line, place = number // places, number % places
    if cutlass.const_expr(across):
        line, place = number % lines, number // lines
    values = cute.make_rmem_tensor((8,), packed.element_type)
    if batch < cute.size(packed, mode=[2]):
        for i in cutlass.range_constexpr(8):
            values[i] = packed.element_type(0)
            if place * 8 + i < inside:
                values[i] = matrix[line, place * 8 + i, batch]
        cute.autovec_copy(values, cute.zipped_divide(packed[line, None, batch], (8,))[None, place])
'''

BUFFER = """
step = cute.assume(cutlass.Int64({lines}) * ({pitch}), divby=8)
buffer = cute.make_ptr({factor}, at, cute.AddressSpace.gmem, assumed_align=16)
packed = cute.make_tensor(buffer, cute.make_layout(({lines}, {pitch}, batches), stride=({pitch}, 1, step)))
pack({matrix}, packed, {across}).launch(
    grid=[cute.ceil_div(cute.size(packed), 2048), 1, 1], block=[256, 1, 1], stream=stream
)
{side}_parts = cute.make_tensor(buffer, cute.make_layout(({group}, DEPTH, batches), stride=({strides}, step)))
at += {bytes} * batches * step
"""


def is_by_lines(views: Views, engine: Engine, access: Access) -> bool:
    """Whether the kernel reads the factor with its depth contiguous, else with its lines side by side."""
    return engine.whole_stages or views.is_by_lines(access) or not views.is_side_by_side(access)


def in_place(views: Views, engine: Engine, access: Access, k: int) -> bool:
    return views.is_in_place(access, stages_of=k if engine.whole_stages else 0)


def packing(views: Views, engine: Engine, k: int) -> list[str]:
    """Statements that give the kernel's `left_parts` and `right_parts`. `k`: values of depth in a stage."""
    lines = ["at = mWork.iterator.toint()"]
    for access, side, group in ((views.left, "left", "rows"), (views.right, "right", "columns")):
        copied = _buffer(views, engine, access, side, group)
        if in_place(views, engine, access, k):
            lines += [f"{side}_parts = {side}", "if cutlass.const_expr(vector == 1):"]
            copied = [f"    {line}" for line in copied]
        lines += copied
    return lines


def _buffer(views: Views, engine: Engine, access: Access, side: str, group: str) -> list[str]:
    if is_by_lines(views, engine, access):
        words = {"lines": group, "pitch": "PITCH", "matrix": side, "strides": "PITCH, 1"}
    else:
        turned = f"cute.make_tensor({side}.iterator, cute.select({side}.layout, mode=[1, 0, 2]))"
        pitch = f"cute.ceil_div({group}, 8) * 8"
        words = {"lines": "DEPTH", "pitch": pitch, "matrix": turned, "strides": f"1, {pitch}"}
    words |= {"side": side, "group": group, "across": str(engine.whole_stages and not views.is_by_lines(access))}
    return [filled(line, words) for line in BUFFER.strip("\n").split("\n")]


def filled(line: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        line = line.replace(f"{{{word}}}", value)
    return line


def packed_size(views: Views, engine: Engine, k: int, counts: Mapping[str, str]) -> str:
    """fp32 values of workspace for the copies, as an expression of the file's launcher: of factors that lie well, only
    where tensors start at odd places."""
    sizes = {True: ["4"], False: ["4"]}
    for access, group in ((views.left, "rows"), (views.right, "columns")):
        lines, batches = counts[group], counts["batches"]
        size = f"{batches} * ({lines}) * PITCH * {views.factor_bytes} // 4"
        if not is_by_lines(views, engine, access):
            size = f"{batches} * DEPTH * (({lines} + 7) // 8 * 8) * {views.factor_bytes} // 4"
        for aligned in (True, False):
            if not (aligned and in_place(views, engine, access, k)):
                sizes[aligned].append(size)
    if sizes[True] == sizes[False]:
        return " + ".join(sizes[True])
    return f"({' + '.join(sizes[True])} if aligned else {' + '.join(sizes[False])})"
