"""From sums of products to results: text of a candidate file."""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Access, Tensors
from .ir import Expr, Load
from .text import Writer, helpers
from .triangles import Triangle

TAKEN = ("total", "kept", "result")


@dataclass(frozen=True)
class Finish:
    """The epilogue of a product, and the tensors that it reads and writes besides."""

    lines: tuple[str, ...]
    operands: tuple[Access, ...]
    outputs: tuple[Access, ...]

    @property
    def tensors(self) -> tuple[str, ...]:
        """In the order in which functions of the file take them."""
        return tuple(a.gmem for a in (*self.operands, *self.outputs))


SETTLE = '''
def unscaled(total, one, other):
    """Without both lines' powers of two, the smaller first: neither step leaves fp32's range before its result does."""
    return total * cutlass.min(one, other) * cutlass.max(one, other)

def settle(sums, row, column, batch, left_undo, right_undo):
    """Takes the lines' powers of two out of sums of neighbouring columns; whether all are numbers."""
    one, others = left_undo[row, batch], neighbours(right_undo[None, batch], column, cute.size(sums))
    numbers = cutlass.Boolean(True)
    for i in range(cute.size(sums)):
        sums[i] = unscaled(sums[i], one, others[i])
        numbers = numbers & (sums[i] == sums[i])
    return numbers
'''

DIRECT_SETTLE = '''
def settle(sums):
    """Whether all sums are finite."""
    numbers = cutlass.Boolean(True)
    for i in range(cute.size(sums)):
        numbers = numbers & (sums[i] - sums[i] == 0.0)
    return numbers
'''

PLAIN = '''
@cute.jit
def plain(left: cute.Tensor, right: cute.Tensor, row: cutlass.Int32, column: cutlass.Int32, batch: cutlass.Int32):
    """A sum with Inf or NaN in it, by fp32 arithmetic: split values would add what the product has not."""
    total = cutlass.Float32(0)
    for k in cutlass.range(DEPTH):
        total += left[row, k, batch] * right[column, k, batch]
    return total

@cute.jit
def again(
    row: cutlass.Int32,
    column: cutlass.Int32,
    batch: cutlass.Int32,
    {parameters}
):
    """A result by fp32 arithmetic{where}."""
    {again}
'''

AGAIN = """
undo = left_undo[row, batch] + right_undo[column, batch]
if undo != undo:
    one = cute.make_rmem_tensor((1,), cutlass.Float32)
    one[0] = plain(left, right, row, column, batch)
    store(one, row, column, batch, {outside})
"""

DIRECT_AGAIN = """
one = cute.make_rmem_tensor((1,), cutlass.Float32)
one[0] = plain(left, right, row, column, batch)
store(one, row, column, batch, {outside})
"""

NEIGHBOURS = '''
def neighbours(line, at, width):
    """Elements of a line from `at` on, in one access."""
    found = cute.make_rmem_tensor((width,), line.element_type)
    cute.autovec_copy(cute.zipped_divide(line, (width,))[None, at // width], found)
    return found
'''

STORE = '''
def store(sums, row, column, batch, {tensors}):
    """Results of neighbouring columns, in one access."""
    width = cute.size(sums)
{made}
    for i in range(width):
        {results} = epilogue({arguments})
{stores}
'''

TILE = '''
@cute.jit
def finish(
    total: cute.Tensor,
    places: cute.Tensor,
    first_row: cutlass.Int32,
    first_column: cutlass.Int32,
    batch: cutlass.Int32,
    {parameters}
):
    """A thread's part of a tile through the epilogue to memory."""
    rows, columns = cute.size({result}, mode=[0]), cute.size({result}, mode=[1])
    {numbers}
    sums = cute.make_rmem_tensor((RUN,), cutlass.Float32)
    for four in cutlass.range_constexpr(cute.size(total) // 4):  # two columns in each of two rows
        for i in cutlass.range_constexpr(four * 4, four * 4 + 4, RUN):
            row, column = first_row + places[i][0], first_column + places[i][1]
            if row < rows and column < columns:
                for k in cutlass.range_constexpr(RUN):
                    sums[k] = total[i + k]
                {settle}
                store(sums, row, column, batch, {outside})
    {once_more}
'''

