"""`explain` of generated files, asked on the CPU: what the module holds is looked at before the tensors."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.nn import functional as F
from torch.nn.utils.parametrize import register_parametrization

from cutesmith_agent.recipes import Target, propose, with_header
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task

MODULES = Path(__file__).with_name("modules.py")
_numbers = itertools.count()


class _OwnNorm(torch.nn.LayerNorm):
    """A LayerNorm by inheritance and settings, not by class."""


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"conditions_{next(_numbers)}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sources() -> Iterator[Callable[[str], str]]:
    with Worker(Path(sys.executable)) as worker:

        def source(name: str) -> str:
            inspection = worker.inspect(Task(str(MODULES), name))
            proposal = propose(inspection, Target(name, MODULES, "sm_90a"))
            assert proposal.drafts, proposal.findings
            return proposal.drafts[0].source

        yield source


@pytest.fixture(scope="module")
def configured(sources: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("configured") / "configured_cute.py"
    path.write_text(sources("Configured"))
    return _load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: None, "x is not a contiguous float32 CUDA tensor"),
        (lambda m: setattr(m, "slope", 0.5), "module.slope is not 0.25"),
        (lambda m: setattr(m, "bounded", False), "module.bounded is not True"),
        (lambda m: setattr(m, "mode", "slow"), "module.mode is not 'fast'"),
        (lambda m: setattr(m, "act", F.gelu), "module.act is not"),
        (lambda m: setattr(m.layers[0], "eps", 1e-3), "eps"),
        (lambda m: m.layers.__delitem__(0), "not put together"),
        (lambda m: setattr(m, "layers", None), "not put together"),
        (lambda m: m.layers.__setitem__(0, torch.nn.Identity()), "not put together"),
        (lambda m: m.layers.append(torch.nn.LayerNorm(256)), "len(module.layers._modules) is not 1"),
        (lambda m: m.layers[0].register_forward_hook(lambda *args: None), "module.layers[0] has hooks"),
        (lambda m: m.layers[0].register_forward_pre_hook(lambda *args: None), "module.layers[0] has hooks"),
        (
            lambda m: m.layers.__setitem__(0, _OwnNorm(256)),
            "module.layers[0] is not a torch.nn.LayerNorm",
        ),
        (
            lambda m: register_parametrization(m.layers[0], "weight", torch.nn.Identity()),
            "not put together",
        ),
    ],
)
def test_a_module_set_up_otherwise_is_refused_with_the_reason(
    configured: ModuleType, change: Callable[[torch.nn.Module], object], words: str
) -> None:
    module = _load(MODULES).Configured().eval()
    change(module)
    with torch.no_grad():
        reason = configured.explain(module, torch.randn(50, 256))
    assert words in reason
    assert configured.supports(module, torch.randn(50, 256)) is False


def test_arguments_that_are_no_tensors_are_refused(configured: ModuleType) -> None:
    module = _load(MODULES).Configured().eval()
    for x in (None, 3.0, [torch.ones(2)], torch.ones(50, 256, device="meta")):
        assert configured.explain(module, x) is not None


def test_a_reloaded_file_registers_its_op_again(
    sources: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reloaded_cute.py").write_text(sources("Maximum"))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("reloaded_cute")
    importlib.reload(module)
    x = torch.ones(4, 256, device="meta")
    assert module._OP(x).shape == (4,)


def test_a_file_that_is_imported_twice_leaves_the_first_in_use(
    sources: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "twice_cute.py").write_text(sources("Maximum"))
    monkeypatch.syspath_prepend(tmp_path)
    modules = []
    for _ in range(3):
        modules.append(importlib.import_module("twice_cute"))
        del sys.modules["twice_cute"]
    monkeypatch.setitem(sys.modules, "twice_cute", modules[1])
    importlib.reload(modules[1])
    x = torch.ones(4, 256, device="meta")
    assert [module._OP(x).shape for module in modules] == [(4,)] * 3
    assert len({module._OP for module in modules}) == 3


def test_a_header_is_replaced_and_cannot_break_the_file(sources: Callable[[str], str]) -> None:
    source = sources("Maximum")
    other = with_header(source, ('with """quotes"""', "and \\ backslash"))
    compile(other, "x", "exec")
    assert other.split('"""')[2] == source.split('"""')[2]
    assert with_header(other, ("nothing was run on this file yet",)) == source


def test_the_kill_switch(sources: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "switched_cute.py"
    path.write_text(sources("Maximum"))
    monkeypatch.setenv("CUTESMITH_DISABLE", "1")
    assert _load(path).explain(_load(MODULES).Maximum(), torch.ones(4, 256)) == "CUTESMITH_DISABLE=1 is set"


def test_names_outside_ascii(sources: Callable[[str], str], tmp_path: Path) -> None:
    path = tmp_path / "größe_cute.py"
    path.write_text(sources("Größe"))
    module = _load(path)
    assert "CUDA" in module.explain(_load(MODULES).Größe(), torch.ones(4, 256))
    assert module._OP(torch.ones(4, 256, device="meta")).shape == (4, 256)
