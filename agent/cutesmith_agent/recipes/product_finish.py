"""From sums of products to results: text of a candidate file."""

from __future__ import annotations

from dataclasses import dataclass

from .accesses import Access, Tensors
from .contraction import Contraction
from .ir import Expr
from .text import Writer, helpers

TAKEN = ("total", "row", "column", "batch")


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

@cute.jit
def plain(left: cute.Tensor, right: cute.Tensor, row: cutlass.Int32, column: cutlass.Int32, batch: cutlass.Int32):
    """A sum with Inf or NaN in it, by fp32 arithmetic: split values would add what the product has not."""
    total = cutlass.Float32(0)
    for k in cutlass.range(DEPTH):
        total += left[row, k, batch] * right[column, k, batch]
    return total
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
    """A thread's part of a tile: without scales, through the epilogue, to memory; what is not finite once more."""
    rows, columns = cute.size(left_undo, mode=[0]), cute.size(right_undo, mode=[0])
    finite = cutlass.Boolean(True)
    for four in cutlass.range_constexpr(cute.size(total) // 4):  # two columns in each of two rows
        for i in cutlass.range_constexpr(four * 4, four * 4 + 4):
            row = cutlass.min(first_row + places[i][0], rows - 1)
            column = cutlass.min(first_column + places[i][1], columns - 1)
            total[i] = unscaled(total[i], left_undo[row, batch], right_undo[column, batch])
            finite = finite & (total[i] == total[i])
    sums = cute.zipped_divide(cute.make_tensor(total.iterator, cute.size(total)), (PAIR,))
    for four in cutlass.range_constexpr(cute.size(total) // 4):
        for i in cutlass.range_constexpr(four * 4, four * 4 + 4, PAIR):
            row, column = first_row + places[i][0], first_column + places[i][1]
            if row < rows and column < columns:
                store(sums[None, i // PAIR], row, column, batch, {tensors})
    if not finite:
        one = cute.make_rmem_tensor((1,), cutlass.Float32)
        for i in cutlass.range(cute.size(total), unroll=1):
            row, column = first_row + places[i][0], first_column + places[i][1]
            if row < rows and column < columns:
                undo = left_undo[row, batch] + right_undo[column, batch]
                if undo != undo:
                    one[0] = plain(left, right, row, column, batch)
                    store(one, row, column, batch, {tensors})
'''

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
    if column < cute.size(right_undo, mode=[0]):
        total = cutlass.Float32(0)
        for part in cutlass.range(SPLITS, unroll=4):
            total += partials[row, column, batch * SPLITS + part]
        total = unscaled(total, left_undo[row, batch], right_undo[column, batch])
        if total != total:
            total = plain(left, right, row, column, batch)
        one = cute.make_rmem_tensor((1,), cutlass.Float32)
        one[0] = total
        store(one, row, column, batch, {tensors})
'''


def finish_of(tensors: Tensors, contraction: Contraction) -> Finish:
    """The epilogue's function, one result per output for one sum."""
    own = (contraction.left, contraction.right)
    operands = tuple(a for a in tensors.loads if a.load not in own)
    writer = Writer(False)
    writer.taken.update(TAKEN)
    writer.names[id(contraction.total)] = "total"
    reads = []
    for access in operands:
        assert access.load is not None
        name = writer.name(access.load, access.local)
        reads.append(f"{name} = {access.gmem}[row, column, batch].to(cutlass.Float32)")
    roots: tuple[Expr, ...] = tuple(a.store.expr for a in tensors.stores if a.store is not None)
    writer.count(roots)
    results = [writer.write(root) for root in roots]
    body = [*reads, *writer.lines, f"return {', '.join(results)}"]
    places = tuple(f"{name}: cutlass.Int32" for name in ("row", "column", "batch"))
    parameters = ", ".join(("total: cutlass.Float32", *places, *_annotated(operands)))
    lines = (
        *helpers(body),
        "@cute.jit",
        f"def epilogue({parameters}):",
        '    """Results from one sum of products, in fp32."""',
        *(f"    {line}" for line in body),
        "",
    )
    return Finish(lines, operands, tensors.stores)


def _annotated(accesses: tuple[Access, ...]) -> tuple[str, ...]:
    return tuple(f"{a.gmem}: cute.Tensor" for a in accesses)


def store_text(finish: Finish) -> str:
    names = [a.gmem for a in finish.outputs]
    values = [f"values_{k}" for k in range(len(names))] if len(names) > 1 else ["values"]
    arguments = ", ".join(("sums[i]", "row", "column + i", "batch", *(a.gmem for a in finish.operands)))
    made = [f"    {v} = cute.make_rmem_tensor((width,), {g}.element_type)" for v, g in zip(values, names, strict=True)]
    stores = []
    for value, gmem in zip(values, names, strict=True):
        stores.append(f"    vectors = cute.zipped_divide({gmem}[row, None, batch], (width,))")
        stores.append(f"    cute.autovec_copy({value}, vectors[None, column // width])")
    results = ["result" if len(names) == 1 else f"result_{k}" for k in range(len(names))]
    kept = [f"        {v}[i] = {r}.to({g}.element_type)" for v, r, g in zip(values, results, names, strict=True)]
    text = STORE.replace("{tensors}", ", ".join(finish.tensors)).replace("{made}", "\n".join(made))
    text = text.replace("{results}", ", ".join(results)).replace("{arguments}", arguments)
    return text.replace("{stores}", "\n".join((*kept, *stores)))
