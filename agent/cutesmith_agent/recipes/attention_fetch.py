"""How tiles of queries, keys and values come into shared memory, and how they lie there: text of a candidate file."""

from __future__ import annotations

FETCH = '''
def panels_of(columns):
    """Columns that lie beside each other in shared memory: a tile is cut into panels of 128 bytes at most."""
    return 64 if columns % 64 == 0 else 32 if columns % 32 == 0 else 16

PANELS = WIDTH_PADDED // panels_of(WIDTH_PADDED)  # of values

def tile_layout(lines, columns, parts, step):
    """`parts` tiles that are `step` values apart."""
    panel = panels_of(columns)
    shape = (lines, (panel, columns // panel), parts)
    return cute.make_layout(shape, stride=(panel, (1, lines * panel), step))

def swizzle_of(columns):
    """Of addresses, so that eight lines of a panel are in all banks."""
    return cute.make_swizzle({64: 3, 32: 2, 16: 1}[panels_of(columns)], 4, 3)

def turned_panel(pointer, panel):
    """A panel of values in each slot of the ring, as (column, key, slot)."""
    columns = panels_of(WIDTH_PADDED)
    layout = cute.make_layout((columns, TILE_KEYS, PARTS * STAGES), stride=(1, columns, SLOT))
    return cute.make_tensor(pointer + panel * columns * TILE_KEYS, layout)

def of_panel(total, panel):
    """A thread's part of a panel of results."""
    four, down, across = total.shape
    layout = cute.make_layout((four, down, across // PANELS), stride=((1, 2), 4, 4 * down))
    return cute.make_tensor(total.iterator + panel * cute.size(layout), layout)

@cute.jit
def fetch(copy: cute.CopyAtom, matrix: cute.Tensor, tile: cute.Tensor, first: cutlass.Int32, wide: cutlass.Constexpr):
    """Lines of a matrix from `first` on into shared memory, 8 values an access; zeros where the matrix has none."""
    tidx, _, _ = cute.arch.thread_idx()
    lines, columns = cute.size(tile, mode=[0]), cute.size(matrix, mode=[1])
    across = cute.size(tile, mode=[1]) // 8
    at_once = THREADS // across
    place, over = tidx % across, tidx // across
    values = cute.make_rmem_tensor((8,), tile.element_type)
    for step in cutlass.range_constexpr(-(-lines // at_once)):
        line = step * at_once + over
        if over < at_once and line < lines:
            into = cute.zipped_divide(tile[line, None], (8,))[None, place]
            if cutlass.const_expr(wide):
                if first + line < cute.size(matrix, mode=[0]) and place * 8 < columns:
                    cute.copy(copy, cute.zipped_divide(matrix[first + line, None], (8,))[None, place], into)
                else:
                    values.fill(0.0)
                    cute.autovec_copy(values, into)
            else:
                for i in cutlass.range_constexpr(8):
                    values[i] = tile.element_type(0.0)
                    if first + line < cute.size(matrix, mode=[0]) and place * 8 + i < columns:
                        values[i] = matrix[first + line, place * 8 + i]
                cute.autovec_copy(values, into)
'''

BRING = '''
@cute.jit
def bring(
    copy: cute.CopyAtom,
    matrix: cute.Tensor,
    ring: cute.Tensor,
    batch: cutlass.Int32,
    tile: cutlass.Int32,
    tiles: cutlass.Int32,
    slot: cutlass.Int32,
    wide: cutlass.Constexpr,
):
    """Starts to load a tile of keys or of values into a slot of the ring, if there is one."""
    if tile < tiles:
        for part in cutlass.range_constexpr(PARTS):
            own = PARTS * batch + part
            fetch(copy, matrix[None, None, own], ring[None, None, PARTS * slot + part], tile * TILE_KEYS, wide)
'''
