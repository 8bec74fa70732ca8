"""Errors of fp32 products on emulated H100 tensor cores, by depth and distribution, as docs/accuracy.md has them beside
those of a device (accuracy_study.py); accuracy_page.py draws them.

Every arithmetic sums the same dot products as its kernel does: fp32 one product after the other (fused, rounded to
nearest), TF32 and the fp16 splits as wgmma adds, 16 or 8 values of depth an instruction. Lines go to `--results FILE`
(results/accuracy_emulated.jsonl). `--trials N` instead draws N
random dot products of random depth, distribution and scale, and prints the largest error in units of the bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from cutesmith_evaluator.emulator.tensor_cores import SMALLEST_EXPONENTS, accumulate, rule_of
from records import RESULTS, append_line

TINY = 2.0**-1000  # for lines of zeros, whose products are zero
SIDE = 16  # rows and columns of a product: 256 dot products
DEPTHS = (64, 256, 1024, 4096, 16384, 65536)
Array = np.ndarray

DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "uniform [0, 1)": lambda random, shape: random.random(shape),
    "log-normal, σ = 4": lambda random, shape: np.exp(4 * random.standard_normal(shape)),
    "1 % outliers × 1000, half zeros": lambda random, shape: (
        random.standard_normal(shape) * (random.random(shape) < 0.5) * np.where(random.random(shape) < 0.01, 1000, 1)
    ),
    "nearly cancelling": lambda random, shape: np.tile(random.random((shape[0], shape[1] // 2)), 2),
}


def drawn(name: str, depth: int, random: np.random.Generator, side: int = SIDE) -> tuple[Array, Array]:
    a, b = (DISTRIBUTIONS[name](random, (side, depth)).astype(np.float32) for _ in range(2))
    if name == "nearly cancelling":  # the second half is the first with the other sign, but for some bits
        b[:, depth // 2 :] *= np.float32(-1 + 2**-12)
    return a, b


def fp32(a: Array, b: Array) -> Array:
    """One fused product after the other; a double holds a product of two fp32 numbers exactly."""
    total = np.zeros((SIDE, SIDE), np.float32)
    for k in range(a.shape[1]):
        total = (np.outer(a[:, k].astype(np.float64), b[:, k]) + total).astype(np.float32)
    return total


def summed(a: Array, b: Array, total: Array, kind: str) -> Array:
    """a · bᵀ added to `total` as a tensor core does, an instruction's depth at a time."""
    least = SMALLEST_EXPONENTS[kind]
    step = 8 if kind == "tf32" else 16
    for k in range(0, a.shape[1], step):
        left, right = a[None, :, k : k + step], b[None, :, k : k + step]
        total = accumulate(left, right, total[None], (least, least), rule_of("sm_90a", kind, "f32"))[0]
    return total


def tf32(a: Array, b: Array) -> Array:
    a, b = (((x.view(np.uint32) + 0x1000) & ~np.uint32(0x1FFF)).view(np.float32) for x in (a, b))
    return summed(a, b, np.zeros((SIDE, SIDE), np.float32), "tf32")


def parts(x: Array) -> tuple[Array, Array, Array]:
    """High and low part of each line times its power of two, and one over that power."""
    exponent = np.abs(x).max(1, keepdims=True).view(np.uint32) >> 23
    scale = (np.minimum(268 - exponent.astype(np.int64), 254).astype(np.uint32) << 23).view(np.float32)
    high = (x * scale).astype(np.float16).astype(np.float32)
    return high, (x * scale - high).astype(np.float16).astype(np.float32), 1 / scale


def split(a: Array, b: Array, chunk: int | None) -> Array:
    """The kernel's sum; `chunk`: values of depth after which it goes into fp32, None: all of them."""
    (a_high, a_low, a_undo), (b_high, b_low, b_undo) = parts(a), parts(b)
    total = np.zeros((SIDE, SIDE), np.float32)
    width = chunk or a.shape[1]
    for first in range(0, a.shape[1], width):
        at = np.s_[:, first : first + width]
        partial = np.zeros((SIDE, SIDE), np.float32)
        for left, right in ((a_low, b_high), (a_high, b_low), (a_high, b_high)):
            partial = summed(left[at], right[at], partial, "f16")
        total = total + partial
    return total * a_undo * b_undo.T


ARITHMETICS: dict[str, Callable[[Array, Array], Array]] = {
    "fp32": fp32,
    "TF32": tf32,
    "split, not promoted": lambda a, b: split(a, b, None),
    "split, 64": lambda a, b: split(a, b, 64),
    "split, 32": lambda a, b: split(a, b, 32),
}


def error(got: Array, a: Array, b: Array) -> tuple[float, float]:
    """rms = |out − ref| / |ref|, and the largest |out − ref| over its line's |a| · |b|."""
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    size = np.linalg.norm(a.astype(np.float64), axis=1)[:, None] * np.linalg.norm(b.astype(np.float64), axis=1)[None]
    return float(np.linalg.norm(got - exact) / np.linalg.norm(exact)), float(
        (np.abs(got - exact) / np.maximum(size, TINY)).max()
    )


def table(depths: tuple[int, ...], results: Path) -> None:
    """Appends a line of rms errors for each depth and distribution."""
    common = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "device": "emulated H100 tensor cores"}
    for name in DISTRIBUTIONS:
        for depth in depths:
            a, b = drawn(name, depth, np.random.default_rng(depth))
            errors = {one: float(f"{error(compute(a, b), a, b)[0]:.3g}") for one, compute in ARITHMETICS.items()}
            append_line(results, common | {"depth": depth, "inputs": name, "errors": errors})
            print(depth, name, errors, flush=True)


def trials(count: int) -> None:
    """Of the split, promoted every 64: the largest |out − ref| in units of (20 + K / 64) · 2^-24 · |a| · |b|, where |a|
    and |b| are the norms of the two lines."""
    random = np.random.default_rng(0)
    worst, seen = 0.0, 0
    while seen < count:
        depth = int(2 ** random.uniform(1, 11))
        depth += depth % 2
        a, b = drawn(str(random.choice(list(DISTRIBUTIONS))), depth, random)
        a = a * np.exp2(random.integers(-60, 40, (SIDE, 1))).astype(np.float32)
        a, b = (np.pad(x, ((0, 0), (0, -depth % 64))) for x in (a, b))
        worst = max(worst, error(split(a, b, 64), a, b)[1] / ((20 + depth / 64) * 2**-24))
        seen += SIDE * SIDE
    print(f"{seen} dot products: the largest error is {worst:.2f} of the bound")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS / "accuracy_emulated.jsonl")
    parser.add_argument("--depth", type=int, action="append", help="default: " + ", ".join(map(str, DEPTHS)))
    options = parser.parse_args()
    if options.trials:
        trials(options.trials)
    else:
        table(tuple(options.depth or DEPTHS), options.results)


if __name__ == "__main__":
    main()
