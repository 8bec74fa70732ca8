"""Holds the emulated tensor cores against dot products of real GPUs, published with a study of them.

Run: python benchmarks/published_tensor_cores.py FOLDER, where FOLDER is `model_validation` of a checkout of
github.com/north-numerical-computing/MATLAB-tensor-core (Khattak and Mikaitis, Accurate Models of NVIDIA Tensor Cores).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from cutesmith_evaluator.emulator.mma import of_eighths_as_halves
from cutesmith_evaluator.emulator.tensor_cores import (
    EIGHT_BIT,
    SMALLEST_EXPONENTS,
    Accumulator,
    Rule,
    accumulate,
    is_hopper,
    rule_of,
)

ARCHS = {"H200": "sm_90a", "H100": "sm_90a", "L40S": "sm_89", "Ada": "sm_89", "A2": "sm_86", "A100": "sm_80"}
KINDS = {"fp16": "f16", "bf16": "bf16", "tf32": "tf32", "E4M3": "e4m3", "E5M2": "e5m2"}
WGMMA = Rule(32, 13, -1000, 13)
RESULTS: dict[str, Accumulator] = {"fp32": "f32", "fp16": "f16"}


def hexadecimal(path: Path) -> np.ndarray:
    """(rows, k) float32"""
    rows = [[int(word, 16) for word in line.split()] for line in path.read_text().splitlines() if line.strip()]
    return np.array(rows, np.uint32).view(np.float32)


def binary(path: Path) -> np.ndarray:
    return np.array([int(word, 2) for word in path.read_text().split()], np.uint32).view(np.float32)


def emulated(a: np.ndarray, b: np.ndarray, c: np.ndarray, arch: str, kind: str, result: Accumulator) -> np.ndarray:
    a, b, c = a[:, None, :], b[:, None, :], c[:, None, None]
    eight = kind in ("e4m3", "e5m2")
    least = SMALLEST_EXPONENTS[kind]
    if _by_wgmma(arch, kind, result):
        return accumulate(a, b, c, (least, least), WGMMA, result)[:, 0, 0]
    if eight and is_hopper(arch):
        return of_eighths_as_halves(a, b, c, rule=rule_of(arch, "f16", result), accumulator=result)[:, 0, 0]
    rule = EIGHT_BIT if eight else rule_of(arch, kind, result)
    return accumulate(a, b, c, (least, least), rule, result)[:, 0, 0]


def _by_wgmma(arch: str, kind: str, result: Accumulator) -> bool:
    """These were published for wgmma, without an accumulator; all others for mma.sync."""
    return is_hopper(arch) and kind in ("e4m3", "e5m2") and result == "f32"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    print("GPU   operands result  dot products  different")
    for (gpu, arch), (name, kind) in ((one, other) for one in ARCHS.items() for other in KINDS.items()):
        for result, accumulator in RESULTS.items():
            where = folder / gpu / name
            wanted = where / f"d_{gpu}_{result}.txt"
            if not wanted.exists():
                continue
            a, b = (hexadecimal(where / f"{letter}_{gpu}_{name}.txt") for letter in "ab")
            c = binary(where / f"c_{gpu}_fp32.txt")
            c = c.astype(np.float16).astype(np.float32) if accumulator == "f16" else c
            c = np.zeros_like(c) if _by_wgmma(arch, kind, accumulator) else c
            got, real = emulated(a, b, c, arch, kind, accumulator), binary(wanted)
            different = int(np.count_nonzero(got.view(np.uint32) != real.view(np.uint32)))
            print(f"{gpu:5} {name:8} {result:6} {real.size:13} {different:10}")


if __name__ == "__main__":
    main()
