"""A window's largest element or mean as a function of a pointwise kernel: one call an element, read through L1."""

from __future__ import annotations

import math

from .ir import Pool, WindowDim
from .lowering import Program

AXES = ("z", "y", "x")


def pool_functions(program: Program, pool: Pool, name: str) -> list[str]:
    """`name(g, chunk, width, steps)` and what it calls, as `load` of the pointwise kernel is called."""
    what = "largest element" if pool.kind == "max" else "mean"
    return [
        "@cute.jit",
        f"def {name}_window(g: cute.Tensor, i):",
        f'    """The {what} of the window that result element `i` stands for, in fp32."""',
        *(f"    {line}" for line in _window(program, pool)),
        "",
        f"def {name}(g, chunk, width, steps):",
        f'    """As `load`, each element the {what} of a window."""',
        "    fragment = cute.make_rmem_tensor((width, steps), cutlass.Float32)",
        "    for step in range(steps):",
        "        for k in range(width):",
        f"            fragment[k, step] = {name}_window(g, (chunk + step * THREADS) * width + k)",
        "    return fragment.load()",
        "",
    ]


def _window(program: Program, pool: Pool) -> list[str]:
    axes = AXES[-len(pool.windows) :]
    lines = [f"plane = {_affine(program, pool.terms, pool.offset)}"]
    lines += [f"first_{a} = {_affine(program, w.terms, w.offset)}" for a, w in zip(axes, pool.windows, strict=True)]
    lines.append(f"result = cutlass.Float32({'-float(' + repr('inf') + ')' if pool.kind == 'max' else '0.0'})")
    inner = _tap(program, pool, axes)
    for depth, (axis, window) in enumerate(zip(axes, pool.windows, strict=True)):
        lines.append(f"{'    ' * depth}for tap_{axis} in cutlass.range_constexpr({window.taps}):")
        step = f"tap_{axis}" if window.dilation == 1 else f"tap_{axis} * {window.dilation}"
        lines.append(f"{'    ' * (depth + 1)}{axis} = first_{axis} + {step}")
        if not _stays_inside(program, window):
            lines.append(f"{'    ' * (depth + 1)}inside_{axis} = ({axis} >= 0) & ({axis} < {window.size})")
    lines += [f"{'    ' * len(axes)}{line}" for line in inner]
    return [*lines, *_result(program, pool, axes)]


def _tap(program: Program, pool: Pool, axes: tuple[str, ...]) -> list[str]:
    """One element of the window: outside the input another is read, and does not count."""
    checked = [a for a, w in zip(axes, pool.windows, strict=True) if not _stays_inside(program, w)]
    places = ["plane"]
    for axis, window in zip(axes, pool.windows, strict=True):
        place = f"cutlass.min(cutlass.max({axis}, 0), {window.size - 1})" if axis in checked else axis
        places.append(place if window.stride == 1 else f"{place} * {window.stride}")
    lines = [f"value = g[{' + '.join(places)}].to(cutlass.Float32)"]
    if checked:
        inside = " & ".join(f"inside_{a}" for a in checked)
        outside = "-float('inf')" if pool.kind == "max" else "0.0"
        lines.append(f"value = value if {inside} else cutlass.Float32({outside})")
    if pool.kind == "mean":
        return [*lines, "result = result + value"]
    return [*lines, "result = cute.math.max(result, value)  # NaN if either is"]


def _stays_inside(program: Program, window: WindowDim) -> bool:
    low, high = _span(program, window)
    return low >= 0 and high + (window.taps - 1) * window.dilation < window.size


def _span(program: Program, window: WindowDim) -> tuple[int, int]:
    return window.offset, window.offset + sum(c * (program.sizes[k] - 1) for k, c in window.terms)


def _result(program: Program, pool: Pool, axes: tuple[str, ...]) -> list[str]:
    if pool.kind == "max":
        return ["return result"]
    if pool.divisor is not None:
        return [f"return result / {float(pool.divisor)}"]
    counts: list[str] = []
    known = 1
    for axis, w in zip(axes, pool.windows, strict=True):
        last = _span(program, w)[1] + w.taps
        if _stays_inside(program, w) or (pool.whole and last <= w.size + w.padding):
            known *= w.taps
        elif pool.whole:  # the padding counts, what a last window has past it does not
            counts.append(f"(cutlass.min(first_{axis} + {w.taps}, {w.size + w.padding}) - first_{axis})")
        else:
            end = f"cutlass.min(first_{axis} + {w.taps}, {w.size})"
            counts.append(f"({end} - cutlass.max(first_{axis}, 0))")
    if not counts:
        return [f"return result / {float(known)}"]
    return [f"return result / ({' * '.join((*counts, str(known)))}).to(cutlass.Float32)"]


def _affine(program: Program, terms: tuple[tuple[int, int], ...], offset: int) -> str:
    """The value of an index where the flat result index is `i`."""
    parts = []
    for k, c in terms:
        inner = math.prod(program.sizes[k + 1 :])
        digit = f"i // {inner}" if inner > 1 else "i"
        if math.prod(program.sizes[:k]) > 1:
            digit = f"{digit} % {program.sizes[k]}"
        parts.append(f"{digit} * {c}" if c != 1 else digit)
    if offset or not parts:
        parts.append(str(offset))
    return " + ".join(parts).replace("+ -", "- ")
