"""The examples run as they are, and each of them gets a kernel from the command line."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import suite

SMALL = {"ROWS": "6", "FEATURES": "10", "CLASSES": "10", "BATCH": "2", "HEADS": "3", "LENGTH": "7", "HEAD_DIM": "8"}
ARCHS = {"sm_80", "sm_90a", "sm_100a"}

every_example = pytest.mark.parametrize("example", suite.EXAMPLE_MODULES, ids=lambda example: example.stem)


def build(
    example: suite.Example, folder: Path, dtype: str = "torch.float32"
) -> tuple[torch.nn.Module, list[torch.Tensor]]:
    """The example's module in eval mode and its inputs, at a small size."""
    case = example.case(example.stem, SMALL | {"DTYPE": dtype})
    spec = importlib.util.spec_from_file_location(f"small_{example.stem}", case.write(folder))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, example.qualname)(*module.get_init_inputs()).eval(), module.get_inputs()


def flat(result: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def test_every_example_file_is_listed() -> None:
    assert {path.stem for path in suite.EXAMPLES.glob("*.py")} == {example.stem for example in suite.EXAMPLE_MODULES}


@every_example
@pytest.mark.parametrize("dtype", ["torch.float32", "torch.bfloat16"])
def test_runs_eagerly_in_its_dtype(example: suite.Example, dtype: str, tmp_path: Path) -> None:
    module, inputs = build(example, tmp_path, dtype)
    with torch.no_grad():
        outputs = flat(module(*inputs))
    assert all(output.isfinite().all() for output in outputs)
    assert all(f"{output.dtype}" == dtype for output in outputs)


def test_new_gelu_is_gelus_tanh_approximation(tmp_path: Path) -> None:
    module, (x,) = build(suite.EXAMPLE_MODULES[0], tmp_path)
    torch.testing.assert_close(module(x), torch.nn.functional.gelu(x, approximate="tanh"))


def test_focal_loss_without_focus_is_half_the_cross_entropy(tmp_path: Path) -> None:
    example = next(example for example in suite.EXAMPLE_MODULES if example.stem == "focal_loss")
    module, (logits, targets) = build(example, tmp_path)
    plain = type(module)(alpha=0.5, gamma=0.0)
    expected = 0.5 * torch.nn.functional.binary_cross_entropy_with_logits(logits, targets)
    torch.testing.assert_close(plain(logits, targets), expected)


def test_rotary_keeps_lengths(tmp_path: Path) -> None:
    example = next(example for example in suite.EXAMPLE_MODULES if example.stem == "rotary")
    module, inputs = build(example, tmp_path)
    q, k = module(*inputs)
    torch.testing.assert_close(q.norm(dim=-1), inputs[0].norm(dim=-1))
    torch.testing.assert_close(k.norm(dim=-1), inputs[1].norm(dim=-1))


@every_example
def test_optimize_compiles_a_kernel_for_every_default_arch(example: suite.Example, tmp_path: Path) -> None:
    file = shutil.copy(example.file, tmp_path)
    command = [sys.executable, "-m", "cutesmith_server", "optimize", file, "--json", "--device", "none"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert result.returncode == 4, result.stdout + result.stderr
    report = json.loads(result.stdout)
    assert report["task"]["class"] == example.qualname
    best = next(candidate for candidate in report["candidates"] if candidate["id"] == report["best"])
    assert best["ok"] is None, "nothing can have been validated without a device"
    assert {resource["arch"] for resource in best["resources"]} == ARCHS
