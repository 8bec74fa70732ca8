"""Classes of fp32 tasks that are computed in other arithmetic, where tensor cores round as they do."""

from __future__ import annotations

import pytest
import torch

from cutesmith_evaluator.worker.cuda_scans import like_cuda
from precision_cases import Study, convolution_study, product_study
from precision_classes import DISTRIBUTIONS, record

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

PRODUCTS = {
    "fp32": "kept",
    "TF32": "lowered",
    "fp16": "lowered",
    "bf16": "lowered",
    "2-term fp16 split, promoted every 128": "lowered",
    "3-term fp16 split, promoted every 128": "kept",
    "3-term fp16 split, not promoted": "lowered",
    "6-term bf16 split, promoted every 128": "kept",
}
SCANS = 8  # of other values each


def class_of(study: Study, name: str, distribution: str) -> object:
    return record(study, name, distribution, torch.device("cuda", 0))["class"]


@pytest.mark.parametrize("distribution", ["normal", "uniform [0, 1)"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_classes_of_a_long_product(name: str, distribution: str):
    assert class_of(product_study(512, 4096), name, distribution) == PRODUCTS[name]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_convolution_in_tf32_is_as_eager_and_in_bfloat16_lowered(distribution: str):
    study = convolution_study(16, 64, 40)
    found = {name: class_of(study, name, distribution) for name in ("fp32", "TF32", "bf16")}
    assert found == {"fp32": "kept", "TF32": "as eager", "bf16": "lowered"}


@pytest.mark.parametrize("scan", ["cumsum", "cumprod", "logcumsumexp"])
@pytest.mark.parametrize(
    ("shape", "dim"), [((8, 1000), 1), ((64, 2564), 1), ((4096, 64), 0), ((3, 700, 32), 1), ((200_000,), 0)]
)
def test_what_stands_for_a_gpu_on_the_cpu_errs_like_one(scan: str, shape: tuple[int, ...], dim: int):
    errors = torch.stack([scan_errors(scan, shape, dim, seed) for seed in range(SCANS)]).norm(dim=0)
    ours, eagers = errors.tolist()
    assert eagers / 2 < ours < eagers * 2


def scan_errors(scan: str, shape: tuple[int, ...], dim: int, seed: int) -> torch.Tensor:
    """Against float64: of what stands for a GPU, and of the GPU. A product's error walks at random: one says little."""
    x = 1 + 0.01 * torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    exact = getattr(torch, scan)(x.double(), dim)
    with like_cuda(torch.device("cpu")):
        ours = getattr(torch, scan)(x, dim)
    theirs = getattr(torch, scan)(x.cuda(), dim).cpu()
    return torch.stack([(each - exact).norm() for each in (ours, theirs)])