TILE_ONCE_MORE = """
if not numbers:
    for i in cutlass.range(cute.size(total), unroll=1):
        row, column = first_row + places[i][0], first_column + places[i][1]
        if row < rows and column < columns:
            again(row, column, batch, {tensors})
"""

STAGED_TILE = '''
@cute.jit
def finish(
    total: cute.Tensor,
    corner: cute.Tensor,
    warp: cutlass.Int32,
    first_row: cutlass.Int32,
    first_column: cutlass.Int32,
    batch: cutlass.Int32,
    {parameters}
):
    """A warp's 16 rows of a tile through the epilogue to memory: turned in shared memory, 32 columns at a time, so that
    neighbouring threads have neighbouring results."""
    rows, columns = cute.size({result}, mode=[0]), cute.size({result}, mode=[1])
    lane = cute.arch.lane_idx()
    over, along = lane // (32 // RUN), lane % (32 // RUN) * RUN
    first_row += 16 * warp
    {numbers}
    two = cute.make_rmem_tensor((2,), cutlass.Float32)
    sums = cute.make_rmem_tensor((RUN,), cutlass.Float32)
    for piece in cutlass.range_constexpr(TILE_N // 32):
        for j in cutlass.range_constexpr(8):  # two columns, of four times eight, in each of two rows
            two[0], two[1] = total[16 * piece + 2 * j], total[16 * piece + 2 * j + 1]
            pairs = cute.zipped_divide(corner[lane // 4 + j % 2 * 8, None], (2,))
            cute.autovec_copy(two, pairs[None, j // 2 * 4 + lane % 4])
        cute.arch.sync_warp()
        column = first_column + 32 * piece + along
        for step in cutlass.range(16 // RUN, unroll=4):
            row = first_row + step * RUN + over
            if row < rows and column < columns:
                runs = cute.zipped_divide(corner[step * RUN + over, None], (RUN,))
                cute.autovec_copy(runs[None, along // RUN], sums)
                {settle}
                store(sums, row, column, batch, {outside})
        cute.arch.sync_warp()
    {once_more}
'''

STAGED_ONCE_MORE = """
if cute.arch.vote_any_sync(numbers ^ True):  # a thread's places here are not those above
    for place in cutlass.range(16 * TILE_N // 32, unroll=1):
        row, column = first_row + place % 16, first_column + place // 16 * 32 + lane
        if row < rows and column < columns:
            again(row, column, batch, {tensors})
"""

PARTIAL = '''
@cute.jit
def keep_partial(
    total: cute.Tensor,
    places: cute.Tensor,
    first_row: cutlass.Int32,
    first_column: cutlass.Int32,
    partials: cute.Tensor,
):
    """A thread's part of a tile as it is, for `combine`."""
    rows, columns = partials.shape
    for four in cutlass.range_constexpr(cute.size(total) // 4):
        for i in cutlass.range_constexpr(four * 4, four * 4 + 4):
            row, column = first_row + places[i][0], first_column + places[i][1]
            if row < rows and column < columns:
                partials[row, column] = total[i]
'''

KEEP = "keep_partial(total, places, first_row, first_column, partials[None, None, z])"

COMBINE = '''
@cute.kernel
def combine(
    partials: cute.Tensor,
    {parameters}
):
    """Adds up what blocks summed over parts of the depth, always in the same order, and finishes it."""
    tidx, _, _ = cute.arch.thread_idx()
    row, block, batch = cute.arch.block_idx()
    column = block * 256 + tidx
    if column < cute.size(partials, mode=[1]):
        sums = cute.make_rmem_tensor((1,), cutlass.Float32)
        sums[0] = cutlass.Float32(0)
        for part in cutlass.range(SPLITS, unroll=4):
            sums[0] = sums[0] + partials[row, column, batch * SPLITS + part]
        {numbers}
        {settle}
        store(sums, row, column, batch, {outside})
        {once_more}
'''

