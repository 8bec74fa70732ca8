"""All checks on the CPU, with candidates in plain PyTorch: honest ones pass, each planted fault is found."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.reference import load_reference
from planted_candidates import (
    HONEST,
    KERNELBENCH,
    QUALNAME,
    TASK,
    UNTRAINED,
    UNTRAINED_HONEST,
    write_candidate,
    write_task,
)
from planted_faults import FAULTS


def check(
    task: Path, candidate: Path, *, quick: bool = False, memory: int | None = None, qualname: str = QUALNAME
) -> Outcome:
    reference = load_reference(Task(str(task), qualname))
    loaded = load_candidate(candidate, reference)
    return run_checks(reference, loaded, torch.device("cpu"), Plan(quick), lambda _: None, memory=memory)


@pytest.mark.parametrize("name", HONEST)
def test_honest_candidates_pass_with_precision_kept(name: str, tmp_path: Path):
    outcome = check(write_task(tmp_path), write_candidate(tmp_path, HONEST[name], "cpu"))
    assert outcome.findings == []
    assert outcome.ok
    assert outcome.precision == "kept"
    assert outcome.error is not None
    assert outcome.error.kernelbench_ok
    assert 0 < outcome.error.candidate < 1e-5


@pytest.mark.parametrize("quick", [False, True])
def test_a_candidate_that_reads_all_state_passes(quick: bool, tmp_path: Path):
    candidate = write_candidate(tmp_path, UNTRAINED_HONEST, "cpu")
    outcome = check(write_task(tmp_path, UNTRAINED), candidate, quick=quick)
    assert outcome.findings == []
    assert outcome.precision == "kept"
    assert "the task's inputs with other parameters and buffers" in outcome.checks


def test_quick_checks_other_state_too(tmp_path: Path):
    candidate = write_candidate(tmp_path, FAULTS["ignores_the_bias"].source, "cpu")
    (finding, *_) = check(write_task(tmp_path, UNTRAINED), candidate, quick=True).findings
    assert "misreads bias" in finding.message


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found_and_said(name: str, tmp_path: Path):
    fault = FAULTS[name]
    outcome = check(write_task(tmp_path, fault.task), write_candidate(tmp_path, fault.source, "cpu"))
    assert not outcome.ok
    found = [finding for finding in outcome.findings if finding.kind == fault.kind]
    assert found, outcome.findings
    said = (fault.words, *fault.on_the_heap)
    assert any(words in finding.message for finding in found for words in said), found


def test_the_line_of_an_exception_is_reported(tmp_path: Path):
    candidate = write_candidate(tmp_path, FAULTS["raises"].source, "cpu")
    (finding, *_) = check(write_task(tmp_path), candidate).findings
    assert finding.file == str(candidate)
    assert finding.line is not None
    assert "no such tile" in candidate.read_text().splitlines()[finding.line - 1]


def test_kernelbench_contract_passes(tmp_path: Path):
    candidate = tmp_path / "model_new.py"
    candidate.write_text(KERNELBENCH)
    outcome = check(write_task(tmp_path), candidate)
    assert outcome.findings == []
    assert outcome.precision == "kept"


def test_kernelbench_contract_may_be_made_for_one_shape(tmp_path: Path):
    candidate = tmp_path / "model_new.py"
    candidate.write_text(KERNELBENCH.replace("return shifted", "return (len(x) == 64) * shifted"))
    outcome = check(write_task(tmp_path), candidate)
    assert outcome.ok
    assert {finding.severity for finding in outcome.findings} == {"warning"}
    assert "dimension 0" in outcome.findings[0].message


def test_quick_runs_less(tmp_path: Path):
    task, candidate = write_task(tmp_path), write_candidate(tmp_path, HONEST["own_softmax"], "cpu")
    quick, full = check(task, candidate, quick=True), check(task, candidate)
    assert quick.ok
    assert set(quick.checks) < set(full.checks)
    assert "normal inputs" in quick.checks
    assert any("dimension 0" in label for label in quick.checks)


def test_float64_in_slices_gives_the_same_figures(tmp_path: Path):
    task, candidate = write_task(tmp_path), write_candidate(tmp_path, HONEST["own_softmax"], "cpu")
    whole, sliced = check(task, candidate), check(task, candidate, memory=50_000)
    assert "float64 reference: on the device" in whole.checks
    assert any("in slices of" in label for label in sliced.checks)
    assert whole.error is not None
    assert sliced.error is not None
    assert sliced.error.candidate == pytest.approx(whole.error.candidate, rel=1e-6)
    assert sliced.error.eager == pytest.approx(whole.error.eager, rel=1e-6)


def test_wrong_values_are_placed_in_sliced_runs_too(tmp_path: Path):
    candidate = write_candidate(tmp_path, FAULTS["every_eighth_row"].source, "cpu")
    outcome = check(write_task(tmp_path), candidate, memory=50_000)
    assert "every 8th row, from row 5" in outcome.findings[0].message
    assert "[5, 0]" in outcome.findings[0].message


def test_rows_that_depend_on_each_other_are_not_sliced(tmp_path: Path):
    source = TASK.replace("dim=-1", "dim=0")
    honest = HONEST["own_softmax"].replace(
        "softmax(x * module.weight)", "softmax((x * module.weight).t()).t().contiguous()"
    )
    outcome = check(write_task(tmp_path, source), write_candidate(tmp_path, honest, "cpu"), memory=50_000)
    assert outcome.ok, outcome.findings
    assert any(label.startswith("float64 reference: on the host") for label in outcome.checks)
    assert not any("in slices" in label for label in outcome.checks)


def test_a_module_with_dropout_in_training_is_refused(tmp_path: Path):
    source = TASK.replace("torch.softmax(", "nn.functional.dropout(x, 0.5, training=True) + torch.softmax(")
    with pytest.raises(Exception, match="draws random numbers"):
        check(write_task(tmp_path, source), write_candidate(tmp_path, HONEST["own_softmax"], "cpu"))


def test_integer_outputs_must_be_eagers_own(tmp_path: Path):
    source = TASK.replace("torch.softmax(x * self.weight, dim=-1)", "torch.argmax(x * self.weight, dim=-1)")
    right = "def forward(module, x):\n    return (x * module.weight).argmax(-1)\n"
    late = "def forward(module, x):\n    return x.shape[1] - 1 - (x * module.weight).flip(1).argmax(-1)\n"
    task = write_task(tmp_path, source)
    assert check(task, write_candidate(tmp_path, right, "cpu")).ok
    outcome = check(task, write_candidate(tmp_path, late, "cpu"))  # among equals it takes the last one
    assert {finding.kind for finding in outcome.findings} == {"wrong-values"}
    assert "NaN" in outcome.findings[0].message


def test_outputs_must_not_share_memory_where_the_modules_do_not(tmp_path: Path):
    source = TASK.replace(
        "return torch.softmax(x * self.weight, dim=-1)",
        "return (y := torch.softmax(x * self.weight, dim=-1)), y.clone(), y[:3]",
    )
    task = write_task(tmp_path, source)
    candidate = "def forward(module, x):\n    y = softmax(x * module.weight)\n    return y, {}, y[:3]\n"
    assert check(task, write_candidate(tmp_path, candidate.format("y.clone()"), "cpu"), quick=True).findings == []
    shared = check(task, write_candidate(tmp_path, candidate.format("y[:]"), "cpu"), quick=True)
    assert "Outputs 0 and 1 share memory" in shared.findings[0].message


CANCELLING = """
    x = torch.randn(64, 20)
    return [torch.cat((x, -x), 1)[:, torch.randperm(40)]]
