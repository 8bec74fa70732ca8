"""Errors of fp32 products on a CUDA device over depth and distribution: docs/accuracy.md has the plot and the table.

`prepare FOLDER` writes the recipes' first draft of a product of 256 x 256 results for each depth, and needs no device.
`measure FOLDER RESULTS` runs there on the distributions of product_errors.py: the draft, cuBLAS in fp32 and in TF32,
and three cuBLAS products of fp16 parts, summed by tensor cores over the whole depth. A line of RESULTS has the rms
errors of one depth and distribution against float64.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from product_errors import DEPTHS, DISTRIBUTIONS, drawn, parts
from records import append_line, environment_fields
from suite import PRODUCTS, Case

if TYPE_CHECKING:
    import torch

SIDE = 256  # rows and columns of a product
NAME = "TransposedRight"
OURS, FP32, TF32, UNPROMOTED = "ours", "fp32", "TF32", "split, not promoted"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="?")
    options = parser.parse_args()
    if options.step == "prepare":
        from products import prepare

        prepare(options.folder.absolute(), [case_of(depth) for depth in DEPTHS], 1)
    elif options.results is None:
        parser.error("measure needs the file of results")
    else:
        measure(options.folder.absolute(), options.results.absolute())


def case_of(depth: int) -> Case:
    shape = str((SIDE, depth))
    return Case(f"depth {depth}", PRODUCTS, NAME, "product", {"LEFT": shape, "RIGHT": shape})


def measure(folder: Path, results: Path) -> None:
    import torch

    common = environment_fields() | {"device": torch.cuda.get_device_name(0)}
    with torch.no_grad():
        for place, depth in zip(sorted(folder.glob("case_*")), DEPTHS, strict=True):
            compute = {OURS: ours(place), FP32: lambda a, b: a @ b.T, TF32: in_tf32, UNPROMOTED: unpromoted}
            for name in DISTRIBUTIONS:
                a, b = (torch.from_numpy(x).cuda() for x in drawn(name, depth, np.random.default_rng(depth), SIDE))
                exact = a.double() @ b.double().T
                errors = {one: error(product(a, b), exact) for one, product in compute.items()}
                append_line(results, common | {"depth": depth, "inputs": name, "errors": errors})
                print(depth, name, errors, flush=True)


def error(got: torch.Tensor, exact: torch.Tensor) -> float:
    """|out − ref| / |ref| over all results."""
    return float(f"{((got.double() - exact).norm() / exact.norm()).item():.3g}")


def ours(place: Path) -> Callable[[Any, Any], Any]:
    """The draft's product."""
    import torch

    from cutesmith_evaluator.types import Task
    from cutesmith_evaluator.worker.candidate import load_candidate
    from cutesmith_evaluator.worker.reference import load_reference

    about = json.loads((place / "about.json").read_text())
    reference = load_reference(Task(str(place / about["file"]), about["qualname"]))
    draft, module = load_candidate(place / "draft_0_cute.py", reference), torch.nn.Identity()
    return lambda a, b: draft.forward(module, a, b)


def in_tf32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    product = a @ b.T
    torch.backends.cuda.matmul.allow_tf32 = False
    return product


def unpromoted(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The small terms first, as the kernel adds them."""
    import torch

    (a_high, a_low, a_undo), (b_high, b_low, b_undo) = (of_device(x) for x in (a, b))
    terms = ((a_low, b_high), (a_high, b_low), (a_high, b_high))
    total = torch.zeros(len(a), len(b), device=a.device)
    for left, right in terms:
        total = total + torch.mm(left, right.T, out_dtype=torch.float32)
    return total * a_undo * b_undo.T


def of_device(x: torch.Tensor) -> list[torch.Tensor]:
    """Both parts in half precision, and what undoes the powers of two."""
    import torch

    high, low, undo = (torch.from_numpy(part).cuda() for part in parts(x.cpu().numpy()))
    return [high.half(), low.half(), undo]


if __name__ == "__main__":
    main()
