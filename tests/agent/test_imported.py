"""Which other files a proof hangs on, and when one of them counts as changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cutesmith_agent.imported import changed_file, hashes
from cutesmith_agent.store.opening import open_store
from cutesmith_evaluator.types import Inspection
from loop_rig import Rig
from scripted_evaluator import GRAPH, H200, Script, draft

LAYERS = """\
import torch

SLOPE = 1.702


class Act(torch.nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(SLOPE * x)
"""
ACCEPTED = LAYERS.replace("import torch\n", "import torch\n\nimport act_cute\n", 1).replace(
    "        return x *",
    "        if act_cute.supports(self, x):\n            return act_cute.forward(self, x)\n        return x *",
)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (LAYERS.replace("1.702", "1.0"), True),
        ("", True),
        ("def (", True),
        (None, True),
        (LAYERS + "import act_cute\n", True),
        (LAYERS.replace("SLOPE = ", "# measured\nSLOPE =  "), False),
        (ACCEPTED, False),
    ],
)
def test_code_counts_and_neither_comments_nor_accepted_kernels(tmp_path: Path, text: str | None, counts: bool):
    file = tmp_path / "layers.py"
    file.write_text(LAYERS)
    recorded = hashes([str(file)])
    assert changed_file(recorded) is None
    file.unlink() if text is None else file.write_text(text)
    assert changed_file(recorded) == (file if counts else None)
    file.write_text(LAYERS)
    assert changed_file(recorded) is None


def test_a_job_keeps_what_its_file_imports_and_drops_verdicts_of_other_code(rig: Rig):
    layers = rig.root / "layers.py"
    layers.write_text(LAYERS)
    rig.evaluator.inspection = Inspection(H200, GRAPH, ("x",), imported=(str(layers),))
    job = replace(rig.job, resume=True, again=True)
    rig.run(draft(Script(), t=1), job=job)
    with open_store(rig.root).store as store:
        found = store.latest(str(rig.file), "NewGELU")
        assert found is not None
        assert found.imported == hashes([str(layers)])
        best = found.report["best"]
        (verdict,) = store.verdicts(best, str(rig.file), "NewGELU")
        assert verdict.imported == found.imported
    first = len(rig.evaluator.asked("validate"))
    rig.run(draft(Script(), t=1), job=job)
    again = len(rig.evaluator.asked("validate")) - first
    layers.write_text(LAYERS.replace("1.702", "1.0"))
    rig.run(draft(Script(), t=1), job=job)
    assert again < len(rig.evaluator.asked("validate")) - first - again == first
