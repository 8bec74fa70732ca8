"""The functions of a kernel whose threads go down strips of windows."""

from __future__ import annotations

from dataclasses import dataclass

from .ir import WindowDim
from .pool_text import WHAT, is_wide, mean_text, plane_size, stays_inside, weight_terms
from .strip import Strip

COMBINED = {"max": "cute.arch.fmax({}, {}, nan=True)", "mean": "{} + {}"}
NEUTRAL = {"max": "-float('inf')", "mean": "0.0", "dot": "0.0"}


def strip_functions(strip: Strip) -> list[str]:
    """`windows(g, [w,] outer, first, x)`: what the ROWS windows from (first, x) on give."""
    pool = strip.pool
    weight = ", w: cute.Tensor" if pool.weight else ""
    lines = [*_start(strip), f"first_x = {strip.first('x', 'x')}", *_weights(strip)]
    lines += [
        "results = cute.make_rmem_tensor(ROWS, cutlass.Float32)",
        f"results.fill({NEUTRAL[pool.kind]})",
        *_rows_below(strip, "row = along(source, start, first_x, inside)", _given(strip)),
        *_finish(strip),
        "return results.load()",
    ]
    return [
        *_along(strip),
        "@cute.jit",
        f"def windows(g: cute.Tensor{weight}, outer, first, x):",
        f'    """The {WHAT[pool.kind]} of ROWS windows below each other, in fp32."""',
        *(f"    {line}" for line in lines),
        "",
    ]


@dataclass(frozen=True)
class Element:
    """The function `element` for what windows take of their elements; `needed`: its further operands' tensors."""

    lines: tuple[str, ...]
    needed: tuple[str, ...]

    @property
    def given(self) -> list[str]:
        """Statements that read the operands, which are the same all over a plane."""
        plane = "[outer * (HEIGHT * WIDTH)].to(cutlass.Float32)"
        return [f"{name[1:].lower()}_ = cute.full(vector, {name}{plane}, cutlass.Float32)" for name in self.needed]

    @property
    def names(self) -> list[str]:
        return [f"{name[1:].lower()}_" for name in self.needed]


def column_functions(strip: Strip, element: Element | None = None) -> list[str]:
    """`columns` fills shared memory with what windows give column by column; `windows` goes along its rows."""
    pool = strip.pool
    given = ["source", "start", "chunk", "inside", *(element.names if element else [])]
    tensors = ", ".join(f"{name}: cute.Tensor" for name in ("g", *(element.needed if element else ())))
    combine = COMBINED[pool.kind].format("result", "value")
    inside = "" if stays_inside(strip.program, strip.columns) else " if (at >= 0) & (at < LAST + 1) else neutral"
    lines = [
        *_start(strip, "cute.assume(plane, divby=vector)"),
        "results = cute.make_rmem_tensor((vector, ROWS), cutlass.Float32)",
        f"results.fill({NEUTRAL[pool.kind]})",
        *(element.given if element else []),
        *_rows_below(strip, f"row = access({', '.join(given)})", _given_columns(strip)),
        "for r in cutlass.range_constexpr(ROWS):",
        "    tiles = cute.zipped_divide(sColumns[group, r, None], (vector,))",
        "    cute.autovec_copy(results[None, r], tiles[None, chunk])",
    ]
    step = "tap" if strip.columns.dilation == 1 else f"tap * {strip.columns.dilation}"
    clamp = "cutlass.min(cutlass.max(at, 0), LAST)" if inside else "at"
    along = [
        f"first_x = {strip.first('x', 'x')}",
        "results = cute.make_rmem_tensor(ROWS, cutlass.Float32)",
        *([f"neutral = cutlass.Float32({NEUTRAL[pool.kind]})"] if inside else []),
        "for r in cutlass.range_constexpr(ROWS):",
        f"    result = cutlass.Float32({NEUTRAL[pool.kind]})",
        f"    for tap in cutlass.range_constexpr({strip.columns.taps}):",
        f"        at = first_x + {step}",
        f"        value = sColumns[group, r, {clamp}]{inside}",
        f"        result = {combine}",
        "    results[r] = result",
        *_finish(strip),
        "return results.load()",
    ]
    return [
        *([f"LAST = {strip.width_in - 1}  # column of the input", ""] if inside else []),
        *(element.lines if element else ()),
        *_access(strip, element),
        "@cute.jit",
        f"def columns({tensors}, sColumns: cute.Tensor, group, outer, first, chunk):",
        '    """What the strip\'s windows give in a few neighbouring columns, into shared memory."""',
        *(f"    {line}" for line in lines),
        "",
        "@cute.jit",
        "def windows(sColumns: cute.Tensor, group, outer, first, x):",
        f'    """The {WHAT[pool.kind]} of ROWS windows below each other, in fp32."""',
        *(f"    {line}" for line in along),
        "",
    ]


