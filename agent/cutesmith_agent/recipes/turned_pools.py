"""Windows of a tensor with its channels innermost: a thread takes a few channels of a window in wide accesses."""

from __future__ import annotations

import math

from .ir import Pool
from .lowering import Program
from .pool_text import AXES, WHAT, is_wide, mean_text, stays_inside
from .strip_text import COMBINED, NEUTRAL, Element

MOST_TAPS = 64  # elements of a window: each is an access


def fits(program: Program, pool: Pool) -> bool:
    """Whether results are (batch, channels, positions) and windows run over positions alone."""
    channels = program.sizes[1]
    spatial = len(program.sizes) - 2
    sizes = [w.size for w in pool.windows]
    strides = [channels * math.prod(sizes[d + 1 :]) for d in range(spatial)]
    batch = (0, channels * math.prod(sizes)) if program.sizes[0] > 1 else None
    places = tuple(p for p in (batch, (1, 1)) if p is not None)
    return (
        channels > 1
        and pool.weight is None
        and len(pool.windows) == spatial
        and [w.stride for w in pool.windows] == strides
        and all([k for k, _ in w.terms] == [2 + d] for d, w in enumerate(pool.windows))
        and (pool.terms, pool.offset) == (places, 0)
        and math.prod(w.taps for w in pool.windows) <= MOST_TAPS
        and not is_wide(program, pool)
    )


def fill_function(program: Program, pool: Pool, element: Element | None) -> list[str]:
    """`fill_windows`: what windows give for a tile of channels and positions, into shared memory."""
    needed = element.needed if element else ()
    parameters = ", ".join(f"{name}: cute.Tensor" for name in ("g", *needed, "sTile"))
    lines = [
        "tiles = cute.zipped_divide(g, (vector,))",
        "for j in cutlass.range_constexpr(-(-CHANNELS // vector * POSITIONS // THREADS)):",
        "    place = j * THREADS + tidx",
        "    channel, position = place % (CHANNELS // vector) * vector, place // (CHANNELS // vector)",
        "    own, at = first_channel + channel, first_position + position",
        "    if (at < POSITIONS_IN_ALL) & (own < CHANNELS_IN_ALL) & (position < POSITIONS):",
        *(f"        {line}" for line in _window(program, pool, element)),
        "        for k in cutlass.range_constexpr(vector):",
        "            sTile[channel + k, position] = result[k]",
    ]
    return [
        *(element.lines if element else ()),
        *(_OF_CHANNELS if needed else ()),
        "@cute.jit",
        f"def fill_windows({parameters}, plane, first_channel, first_position, tidx):",
        f'    """The {WHAT[pool.kind]} of each window of a tile, with its positions side by side, in fp32."""',
        *(f"    {line}" for line in lines),
        "",
    ]


_OF_CHANNELS = (
    "def side_by_side(g, channel):",
    '    """The elements of `g` for a few channels, in fp32."""',
    "    fragment = cute.make_rmem_tensor(vector, cutlass.Float32)",
    "    for k in range(vector):",
    "        fragment[k] = g[channel + k].to(cutlass.Float32)",
    "    return fragment.load()",
    "",
)


def _window(program: Program, pool: Pool, element: Element | None) -> list[str]:
    """Statements that leave in `result` what the window of the position `at` gives, for a few channels."""
    axes = AXES[-len(pool.windows) :]
    lines = []
    for d, (axis, window) in enumerate(zip(axes, pool.windows, strict=True)):
        inner = math.prod(program.sizes[3 + d :])
        digit = f"at // {inner}" if inner > 1 else "at"
        digit = f"{digit} % {program.sizes[2 + d]}" if d else digit
        lines.append(f"first_{axis} = {digit} * {window.terms[0][1]} + {window.offset}".replace("+ -", "- "))
    names = element.names if element else []
    gmems = element.needed if element else ()
    lines += [f"{name} = side_by_side({gmem}, own)" for name, gmem in zip(names, gmems, strict=True)]
    lines += ["result = cute.make_rmem_tensor(vector, cutlass.Float32)", f"result.fill({NEUTRAL[pool.kind]})"]
    indent = ""
    for axis, window in zip(axes, pool.windows, strict=True):
        step = f"tap_{axis}" if window.dilation == 1 else f"tap_{axis} * {window.dilation}"
        lines.append(f"{indent}for tap_{axis} in cutlass.range_constexpr({window.taps}):")
        indent += "    "
        lines.append(f"{indent}{axis} = first_{axis} + {step}")
    lines += [f"{indent}{line}" for line in _tap(program, pool, axes, element)]
    if pool.kind == "mean":
        mean = mean_text(program, pool, axes, "result[k]")
        lines += ["for k in cutlass.range_constexpr(vector):", f"    result[k] = {mean}"]
    return lines


def _tap(program: Program, pool: Pool, axes: tuple[str, ...], element: Element | None) -> list[str]:
    checked = [a for a, w in zip(axes, pool.windows, strict=True) if not stays_inside(program, w)]
    place = "plane"
    for axis, window in zip(axes, pool.windows, strict=True):
        kept = f"cutlass.min(cutlass.max({axis}, 0), {window.size - 1})" if axis in checked else axis
        place = f"({place}) * {window.size} + {kept}" if place != "plane" else f"plane * {window.size} + {kept}"
    names = element.names if element else []
    loaded = "fragment.load().to(cutlass.Float32)"
    taken = f"element({', '.join((loaded, *names))})" if element else loaded
    sizes = dict(zip(axes, (w.size for w in pool.windows), strict=True))
    outside = " | ".join(f"({a} < 0) | ({a} >= {sizes[a]})" for a in checked)
    return [
        "fragment = cute.make_rmem_tensor(vector, g.element_type)",
        f"cute.autovec_copy(tiles[None, (({place}) * CHANNELS_IN_ALL + own) // vector], fragment)",
        "values = cute.make_rmem_tensor(vector, cutlass.Float32)",
        f"values.store({taken})",
        *([f"if {outside}:", f"    values.fill({NEUTRAL[pool.kind]})"] if checked else []),
        "for k in cutlass.range_constexpr(vector):",
        f"    result[k] = {COMBINED[pool.kind].format('result[k]', 'values[k]')}",
    ]
