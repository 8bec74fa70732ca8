"""The functions of a kernel that brings part of a line into shared memory and takes windows from there."""

from __future__ import annotations

from .line import Line
from .pool_text import AXES, WHAT, is_wide, mean_text, weight_terms
from .strip_text import COMBINED, NEUTRAL, Element


def line_constants(line: Line, results: str) -> list[str]:
    """`results`: the name of the constant that says how many a thread has."""
    stride, offset = line.stride, line.along.offset
    step = "TILE" if stride == 1 else f"TILE * {stride}"
    reached = f"(TILE - 1) * {stride}" if stride > 1 else "TILE - 1"
    return [
        f"LENGTH, WIDTH = {line.length}, {line.width}  # of a line of the input and of its results",
        f"TILE = THREADS * {results}  # results of a block",
        "TILES = -(-WIDTH // TILE)  # of a line",
        f"SHIFT = {offset} % vector  # elements of a block's first access before its first window",
        f"STEP, BEGIN = {step} // vector, ({offset} - SHIFT) // vector  # accesses between blocks, and before the line",
        f"CHUNKS = -(-(SHIFT + {reached} + {line.reach + 1}) // vector)  # accesses of a block",
        "ROUNDS = -(-CHUNKS // THREADS)",
    ]


def stage_function(line: Line, element: Element | None) -> list[str]:
    """`stage` brings what a block's windows need into shared memory."""
    needed = element.needed if element else ()
    wide = is_wide(line.program, line.pool)
    plane = line.outer(line.terms, line.offset, wide=wide)
    base = f"g.iterator + cute.assume({plane}, divby=vector)" if line.terms else f"g.iterator + {line.offset}"
    names = element.names if element else []
    shape = "(vector, ROUNDS)"
    given = [
        f"{name} = cute.full({shape}, {gmem}[outer * WIDTH].to(cutlass.Float32), cutlass.Float32)"
        for name, gmem in zip(names, needed, strict=True)
    ]
    loaded = "elements.load().to(cutlass.Float32)"
    taken = f"element({', '.join((loaded, *names))})" if element else loaded
    lines = [
        f"first = {base}",
        "source = cute.make_tensor(first, cute.make_layout((vector, LENGTH // vector)))",
        f"elements = cute.make_rmem_tensor({shape}, g.element_type)",
        "for k in cutlass.range_constexpr(ROUNDS):",
        "    chunk = begin + cutlass.min(tidx + k * THREADS, CHUNKS - 1)",
        "    chunk = cutlass.min(cutlass.max(chunk, 0), LENGTH // vector - 1)",
        "    cute.autovec_copy(source[None, chunk], elements[None, k])",
        *given,
        f"staged = cute.make_rmem_tensor({shape}, cutlass.Float32)",
        f"staged.store({taken})",
        "places = cute.zipped_divide(sLine, (vector,))",
        "for k in cutlass.range_constexpr(ROUNDS):",
        "    at = tidx + k * THREADS",
        *(f"    {text}" for text in _outside(line)),
        "    if at < CHUNKS:",
        "        cute.autovec_copy(staged[None, k], places[None, at])",
    ]
    parameters = ", ".join(f"{name}: cute.Tensor" for name in ("g", *needed, "sLine"))
    return [
        *(element.lines if element else ()),
        "@cute.jit",
        f"def stage({parameters}, outer, begin, tidx):",
        '    """What a block\'s windows reach of a line of `g`, in fp32; past the line what changes no window."""',
        *(f"    {text}" for text in lines),
        "",
    ]


def _outside(line: Line) -> list[str]:
    """What an access past the line gives: the last block of a line reaches there, too."""
    return [
        "if (begin + at < 0) | (begin + at >= LENGTH // vector):",
        f"    staged[None, k].fill({NEUTRAL[line.pool.kind]})",
    ]