COMBINE_ONCE_MORE = """
if not numbers:
    again(row, column, batch, {tensors})
"""


def finish_of(
    tensors: Tensors,
    total: Expr,
    own: tuple[Load, ...],
    triangle: Triangle | None = None,
    *,
    rough: bool = False,
    fast: bool = False,
) -> Finish:
    """The epilogue's function, one result per output for one sum. `own`: the loads that `total` stands for;
    `rough`: quotients may be off by two roundings; `fast`: sums are no more precise than half precision."""
    operands = tuple(a for a in tensors.loads if a.load not in own)
    is_rounded = fast or all(access.dtype in ("float16", "bfloat16") for access in tensors.stores)
    writer = Writer(is_rounded, scalars=is_rounded, single=True, rough=rough)
    writer.taken.update(TAKEN)
    writer.names[id(total)] = "total"
    names = []
    for access in operands:
        assert access.load is not None
        names.append(writer.name(access.load, access.local))
    roots: tuple[Expr, ...] = tuple(a.store.expr for a in tensors.stores if a.store is not None)
    writer.count(roots)
    results = [writer.write(root) for root in roots]
    if triangle is not None:
        writer.lines.append(f"result = {results[0]}")
        results = ["result if kept else cutlass.Float32(0)"]
    body = [*writer.lines, f"return {', '.join(results)}"]
    parameters = ", ".join(f"{name}: cutlass.Float32" for name in ("total", *names))
    parameters += ", kept: cutlass.Boolean" if triangle is not None else ""
    lines = (
        *helpers(body),
        "@cute.jit",
        f"def epilogue({parameters}):",
        '    """Results from one sum of products, in fp32."""',
        *(f"    {line}" for line in body),
        "",
    )
    return Finish(lines, operands, tensors.stores)


def store_text(finish: Finish, column_strides: tuple[int, ...], triangle: Triangle | None = None) -> str:
    """`column_strides`: each operand's, from one column to the next; -1 where that is not one number."""
    names = [a.gmem for a in finish.outputs]
    values = [f"values_{k}" for k in range(len(names))] if len(names) > 1 else ["values"]
    made = [f"    {v} = cute.make_rmem_tensor((width,), {g}.element_type)" for v, g in zip(values, names, strict=True)]
    arguments = ["sums[i]"]
    for access, stride in zip(finish.operands, column_strides, strict=True):
        read, argument = _read(access, stride)
        made += read
        arguments.append(f"{argument}.to(cutlass.Float32)")
    if triangle is not None:
        arguments.append(f"column + i - row {triangle.sign} DIAGONAL")
    stores = []
    for value, gmem in zip(values, names, strict=True):
        stores.append(f"    vectors = cute.zipped_divide({gmem}[row, None, batch], (width,))")
        stores.append(f"    cute.autovec_copy({value}, vectors[None, column // width])")
    results = ["result" if len(names) == 1 else f"result_{k}" for k in range(len(names))]
    kept = [f"        {v}[i] = {r}.to({g}.element_type)" for v, r, g in zip(values, results, names, strict=True)]
    text = STORE.replace("{tensors}", ", ".join(finish.tensors)).replace("{made}", "\n".join(made))
    text = text.replace("{results}", ", ".join(results)).replace("{arguments}", ", ".join(arguments))
    return text.replace("{stores}", "\n".join((*kept, *stores)))


def _read(access: Access, stride: int) -> tuple[list[str], str]:
    """Statements that read an operand's elements for the store's columns, and the one for column i."""
    name = f"of_{access.gmem}"
    if stride == 1:
        return [f"    {name} = neighbours({access.gmem}[row, None, batch], column, width)"], f"{name}[i]"
    if stride == 0:
        return [f"    {name} = {access.gmem}[row, column, batch]"], name
    return [], f"{access.gmem}[row, column + i, batch]"