"""


def test_integers_that_rounding_decides_may_differ_as_eagers_do(tmp_path: Path):
    """The signs of sums that cancel to nothing."""
    source = TASK.replace("torch.softmax(x * self.weight, dim=-1)", "x.sum(1) > 0").replace(
        "    return [torch.randn(64, 40)]\n", CANCELLING
    )
    task = write_task(tmp_path, source)
    other = "def forward(module, x):\n    return x.flip(1).cumsum(1)[:, -1] > 0\n"
    outcome = check(task, write_candidate(tmp_path, other, "cpu"))
    assert outcome.ok, outcome.findings
    wrong = other.replace("> 0", "< 0")
    assert not check(task, write_candidate(tmp_path, wrong, "cpu")).ok


def test_tuples_are_compared_output_by_output(tmp_path: Path):
    source = TASK.replace(
        "return torch.softmax(x * self.weight, dim=-1)", "return torch.relu(x), torch.softmax(x * self.weight, dim=-1)"
    )
    right = "def forward(module, x):\n    return torch.relu(x), softmax(x * module.weight)\n"
    task = write_task(tmp_path, source)
    assert check(task, write_candidate(tmp_path, right, "cpu")).ok
    outcome = check(task, write_candidate(tmp_path, right.replace("softmax(x", "2 * softmax(x"), "cpu"))
    assert "output 1" in outcome.findings[0].message


def test_an_infinity_that_only_float32_loses_is_not_held_against_a_kernel(tmp_path: Path):
    """Eager overflows on the way to 1; a kernel may be better than eager."""
    source = TASK.replace("torch.softmax(x * self.weight, dim=-1)", "x.exp() / x.exp()").replace(
        "torch.randn(64, 40)", "100 * torch.rand(64, 40)"
    )
    better = "def forward(module, x):\n    return torch.where(x.isfinite(), 1.0, torch.nan * x)\n"
    outcome = check(write_task(tmp_path, source), write_candidate(tmp_path, better, "cpu"), quick=True)
    assert outcome.ok, outcome.findings


def test_equal_inputs_do_not_decide_the_precision(tmp_path: Path):
    source = (
        TASK.replace("torch.softmax(x * self.weight, dim=-1)", "x.sum(dim=-1)")
        .replace("64, 40)", "64, 4096)")
        .replace("[40]", "[4096]")
    )
    serial = "def forward(module, x):\n    return x.reshape(len(x), 512, 8).cumsum(-2)[:, -1].sum(-1)\n"
    outcome = check(write_task(tmp_path, source), write_candidate(tmp_path, serial, "cpu"))
    assert "wrong-values" not in {finding.kind for finding in outcome.findings}
    assert "all equal inputs" in outcome.checks
    assert "all equal" not in outcome.worst_label
