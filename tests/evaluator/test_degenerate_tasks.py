"""Tasks whose result is one value throughout: said in the verdict, and judged on inputs where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.reference import load_reference
from planted_candidates import QUALNAME, TASK, write_candidate, write_task


def check(folder: Path, expression: str, forward: str) -> Outcome:
    source = TASK.replace("torch.softmax(x * self.weight, dim=-1)", expression)
    reference = load_reference(Task(str(write_task(folder, source)), QUALNAME))
    candidate = f"def forward(module, x):\n    return {forward}\n"
    loaded = load_candidate(write_candidate(folder, candidate, "cpu"), reference)
    return run_checks(reference, loaded, torch.device("cpu"), Plan(), lambda _: None)


ZERO_ON_OWN = "torch.relu(x - 100)"  # of normal inputs


def test_what_is_zero_on_the_tasks_own_inputs_is_judged_on_others(tmp_path: Path):
    outcome = check(tmp_path, ZERO_ON_OWN, "torch.clamp(x - 100, min=0)")
    assert outcome.findings == []
    assert any("the output is 0 throughout on the task's own inputs" in label for label in outcome.checks)
    wrong = check(tmp_path, ZERO_ON_OWN, "torch.zeros_like(x)")
    assert {finding.kind for finding in wrong.findings} == {"wrong-values"}
    assert all("the task's inputs" not in finding.message for finding in wrong.findings)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("torch.zeros_like(x)", "0"),
        ("(x - x.amax(1, keepdim=True)).amax(1).nan_to_num(0.0, 0.0, 0.0)", "0"),
        ("torch.softmax(x, 1).sum(1)", "1"),
        ("(x.amax(1) > float('inf'))", "0"),
    ],
)
def test_what_is_one_value_for_all_inputs_is_said(expression: str, value: str, tmp_path: Path):
    outcome = check(tmp_path, expression, expression.replace("x - x.amax(1, keepdim=True)", "x - x.max(1)[0][:, None]"))
    assert outcome.ok
    (finding,) = outcome.findings
    assert finding.kind == "degenerate-task"
    assert finding.severity == "information"
    assert f"was {value} throughout" in finding.message


def test_what_is_rounding_noise_on_the_tasks_own_inputs_is_said(tmp_path: Path):
    noise = "torch.nn.functional.layer_norm(x, x.shape[-1:]).mean(1)"
    outcome = check(tmp_path, noise, noise)
    assert outcome.findings == []
    assert any("the output is 0 throughout on the task's own inputs" in label for label in outcome.checks)
    wrong = check(tmp_path, noise, "x.new_zeros(x.shape[:1])")
    assert {finding.kind for finding in wrong.findings} == {"wrong-values"}


def test_other_tasks_are_not_called_degenerate(tmp_path: Path):
    for expression in ("torch.softmax(x, 1)", "x.argmax(1)", "x.sum()", "x > 0", "x.clamp(0, 1)"):
        outcome = check(tmp_path, expression, expression)
        assert outcome.findings == [], expression
        assert not any("degenerate" in label for label in outcome.checks), expression


def test_an_empty_result_is_compared(tmp_path: Path):
    outcome = check(tmp_path, "x[:, :0]", "x.new_empty(len(x), 0)")
    assert outcome.findings == []
    assert any("the output is empty" in label for label in outcome.checks)
    assert {finding.kind for finding in check(tmp_path, "x[:, :0]", "x.new_empty(0, len(x))").findings} == {
        "wrong-shape"
    }