def _start(strip: Strip, base: str = "plane") -> list[str]:
    """Where the strip's input lies."""
    pool, wide = strip.pool, is_wide(strip.program, strip.pool)
    lines = [
        f"plane = {strip.outer(pool.terms, pool.offset, wide=wide)}",
        f"source = cute.make_tensor(g.iterator + {base}, cute.make_layout({plane_size(pool)}))",
        f"first_y = {strip.first('y', 'first')}",
    ]
    if strip.depth is not None:
        lines.append(f"first_z = {strip.outer(strip.depth.terms, strip.depth.offset)}")
    return lines


def _weights(strip: Strip) -> list[str]:
    if strip.pool.weight is None:
        return []
    taps = 1
    for window in strip.pool.windows:
        taps *= window.taps
    return [
        f"first_weight = {strip.outer(weight_terms(strip.pool.weight))}",
        f"weights = cute.make_rmem_tensor({taps}, cutlass.Float32)",
        f"for tap in cutlass.range_constexpr({taps}):",
        "    weights[tap] = w[first_weight + tap].to(cutlass.Float32)",
    ]


def _rows_below(strip: Strip, read: str, given: list[str]) -> list[str]:
    """A loop over the strip's input rows; `read` makes `row` of one, `given` hands it to the windows."""
    lines: list[str] = []
    indent = ""
    start = []
    inside = []
    if strip.depth is not None:
        step = "tap_z" if strip.depth.dilation == 1 else f"tap_z * {strip.depth.dilation}"
        lines += [f"for tap_z in cutlass.range_constexpr({strip.depth.taps}):", f"    z = first_z + {step}"]
        indent = "    "
        start.append(f"{_kept('z', strip.depth, strip)} * {strip.depth.stride}")
        if not stays_inside(strip.program, strip.depth):
            inside.append(f"(z >= 0) & (z < {strip.depth.size})")
    start.append(f"{_kept('y', strip.rows, strip)} * {strip.rows.stride}")
    if not stays_inside(strip.program, strip.rows):
        inside.append(f"(y >= 0) & (y < {strip.rows.size})")
    body = [
        "y = first_y + below",
        f"start = {' + '.join(start)}",
        f"inside = {' & '.join(inside) or 'True'}",
        read,
        *given,
    ]
    lines += [
        f"{indent}for below in cutlass.range_constexpr(SPAN):",
        f"{indent}    if cutlass.const_expr(any(is_tap(below - r * {strip.stride_y}) for r in range(ROWS))):",
        *(f"{indent}        {line}" for line in body),
    ]
    return lines


def _kept(axis: str, window: WindowDim, strip: Strip) -> str:
    """An input index, kept within the input: windows reach past it, or the last strip of a plane does."""
    if stays_inside(strip.program, window) and (axis == "z" or strip.exact):
        return axis
    return f"cutlass.min(cutlass.max({axis}, 0), {window.size - 1})"


def _given(strip: Strip) -> list[str]:
    pool = strip.pool
    lines = [
        "for r in cutlass.range_constexpr(ROWS):",
        f"    if cutlass.const_expr(is_tap(below - r * {strip.stride_y})):",
    ]
    if pool.kind != "dot":
        return [*lines, f"        results[r] = {COMBINED[pool.kind].format('results[r]', 'row')}"]
    tap = f"(below - r * {strip.stride_y}) // {strip.rows.dilation} * {strip.columns.taps} + tap"
    if strip.depth is not None:
        tap = f"tap_z * {strip.taps_y * strip.columns.taps} + {tap}"
    return [
        *lines,
        f"        for tap in cutlass.range_constexpr({strip.columns.taps}):",
        f"            results[r] = results[r] + row[tap] * weights[{tap}]",
    ]


