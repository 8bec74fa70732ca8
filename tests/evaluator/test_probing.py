"""Checks of a module, written apart from it: whether they hold, whose fault it is if not, and what they are worth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.probing import Probing
from cutesmith_evaluator.types import Task

MODULE = """
class Model(nn.Module):
    def __init__(self, width: int = 3):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.scale = 1.0

    def forward(self, x):
        return x.flip(0) * self.scale


def get_inputs():
    return [torch.randn(300)]
"""
CHECKS = """import torch


def check_shape(build, inputs):
    for shape in ((5,), (3, 2)):
        assert build()(torch.ones(shape)).shape == shape


def check_worked_values(build, inputs):
    x = torch.tensor([1.0, 2.0, 4.0])
    torch.testing.assert_close(build()(x), torch.tensor([4.0, 2.0, 1.0]))
"""
Probe = Callable[..., Probing]


@pytest.fixture
def probe(worker: Worker, tmp_path: Path) -> Probe:
    """Probes class `Model` of a file with this body."""

    def probed(checks: str | None, body: str = MODULE) -> Probing:
        file, checked = tmp_path / "model.py", tmp_path / "checks.py"
        file.write_text(f"import torch\nfrom torch import nn\n{body}")
        checked.write_text(checks or "")
        return worker.probe(Task(str(file), "Model"), checked if checks else None)

    return probed


def outcomes(probing: Probing) -> dict[str, str]:
    return {one.name: one.outcome for one in probing.checks}


def test_how_a_class_is_built_and_called(probe: Probe) -> None:
    assert probe(None) == Probing(("x: float32[300]",), ("weight: float32[3]",))


def test_sizes_that_no_memory_holds_are_only_described(probe: Probe) -> None:
    assert probe(None, MODULE.replace("300", "300, 2**20, 2**20")).inputs == ("x: float32[300, 1048576, 1048576]",)


def test_checks_that_hold_and_what_each_of_them_catches(probe: Probe) -> None:
    probing = probe(CHECKS)
    assert outcomes(probing) == {"check_shape": "agrees", "check_worked_values": "agrees"}
    assert probing.uncaught == ()
    shape, values = probing.checks
    assert shape.caught == ("one whose result has another shape",)
    assert len(values.caught) == 6


def test_whose_fault_a_failure_is(probe: Probe) -> None:
    checks = """import torch


def check_disagrees(build, inputs):
    assert build()(torch.ones(2))[0] == 2, "not 2"


def check_raised(build, inputs):
    build()(None)


def check_broken(build, inputs):
    build().nothing


def check_exits(build, inputs):
    raise SystemExit(0)
"""
    probing = probe(checks)
    assert outcomes(probing) == {
        "check_disagrees": "disagrees",
        "check_raised": "raised",
        "check_broken": "broken",
        "check_exits": "broken",
    }
    assert probing.checks[0].message == "line 5 of the checks: AssertionError: not 2"
    assert "line 9 of the checks: AttributeError: 'NoneType'" in probing.checks[1].message


def test_a_file_of_checks_that_does_not_run_is_a_finding(probe: Probe) -> None:
    assert "ZeroDivisionError" in probe("X = 1 / 0\n").findings[0].message
    assert probe("def test_a(build, inputs):\n    pass\n").findings[0].kind == "no-checks"


def test_arguments_and_state_are_the_checks_to_choose(probe: Probe) -> None:
    checks = """import torch


def check_scaled(build, inputs):
    module = build(width=7)
    assert module.weight.shape == (7,)
    module.scale = 3.0
    assert module(torch.tensor([1.0, 2.0])).tolist() == [6.0, 3.0]
    assert torch.equal(inputs(1)[0], inputs(1)[0])
"""
    probing = probe(checks)
    assert outcomes(probing) == {"check_scaled": "agrees"}
    assert len(probing.checks[0].caught) == 6


def test_a_wrong_module_that_is_no_other_need_not_be_caught(probe: Probe) -> None:
    """Of a module whose results are all one value, the reversed and the constant one are the same."""
    body = MODULE.replace("x.flip(0) * self.scale", "torch.ones_like(x)")
    ones = (
        "import torch\n\n\ndef check_ones(build, inputs):\n    assert build()(torch.zeros(3)).tolist() == [1.0] * 3\n"
    )
    probing = probe(ones, body)
    assert probing.uncaught == ()
    assert "one whose result is reversed along its last dimension" not in probing.checks[0].caught


VACUOUS = {
    "only the shape": CHECKS[: CHECKS.index("def check_worked")],
    "any number": "def check_numbers(build, inputs):\n    assert build()(inputs(0)[0]).isfinite().all()\n",
    "nothing called": "def check_builds(build, inputs):\n    assert build() is not None\n",
    "zeros alone": (
        "import torch\n\n\ndef check_zeros(build, inputs):\n"
        "    assert torch.equal(build()(torch.zeros(3)), torch.zeros(3))\n"
    ),
    "the order of equals": (
        "import torch\n\n\ndef check_ones(build, inputs):\n"
        "    torch.testing.assert_close(build()(torch.ones(3)), torch.ones(3))\n"
    ),
    "loose": CHECKS.replace("[4.0, 2.0, 1.0])", "[4.0, 2.0, 1.0]), atol=0.5, rtol=0.1"),
}
MISSED = {
    "only the shape": "one that returns zeros",
    "any number": "one whose result has another shape",
    "nothing called": "any module: no check calls it",
    "zeros alone": "one that returns zeros",
    "the order of equals": "one whose result is reversed along its last dimension",
    "loose": "one whose result is 3 % and 0.01 off",
}


@pytest.mark.parametrize("kind", VACUOUS)
def test_what_checks_miss_is_named(probe: Probe, kind: str) -> None:
    probing = probe(VACUOUS[kind])
    assert set(outcomes(probing).values()) == {"agrees"}
    if kind == "any number":
        assert probing.checks[0].caught == ()
    assert MISSED[kind] in probing.uncaught
