"""A GEMM on tensor cores without a GPU: right on both arches, and each planted fault named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from command_line import cutesmith
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.validate import validate
from emulated_gemm import GEMM_FAULTS, PlantedGemm, gemm, task
from warp_matmuls import VARIANTS, Variant


@pytest.fixture(scope="module", autouse=True)
def loaded_dsl() -> None:
    dsl.load()


def product(source: str, folder: Path, a: torch.Tensor, b: torch.Tensor, arch: str = "sm_80") -> torch.Tensor:
    path = folder / "gemm_cute.py"
    path.write_text(source)
    with torch.no_grad():
        result = EmulatedCandidate(load_candidate(path), arch).forward(torch.nn.Identity(), a, b)
    assert isinstance(result, torch.Tensor)
    return result


def matrices(dtype: torch.dtype, m: int = 100, n: int = 72, k: int = 224) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(m, k, generator=generator).to(dtype), torch.randn(n, k, generator=generator).to(dtype)


@pytest.mark.parametrize(("arch", "dtype"), [("sm_80", torch.float16), ("sm_90a", torch.bfloat16)])
def test_the_right_kernel_has_no_finding(arch: str, dtype: torch.dtype, tmp_path: Path) -> None:
    a, b = matrices(dtype)
    torch.testing.assert_close(product(gemm(), tmp_path, a, b, arch), a.float() @ b.float().T, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("planted", GEMM_FAULTS, ids=lambda planted: planted.name)
def test_a_fault_is_named_with_its_line(planted: PlantedGemm, tmp_path: Path) -> None:
    a, b = matrices(torch.float16)
    if planted.kind == "wrong-values":
        wrong = (product(planted.source, tmp_path, a, b) - a.float() @ b.float().T).abs()
        assert wrong.max() > 1
        return
    with pytest.raises(TaskError) as caught:
        product(planted.source, tmp_path, a, b)
    finding = caught.value.finding
    assert finding.kind == planted.kind, finding
    assert finding.line == planted.line, finding
    assert "gemm_kernel" in finding.message
    assert "thread (" in finding.message


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: f"{each.kind}-k{each.depth}-{each.accumulated}")
def test_every_kind_of_warp_wide_multiplication(variant: Variant, tmp_path: Path) -> None:
    kinds = {"TFloat32": "float32", "Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2"}
    dtype = getattr(torch, kinds.get(variant.kind, variant.kind.lower()))
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(64, 64, generator=generator).to(dtype) for _ in range(2))
    result = product(variant.source, tmp_path, a, b, variant.arch)
    assert (result.double() - a.double() @ b.double().T).abs().max() < variant.error


def test_check_ends_with_a_usable_kernel(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text(task(100, 72, 64))
    (tmp_path / "gemm_cute.py").write_text(gemm())
    words = ("check", "scores.py", "gemm_cute.py", "--device", "emulated", "--arch", "sm_80", "--json")
    ended = cutesmith(*words, cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    (candidate,) = ended.json["candidates"]
    assert (candidate["ok"], candidate["precision"], candidate["device"]) == (True, "kept", "emulated")


def test_a_misread_tile_is_named_as_wrong_values(tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text(task(100, 72, 64))
    swizzled = next(planted for planted in GEMM_FAULTS if "swizzle" in planted.name)
    candidate = tmp_path / "gemm_cute.py"
    candidate.write_text(swizzled.source)
    params = {"task": {"file": str(tmp_path / "scores.py"), "qualname": "Scores"}, "candidate": str(candidate)}
    verdict = validate({**params, "device": "emulated"}, lambda _: None)
    assert verdict.ok is False
    assert {finding.kind for finding in verdict.findings} == {"wrong-values"}, verdict.findings
    assert {finding.line for finding in verdict.findings} == {swizzled.line}
    assert f"the first is stored by line {swizzled.line}." in verdict.findings[0].message