def _given_columns(strip: Strip) -> list[str]:
    combined = COMBINED[strip.pool.kind].format("results[k, r]", "row[k]")
    return [
        "for r in cutlass.range_constexpr(ROWS):",
        f"    if cutlass.const_expr(is_tap(below - r * {strip.stride_y})):",
        "        for k in cutlass.range_constexpr(vector):",
        f"            results[k, r] = {combined}",
    ]


def _is_tap(strip: Strip) -> list[str]:
    return [
        "def is_tap(below):",
        '    """Whether a window takes the row that is this far below its first one."""',
        f"    return below % {strip.rows.dilation} == 0 and 0 <= below // {strip.rows.dilation} < {strip.taps_y}",
        "",
    ]


def _along(strip: Strip) -> list[str]:
    """An input row's part in the windows of a column of results."""
    pool, columns = strip.pool, strip.columns
    step = "tap" if columns.dilation == 1 else f"tap * {columns.dilation}"
    checked = not stays_inside(strip.program, columns)
    place = f"cutlass.min(cutlass.max(x, 0), {columns.size - 1})" if checked else "x"
    within = f"inside & (x >= 0) & (x < {columns.size})" if checked else "inside"
    lines = [
        f"x = first_x + {step}",
        f"value = source[start + {place}].to(cutlass.Float32)",
        f"value = value if {within} else cutlass.Float32({NEUTRAL[pool.kind]})",
    ]
    if not checked and _rows_stay(strip):
        lines = lines[:2]
    head = ["@cute.jit", "def along(source: cute.Tensor, start, first_x, inside):"]
    if pool.kind == "dot":
        body = [
            f"row = cute.make_rmem_tensor({columns.taps}, cutlass.Float32)",
            f"for tap in cutlass.range_constexpr({columns.taps}):",
            *(f"    {line}" for line in lines),
            "    row[tap] = value",
            "return row",
        ]
    else:
        body = [
            f"row = cutlass.Float32({NEUTRAL[pool.kind]})",
            f"for tap in cutlass.range_constexpr({columns.taps}):",
            *(f"    {line}" for line in lines),
            f"    row = {COMBINED[pool.kind].format('row', 'value')}",
            "return row",
        ]
    return [*_is_tap(strip), *head, *(f"    {line}" for line in body), ""]


def _rows_stay(strip: Strip) -> bool:
    return all(stays_inside(strip.program, w) for w in strip.pool.windows[:-1])


def _access(strip: Strip, element: Element | None) -> list[str]:
    """A thread's columns of an input row."""
    neutral = NEUTRAL[strip.pool.kind]
    names = element.names if element else []
    taken = "fragment.load().to(cutlass.Float32)"
    taken = f"element({', '.join((taken, *names))})" if element else taken
    within = [] if _rows_stay(strip) else ["    if not inside:", f"        row.fill({neutral})"]
    return [
        *_is_tap(strip),
        "@cute.jit",
        f"def access({', '.join(('source: cute.Tensor', 'start', 'chunk', 'inside', *names))}):",
        "    first = source.iterator + cute.assume(start, divby=vector)",
        "    tiles = cute.make_tensor(first, cute.make_layout((vector, CHUNKS)))",
        "    fragment = cute.make_rmem_tensor(vector, source.element_type)",
        "    cute.autovec_copy(tiles[None, chunk], fragment)",
        "    row = cute.make_rmem_tensor(vector, cutlass.Float32)",
        f"    row.store({taken})",
        *within,
        "    return row",
        "",
    ]


def _finish(strip: Strip) -> list[str]:
    """Sums become means."""
    if strip.pool.kind != "mean":
        return []
    mean = mean_text(strip.program, strip.pool, strip.axes, "results[r]")
    first_z = strip.outer(strip.depth.terms, strip.depth.offset) if strip.depth else ""
    return [
        "for r in cutlass.range_constexpr(ROWS):",
        *([f"    first_y = {strip.first('y', '(first + r)')}"] if "first_y" in mean else []),
        *([f"    first_z = {first_z}"] if "first_z" in mean else []),
        f"    results[r] = {mean}",
    ]