def windows_function(line: Line, results: str, *, neighbours: bool) -> list[str]:
    """`windows`: what `results` windows of a thread give, THREADS apart.

    `neighbours`: a thread first takes windows next to each other, whose elements it reads once, and then those that it
    writes from shared memory."""
    weight = "w: cute.Tensor, " if line.pool.weight else ""
    body = _of_neighbours(line, results) if neighbours else _one_by_one(line, results)
    return [
        "@cute.jit",
        f"def windows(sLine: cute.Tensor, {weight}outer, first, tidx):",
        f'    """The {WHAT[line.pool.kind]} of each window that this thread writes, in fp32."""',
        *(f"    {text}" for text in (*_weights(line), *body, *_means(line, results))),
        "    return results.load()",
        "",
    ]


def _weights(line: Line) -> list[str]:
    if line.pool.weight is None:
        return []
    taps = line.along.taps
    return [
        f"first_weight = {line.outer(weight_terms(line.pool.weight))}",
        f"weights = cute.make_rmem_tensor({taps}, cutlass.Float32)",
        f"for tap in cutlass.range_constexpr({taps}):",
        "    weights[tap] = w[first_weight + tap].to(cutlass.Float32)",
    ]


def _combined(line: Line, value: str) -> str:
    if line.pool.kind == "dot":
        return f"result + {value} * weights[tap]"
    return COMBINED[line.pool.kind].format("result", value)


def _place(first: str, line: Line) -> str:
    """The staged element of a tap of the window that begins at `first`."""
    return f"{first} + tap" if line.along.dilation == 1 else f"{first} + tap * {line.along.dilation}"


def _times(name: str, stride: int) -> str:
    return name if stride == 1 else f"{name} * {stride}"


def _one_by_one(line: Line, results: str) -> list[str]:
    place = _place(f"SHIFT + {_times('(tidx + k * THREADS)', line.stride)}", line)
    return [
        f"results = cute.make_rmem_tensor({results}, cutlass.Float32)",
        f"for k in cutlass.range_constexpr({results}):",
        f"    result = cutlass.Float32({NEUTRAL[line.pool.kind]})",
        f"    for tap in cutlass.range_constexpr({line.along.taps}):",
        f"        result = {_combined(line, f'sLine[{place}]')}",
        "    results[k] = result",
    ]


def _of_neighbours(line: Line, results: str) -> list[str]:
    reach = f"({results} - 1) * {line.stride} + {line.reach + 1}" if line.stride > 1 else f"{results} + {line.reach}"
    element = f"elements[{_place(_times('k', line.stride), line)}]"
    return [
        f"elements = cute.make_rmem_tensor({reach}, cutlass.Float32)",
        f"start = SHIFT + tidx * {_times(results, line.stride)}",
        f"for k in cutlass.range_constexpr({reach}):",
        "    elements[k] = sLine[start + k]",
        "cute.arch.sync_threads()  # every element was read: windows take their places",
        f"for k in cutlass.range_constexpr({results}):",
        f"    result = cutlass.Float32({NEUTRAL[line.pool.kind]})",
        f"    for tap in cutlass.range_constexpr({line.along.taps}):",
        f"        result = {_combined(line, element)}",
        f"    sLine[tidx * {results} + k] = result",
        "cute.arch.sync_threads()",
        f"results = cute.make_rmem_tensor({results}, cutlass.Float32)",
        f"for k in cutlass.range_constexpr({results}):",
        "    results[k] = sLine[tidx + k * THREADS]",
    ]


def _means(line: Line, results: str) -> list[str]:
    """Sums become means."""
    if line.pool.kind != "mean":
        return []
    mean = mean_text(line.program, line.pool, AXES[-len(line.pool.windows) :], "results[k]")
    place = _times("(first + tidx + k * THREADS)", line.stride)
    start = f"{place} + {line.along.offset}".replace("+ -", "- ")
    return [
        f"for k in cutlass.range_constexpr({results}):",
        *([f"    first_x = {start}"] if "first_x" in mean else []),
        f"    results[k] = {mean}",
    ]
