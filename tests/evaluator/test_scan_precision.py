"""Running sums are measured against eager as a GPU adds them: a CPU adds in double, which no kernel does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import run_checks
from cutesmith_evaluator.worker.cuda_scans import like_cuda
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.reference import load_reference
from planted_candidates import QUALNAME, TASK, write_candidate, write_task

CPU = torch.device("cpu")
SCANS = [("cumsum", 1000), ("cumprod", 2564), ("logcumsumexp", 777)]
ADDS = {"cumsum": "add", "cumprod": "multiply", "logcumsumexp": "logaddexp"}
TILED = """
import numpy

def tiled(x, dtype):
    adds, wide = numpy.{adds}, -(-x.shape[1] // 32) * 32
    tiles = numpy.full((len(x), wide), {nothing}, dtype)
    tiles[:, : x.shape[1]] = x.numpy().astype(dtype)
    tiles = adds.accumulate(tiles.reshape(len(x), -1, 32), axis=2, dtype=dtype)
    before = adds.accumulate(tiles[:, :-1, -1], axis=1, dtype=dtype)
    tiles[:, 1:] = adds(tiles[:, 1:], before[:, :, None])
    return torch.from_numpy(tiles.reshape(len(x), -1)[:, : x.shape[1]].astype("float32").copy())

def forward(module, x):
    return tiled({given}, numpy.{dtype})
"""


def class_of(scan: str, columns: int, folder: Path, *, dtype: str = "float32", given: str = "x") -> str:
    source = TASK.replace("torch.softmax(x * self.weight, dim=-1)", f"torch.{scan}(x, dim=-1)")
    values = "1 + 0.01 * torch.randn" if scan == "cumprod" else "torch.randn"
    source = source.replace("torch.randn(64, 40)", f"{values}(16, {columns})").replace("[40]", f"[{columns}]")
    task = write_task(folder, source)
    nothing = {"cumsum": "0", "cumprod": "1", "logcumsumexp": "-numpy.inf"}[scan]
    candidate = TILED.format(adds=ADDS[scan], nothing=nothing, dtype=dtype, given=given)
    reference = load_reference(Task(str(task), QUALNAME))
    loaded = load_candidate(write_candidate(folder, candidate, "cpu"), reference)
    outcome = run_checks(reference, loaded, CPU, Plan(quick=True), lambda _: None, enough=lambda: True)
    kinds = {finding.kind for finding in outcome.findings}
    assert kinds <= {"lowered-precision", "wrong-values"}, outcome.findings
    if "wrong-values" in kinds:  # products of thousands of rounded factors
        return "wrong"
    return outcome.by_check["the task's inputs, seed 0"].precision


@pytest.mark.parametrize(("scan", "columns"), SCANS)
def test_tiles_in_fp32_keep_the_precision(scan: str, columns: int, tmp_path: Path):
    assert class_of(scan, columns, tmp_path) == "kept"


@pytest.mark.parametrize(("scan", "columns"), SCANS)
@pytest.mark.parametrize(
    "how",
    [
        {"dtype": "float16"},
        {"given": "x.bfloat16().float()"},
        {"given": "x * 4097 - (x * 4097 - x)"},
    ],
    ids=["sums in fp16", "inputs in bf16", "inputs in 12 bits"],
)
def test_narrower_sums_lower_it(scan: str, columns: int, how: dict[str, str], tmp_path: Path):
    assert class_of(scan, columns, tmp_path, **how) in ("lowered", "wrong")


@pytest.mark.parametrize("scan", [scan for scan, _ in SCANS])
@pytest.mark.parametrize(
    ("shape", "dim"), [((8, 1000), 1), ((1000, 8), 0), ((3, 700, 5), 1), ((70000,), 0), ((4, 0), 1), ((1,), 0)]
)
def test_what_stands_for_a_gpu_errs_as_fp32_does(scan: str, shape: tuple[int, ...], dim: int):
    x = 1 + 0.01 * torch.randn(shape, generator=torch.Generator().manual_seed(0))
    exact = getattr(torch, scan)(x.double(), dim)
    with like_cuda(CPU):
        got = getattr(torch, scan)(x, dim)
        assert torch.equal(getattr(torch, scan)(x.double(), dim), exact), "what is double is left alone"
    assert got.shape == exact.shape
    assert got.dtype is torch.float32
    if min(shape) > 1 or max(shape) > 1000:
        error, least = ((got - exact).norm() / exact.norm()).item(), 2.0**-26
        assert least < error < 1e-5


def test_nan_and_infinity_go_on_from_where_they_are():
    x = torch.ones(3, 1500)
    x[0, 700], x[1, 700], x[2, 3], x[2, 900] = float("nan"), float("inf"), float("inf"), float("-inf")
    with like_cuda(CPU):
        got = x.cumsum(1)
    assert torch.equal(got.isnan(), x.cumsum(1).isnan())
    assert torch.equal(got.isinf(), x.cumsum(1).isinf())


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("place", [0, 23, 24, 3071, 3072, 99_000])
def test_in_a_tensor_of_one_row_too(place: int, bad: float):
    x = torch.ones(100_000)
    x[place] = bad
    with like_cuda(CPU):
        got = x.cumsum(0)
    assert torch.equal(got.isfinite(), torch.arange(len(x)) < place)
    assert torch.equal(got[:place], torch.arange(1.0, place + 1)), "small whole numbers are exact in any order"
