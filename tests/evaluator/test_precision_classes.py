"""Classes of pointwise functions and sums that are computed in other arithmetic, as the benchmark finds them."""

from __future__ import annotations

import pytest
import torch

from precision_cases import Study, pointwise_study, reduction_study
from precision_classes import DISTRIBUTIONS, record

EXPECTED = {"fp32": "kept", "TF32": "lowered", "fp16": "lowered", "bf16": "lowered"}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("study", [pointwise_study(32, 256), reduction_study(32, 256)], ids=lambda study: study.name)
def test_only_fp32_keeps_the_precision(study: Study, distribution: str):
    found = {name: record(study, name, distribution, torch.device("cpu"))["class"] for name in study.candidates}
    overflows = {"fp16": "wrong"} if distribution == "wide range" else {}
    assert found == EXPECTED | overflows
