"""A window's largest element or mean as a function of a pointwise kernel: one call an element, read through L1."""

from __future__ import annotations

import math

from .ir import Load, Pool, WindowDim
from .layout import INT32
from .lowering import Program

AXES = ("z", "y", "x")
WHAT = {"max": "largest element", "mean": "mean", "dot": "weighted sum"}


def pool_functions(program: Program, pool: Pool, name: str) -> list[str]:
    """`name(g, chunk, width, steps)` and what it calls, as `load` of the pointwise kernel is called."""
    what = WHAT[pool.kind]
    weight, given = (", w", "w, ") if pool.weight else ("", "")
    return [
        "@cute.jit",
        f"def {name}_window(g: cute.Tensor{weight and ', w: cute.Tensor'}, i):",
        f'    """The {what} of the window that result element `i` stands for, in fp32."""',
        *(f"    {line}" for line in _window(program, pool)),
        "",
        f"def {name}(g, {given}chunk, width, steps):",
        f'    """As `load`, each element the {what} of a window."""',
        "    fragment = cute.make_rmem_tensor((width, steps), cutlass.Float32)",
        "    for step in range(steps):",
        "        for k in range(width):",
        f"            fragment[k, step] = {name}_window(g{weight}, (chunk + step * THREADS) * width + k)",
        "    return fragment.load()",
        "",
    ]


def _window(program: Program, pool: Pool) -> list[str]:
    axes = AXES[-len(pool.windows) :]
    sizes = program.sizes
    place = wide_affine if is_wide(program, pool) else affine
    lines = [f"plane = {place(sizes, pool.terms, pool.offset, 'i')}"]
    starts = [affine(sizes, window.terms, window.offset, "i") for window in pool.windows]
    lines += [f"first_{axis} = {start}" for axis, start in zip(axes, starts, strict=True)]
    lines.append(f"result = cutlass.Float32({'-float(' + repr('inf') + ')' if pool.kind == 'max' else '0.0'})")
    if is_wide(program, pool):
        lines.append(f"source = cute.make_tensor(g.iterator + plane, cute.make_layout({plane_size(pool)}))")
    if pool.weight is not None:
        lines.append(f"weights = {affine(sizes, weight_terms(pool.weight), 0, 'i')}")
    inner = _tap(program, pool, axes)
    for depth, (axis, window) in enumerate(zip(axes, pool.windows, strict=True)):
        lines.append(f"{'    ' * depth}for tap_{axis} in cutlass.range_constexpr({window.taps}):")
        step = f"tap_{axis}" if window.dilation == 1 else f"tap_{axis} * {window.dilation}"
        lines.append(f"{'    ' * (depth + 1)}{axis} = first_{axis} + {step}")
        if not stays_inside(program, window):
            lines.append(f"{'    ' * (depth + 1)}inside_{axis} = ({axis} >= 0) & ({axis} < {window.size})")
    lines += [f"{'    ' * len(axes)}{line}" for line in inner]
    result = mean_text(program, pool, axes, "result") if pool.kind == "mean" else "result"
    return [*lines, f"return {result}"]


def _tap(program: Program, pool: Pool, axes: tuple[str, ...]) -> list[str]:
    """One element of the window: outside the input another is read, and does not count."""
    checked = [a for a, w in zip(axes, pool.windows, strict=True) if not stays_inside(program, w)]
    places = [] if is_wide(program, pool) else ["plane"]
    source = "source" if is_wide(program, pool) else "g"
    for axis, window in zip(axes, pool.windows, strict=True):
        place = f"cutlass.min(cutlass.max({axis}, 0), {window.size - 1})" if axis in checked else axis
        places.append(place if window.stride == 1 else f"{place} * {window.stride}")
    lines = [f"value = {source}[{' + '.join(places)}].to(cutlass.Float32)"]
    if checked:
        inside = " & ".join(f"inside_{a}" for a in checked)
        outside = "-float('inf')" if pool.kind == "max" else "0.0"
        lines.append(f"value = value if {inside} else cutlass.Float32({outside})")
    if pool.kind == "mean":
        return [*lines, "result = result + value"]
    if pool.kind == "dot":
        return [*lines, f"result = result + value * w[weights + {tap_number(pool, axes)}].to(cutlass.Float32)"]
    return [*lines, "result = cute.arch.fmax(result, value, nan=True)"]


def tap_number(pool: Pool, axes: tuple[str, ...]) -> str:
    """Which element of the window, in order."""
    steps = [math.prod(w.taps for w in pool.windows[d + 1 :]) for d in range(len(axes))]
    return " + ".join(f"tap_{a} * {n}" if n > 1 else f"tap_{a}" for a, n in zip(axes, steps, strict=True))


def plane_size(pool: Pool) -> int:
    """Elements of an input plane."""
    return pool.windows[0].size * pool.windows[0].stride


def is_wide(program: Program, pool: Pool) -> bool:
    """Whether the input has more elements than 32 bits count."""
    spec = next(i.spec for i in program.graph.inputs if i.name == pool.load.name)
    return math.prod(spec.shape) >= INT32


def weight_terms(load: Load) -> tuple[tuple[int, int], ...]:
    return tuple((k, c) for k, c in enumerate(load.strides) if c)


def stays_inside(program: Program, window: WindowDim) -> bool:
    low, high = _span(program, window)
    return low >= 0 and high + (window.taps - 1) * window.dilation < window.size


def _span(program: Program, window: WindowDim) -> tuple[int, int]:
    return window.offset, window.offset + sum(c * (program.sizes[k] - 1) for k, c in window.terms)


def mean_text(program: Program, pool: Pool, axes: tuple[str, ...], total: str) -> str:
    """A mean from the window's sum; `first_<axis>` are where the window begins."""
    if pool.divisor is not None:
        return f"{total} / {float(pool.divisor)}"
    counts: list[str] = []
    known = 1
    for axis, w in zip(axes, pool.windows, strict=True):
        last = _span(program, w)[1] + w.taps
        if stays_inside(program, w) or (pool.whole and last <= w.size + w.padding):
            known *= w.taps
        elif pool.whole:  # the padding counts, what a last window has past it does not
            counts.append(f"(cutlass.min(first_{axis} + {w.taps}, {w.size + w.padding}) - first_{axis})")
        else:
            end = f"cutlass.min(first_{axis} + {w.taps}, {w.size})"
            counts.append(f"({end} - cutlass.max(first_{axis}, 0))")
    if not counts:
        return f"{total} / {float(known)}"
    return f"{total} / ({' * '.join((*counts, str(known)))}).to(cutlass.Float32)"


def wide_affine(sizes: tuple[int, ...], terms: tuple[tuple[int, int], ...], offset: int, name: str) -> str:
    """As `affine`, in 64 bits: the digits are small, their products are not."""
    parts = [f"cutlass.Int64({affine(sizes, ((k, 1),), 0, name)}) * {c}" for k, c in terms]
    return " + ".join((*parts, *([str(offset)] if offset or not parts else []))).replace("+ -", "- ")


def affine(sizes: tuple[int, ...], terms: tuple[tuple[int, int], ...], offset: int, name: str) -> str:
    """The value of an index where the flat place among `sizes` is called `name`."""
    parts = []
    for k, c in terms:
        inner = math.prod(sizes[k + 1 :])
        digit = f"{name} // {inner}" if inner > 1 else name
        if math.prod(sizes[:k]) > 1:
            digit = f"{digit} % {sizes[k]}"
        parts.append(f"{digit} * {c}" if c != 1 else digit)
    if offset or not parts:
        parts.append(str(offset))
    return " + ".join(parts).replace("+ -", "- ")
