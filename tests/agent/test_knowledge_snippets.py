"""The pack's code compiles for every arch that it is for, and computes on the emulated device what it says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from cutesmith_agent.knowledge import fixed_part
from cutesmith_agent.knowledge.pack import pack
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from knowledge_cases import cases, check, wrapped, written
from knowledge_errors import Broken, message_of, read_records
from knowledge_snippets import load, snippets

ARCHS = ("sm_80", "sm_90a")
SHOWN = [(name, arch) for name, section in snippets().items() for arch in ARCHS if section.fits(arch)]
CASES = cases()
ROOTS = {
    "cute": "cutlass.cute",
    "cutlass": "cutlass",
    "pipeline": "cutlass.pipeline",
    "warp": "cutlass.cute.nvgpu.warp",
    "cpasync": "cutlass.cute.nvgpu.cpasync",
    "warpgroup": "cutlass.cute.nvgpu.warpgroup",
    "hopper_helpers": "cutlass.utils.hopper_helpers",
}


class AddScaled(nn.Module):
    alpha = 2.5

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + self.alpha * y


@pytest.fixture(scope="module", autouse=True)
def loaded_dsl() -> None:
    dsl.load()


@pytest.mark.parametrize(("name", "arch"), SHOWN, ids=lambda each: each)
def test_it_compiles(name: str, arch: str, tmp_path: Path):
    module = load(written(name, tmp_path))
    with dsl.compiling_for(arch, tmp_path) as compiles:
        if name == "custom_ops":
            module._compiled(0)
        else:
            module.compiled("--enable-tvm-ffi")
    assert compiles.done
    assert compiles.error is None


def _resolves(name: str) -> bool:
    root, *parts = name.split(".")
    found: object = importlib.import_module(ROOTS[root])
    return all((found := getattr(found, part, None)) is not None for part in parts)


def test_every_name_that_is_given_exists():
    text = "\n".join((fixed_part(), *(section.text for section in pack())))
    names = {match[0] for match in re.finditer(rf"(?<![\w.])(?:{'|'.join(ROOTS)})(?:\.\w+)+", text)}
    assert len(names) > 80
    assert [name for name in sorted(names) if not _resolves(name)] == []


def test_every_snippet_is_run():
    assert set(CASES) | {"custom_ops"} == set(snippets())


@pytest.mark.parametrize("name", CASES)
def test_it_computes_what_it_says(name: str, tmp_path: Path):
    case = CASES[name]
    candidate = EmulatedCandidate(load_candidate(wrapped(name, case, tmp_path)), "sm_90a")
    check(candidate.forward(nn.Identity(), *case.inputs), case.expected(*case.inputs))


def test_the_whole_file_serves_its_module(tmp_path: Path):
    candidate = EmulatedCandidate(load_candidate(written("custom_ops", tmp_path)), "sm_90a")
    x, y, module = torch.randn(37, 9), torch.randn(37, 9), AddScaled()
    assert candidate.supports(module, x, y)
    result = candidate.forward(module, x, y)
    torch.testing.assert_close(result, module(x, y))
    assert not candidate.supports(module, x, y[:5])


@pytest.mark.parametrize("broken", read_records()[::15], ids=lambda each: each.name)
def test_recorded_errors_are_what_the_dsl_says(broken: Broken, tmp_path: Path):
    assert message_of(broken, tmp_path) == broken.message
