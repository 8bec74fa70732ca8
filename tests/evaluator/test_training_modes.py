"""Modules that compute something else in training mode: matched, or refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.candidate import load_candidate
from cutesmith_evaluator.worker.checks import Outcome, run_checks
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs_plan import Plan
from cutesmith_evaluator.worker.reference import load_reference
from planted_candidates import QUALNAME, TASK, write_candidate, write_task

HONEST = "def forward(module, x):\n    return softmax(x * module.weight)\n"
REFUSES = """


def supports(module, x):
    return explain(module, x) is None


_explain = explain


def explain(module, x):
    return "the module is in training mode" if module.training else _explain(module, x)
"""


def task(expression: str, constructed: str = "pass") -> str:
    source = TASK.replace("torch.softmax(x * self.weight, dim=-1)", expression)
    return source.replace("    def forward", f"        {constructed}\n\n    def forward", 1)


def check(folder: Path, source: str, candidate: str) -> Outcome:
    reference = load_reference(Task(str(write_task(folder, source)), QUALNAME))
    loaded = load_candidate(write_candidate(folder, candidate, "cpu"), reference)
    return run_checks(reference, loaded, torch.device("cpu"), Plan(quick=True), lambda _: None)


DROPOUT = task(
    "nn.functional.dropout(torch.softmax(x * self.weight, dim=-1), 0.5, self.training)",
)
NORM = task(
    "torch.softmax(self.norm(x), -1)",
    "self.norm = nn.BatchNorm1d(columns)",
)
NORMED = """
def forward(module, x):
    norm = module.norm
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    return softmax((x - norm.running_mean) * scale + norm.bias)
"""


@pytest.mark.parametrize(("source", "forward"), [(DROPOUT, HONEST), (NORM, NORMED)], ids=["dropout", "batch norm"])
def test_a_kernel_for_eval_mode_has_to_refuse_training_mode(source: str, forward: str, tmp_path: Path):
    careless = check(tmp_path, source, forward)
    assert [finding.kind for finding in careless.findings] == ["supports-too-much"]
    assert "the module in training mode" in careless.findings[0].message
    careful = check(tmp_path, source, forward + REFUSES)
    assert careful.findings == []
    assert any("refuses the module in training mode" in label for label in careful.checks)


def test_where_the_mode_makes_no_difference_nothing_is_asked(tmp_path: Path):
    outcome = check(tmp_path, TASK, HONEST)
    assert outcome.findings == []
    assert not any("training mode" in label for label in outcome.checks)


def test_statistics_of_the_batch_are_a_function_like_any_other(tmp_path: Path):
    """A batch norm that keeps no running statistics normalises by those of the batch in eval mode, too."""
    source = task("torch.softmax(self.norm(x), -1)", "self.norm = nn.BatchNorm1d(columns, track_running_stats=False)")
    matched = """
def forward(module, x):
    centred = x - x.mean(0)
    scale = module.norm.weight / (centred.square().mean(0) + module.norm.eps).sqrt()
    return softmax(centred * scale + module.norm.bias)
"""
    outcome = check(tmp_path, source, matched)
    assert outcome.findings == []
    assert outcome.precision == "kept"


@pytest.mark.parametrize(
    ("expression", "constructed", "words"),
    [
        (
            "nn.functional.batch_norm(x, self.mean, self.var, training=True)",
            "self.register_buffer('mean', torch.zeros(columns)); self.register_buffer('var', torch.ones(columns))",
            "WeightedSoftmax writes its parameters or buffers in forward",
        ),
        ("x.mul_(self.weight).softmax(-1)", "pass", "writes its inputs in forward"),
        ("nn.functional.dropout(x, 0.5, training=True)", "pass", "draws random numbers"),
        ("nn.functional.rrelu(x, training=True)", "pass", "draws random numbers"),
    ],
)
def test_what_no_kernel_can_match_is_refused_with_the_reason(
    expression: str, constructed: str, words: str, tmp_path: Path
):
    with pytest.raises(TaskError, match=words):
        check(tmp_path, task(expression, constructed), HONEST)


READS_ONLY_ITS_INPUT = """


def supports(module, x):
    return explain(module, x) is None


def explain(module, x):
    if x.dtype is not torch.float32 or x.dim() != 2:
        return "x is not a float32 matrix"
    return "x requires gradients" if torch.is_grad_enabled() and x.requires_grad else None
"""


def test_a_parameter_that_forward_does_not_read_is_no_reason_to_refuse(tmp_path: Path):
    unread = check(
        tmp_path,
        task("torch.softmax(x, dim=-1)"),
        "def forward(module, x):\n    return softmax(x)\n" + READS_ONLY_ITS_INPUT,
    )
    assert unread.findings == []
    read = check(tmp_path, TASK, HONEST + READS_ONLY_ITS_INPUT)
    assert [finding.kind for finding in read.findings] == ["supports-too-much"]
    assert "parameters that require gradients" in read.findings[0].message
