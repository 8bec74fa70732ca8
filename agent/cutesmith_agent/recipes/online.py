"""Two reductions, of which one waits for the other, in one reading: their running values are corrected as they go.

A softmax's maximum and its sum of exponentials (Milakov and Gimelshein, arXiv 1805.02867); a sum and the squared
distances to the mean that follows from it (Chan, Golub and LeVeque, 1983).
"""

from __future__ import annotations

from collections.abc import Callable

from .ir import Const, Expr, Op, Reduce, arguments, walk


def is_online_sum(total: Reduce, top: Reduce) -> bool:
    """total = sum(exp(x - max(x))) with the same x."""
    e = total.arg
    if not (total.kind == "sum" and top.kind == "max" and isinstance(e, Op) and e.name == "exp"):
        return False
    shifted = e.args[0]
    return isinstance(shifted, Op) and shifted.name == "sub" and shifted.args[0] is top.arg and shifted.args[1] is top


def rough_powers(roots: tuple[Expr, ...]) -> frozenset[int]:
    """Ids of the exponentials of which only the logarithm of their sum is read: their own errors are lost in it."""
    readers: dict[int, list[Expr]] = {}
    for e in walk(roots):
        for a in arguments(e):
            readers.setdefault(id(a), []).append(e)
    kept = {id(r) for r in roots}
    return frozenset(
        id(e)
        for e in walk(roots)
        if isinstance(e, Op) and e.name == "exp" and e.per_column and not _others(e, readers, kept, _is_sum)
        if not any(_others(total, readers, kept, _is_log) for total in readers[id(e)])
    )


def _others(e: Expr, readers: dict[int, list[Expr]], kept: set[int], known: Callable[[Expr], bool]) -> bool:
    return id(e) in kept or not all(map(known, readers[id(e)]))


def _is_sum(e: Expr) -> bool:
    return isinstance(e, Reduce) and e.kind == "sum"


def _is_log(e: Expr) -> bool:
    return isinstance(e, Op) and e.name == "log"


def is_squared_distance(squares: Reduce, total: Reduce, columns: int) -> bool:
    """squares = sum((x - sum(x) / columns)²) with the same x."""
    product = squares.arg
    if not (squares.kind == total.kind == "sum" and isinstance(product, Op) and product.name == "mul"):
        return False
    centred, other = product.args
    if centred is not other or not isinstance(centred, Op) or centred.name != "sub":
        return False
    return centred.args[0] is total.arg and _is_mean(centred.args[1], total, columns)


def _is_mean(e: Expr, total: Reduce, columns: int) -> bool:
    if not (isinstance(e, Op) and e.name == "mul" and e.args[0] is total and isinstance(e.args[1], Const)):
        return False
    return abs(e.args[1].value * columns - 1) < 1e-12


ONLINE = (
    "@cute.jit",
    "def finite(top):",
    '    """`top`, or 0 where it is -inf or NaN: exp(x - 0) is then 0 or NaN, as it must be."""',
    "    return top if top > -float('inf') else cutlass.Float32(0.0)",
    "",
    "def online(x, top, total):",
    '    """The running maximum, and the running sum of exp(x - maximum) rescaled to it."""',
    "    higher = cute.math.max(top, cutlass.Float32(x.reduce(cute.ReductionOp.MAX, -float('inf'), 0)))",
    "    base = finite(higher)",
    "    powers = cute.math.exp(x - base, fastmath=True)  # their errors are far apart in a sum of so many",
    "    fresh = cutlass.Float32(powers.reduce(cute.ReductionOp.ADD, 0.0, 0))",
    "    return higher, total * cute.math.exp(top - base) + fresh",
    "",
)
MOMENTS = (
    "def moments(x, total, squares, count):",
    '    """The running sum, the squared distances to its mean, and how many elements those are of."""',
    "    n = float(cute.size(x.shape))",
    "    fresh = cutlass.Float32(x.reduce(cute.ReductionOp.ADD, 0.0, 0))",
    "    centred = x - fresh * (1.0 / n)",
    "    spread = cutlass.Float32((centred * centred).reduce(cute.ReductionOp.ADD, 0.0, 0))",
    "    gap = fresh * (1.0 / n) - mean(total, count)",
    "    return total + fresh, squares + spread + gap * gap * (count * n / (count + n)), count + n",
    "",
    "def mean(total, count):",
    "    return total / cute.math.max(cutlass.Float32(count), cutlass.Float32(1.0))",
    "",
    "def about(own_total, own_squares, own_count, total, count):",
    '    """A part\'s squared distances to the mean of the whole instead of its own."""',
    "    gap = mean(own_total, own_count) - mean(total, count)",
    "    return own_squares + gap * gap * own_count",
    "",
)
