"""Every PTX kernel of the corpus, and CuTe kernels of every family, give what an H200 gave.

`make corpus` runs all of them and prints how far they agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from corpus import kernels
from corpus.agreement import Outcome, outcome
from corpus.cute_cases import cute_cases
from corpus.emulated import run
from corpus.emulated_cute import run_cute
from corpus.expectations import NOT_EMULATED, TO_RECORD
from corpus.store import Recording, load

CUTE = (
    "recipe new_gelu fp32",
    "recipe rms_norm bf16",
    "recipe swiglu fp32",
    "recipe residual_layer_norm fp32",
    "recipe masked_softmax bf16",
    "recipe focal_loss bf16",
    "recipe huber_loss fp32",
    "recipe rotary fp32",
    "recipe classifier_head bf16",
    "recipe rotary fp16",
    "recipe early loads rms_norm bf16",
    "recipe Transposed fp32",
    "recipe JoinedUnequal bf16",
    "recipe Interleaved fp16",
    "recipe PerChannel fp32",
    "recipe Best fp32",
    "recipe Configured fp32",
    "recipe Activations fp16",
    "recipe LongSoftmax bf16",
    "recipe one row focal_loss fp16",
    "recipe WholeLoss fp32",
    "recipe cluster Spread fp32 2",
    "recipe cluster Softmax fp16",
    "recipe cluster Spread kept bf16",
    "recipe windows DepthwiseMultiplied",
    "recipe AvgPool2d fp32",
    "recipe rows SmoothedCrossEntropy bf16",
    "recipe TripletMarginLoss fp32",
    "recipe tail VolumeTail of 32 positions",
    "recipe product of special values",
    "recipe sm_80 product Turned",
    "transpose f16 with swizzle",
    "row sums bf16",
    "wide copy f32 by 4",
    "product by mma.sync bf16 plain",
    "tile copy f32 100x72 by 64x64, swizzle 64B, tma",
    "tile copy f16 100x72 by 64x64, swizzle 32B, raw",
    "tile copy f32 100x72 by 64x64, swizzle 128B, add",
    "tile copy e4m3 40x160 by 32x128, swizzle 128B, raw",
    "product by wgmma f16 plain 128x64x192, turned 01, clusters of 1",
    "product by wgmma f16 plain 128x96x64, turned 01, clusters of 2",
    "product by wgmma e4m3 plain 64x64x256, turned 00, clusters of 1",
)
RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture(scope="module")
def recording() -> Recording:
    return load(RECORDED)


def as_expected(outcomes: Iterable[Outcome]) -> None:
    """All agree; what is not emulated, and what is not recorded, is what is known to be."""
    found = list(outcomes)
    names = {each.name for each in found}
    assert "\n".join(each.problem for each in found if each.problem) == ""
    assert {each.name for each in found if each.missing} == NOT_EMULATED & names
    assert {each.name for each in found if not each.recorded} == TO_RECORD & names


@pytest.mark.parametrize("family", kernels.FAMILIES)
def test_ptx_kernels_agree_with_the_gpu(family: str, recording: Recording) -> None:
    as_expected(outcome(entry, recording, run) for entry in kernels.family(family))


@pytest.mark.parametrize("name", CUTE)
def test_cute_kernels_agree_with_the_gpu(name: str, recording: Recording) -> None:
    as_expected([outcome(cute_cases()[name], recording, run_cute)])


def test_every_kernel_is_recorded_or_known_not_to_be(recording: Recording) -> None:
    known = {*kernels.kernels(), *cute_cases()}
    assert known - TO_RECORD == set(recording.results) - TO_RECORD
    assert {*TO_RECORD, *NOT_EMULATED} <= known
