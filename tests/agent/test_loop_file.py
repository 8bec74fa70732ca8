"""The file a job is about: what is refused before any work, and how unsaved text and present kernels are treated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutesmith_evaluator.types import Finding, Inspection, Task
from loop_rig import MODULE, Rig
from scripted_evaluator import H200, Request, Script, ScriptedEvaluator, draft

DESCRIBED = """import torch
from torch import nn


class NewGELU(nn.Module):
    def forward(self, x):
        \"\"\"The tanh form of GELU.\"\"\"
"""


def test_a_module_no_recipe_covers_is_answered_with_the_op(rig: Rig):
    done = rig.run(findings=(Finding("no-recipe", "No recipe covers aten.sort.default.", 6, str(rig.file)),))
    assert done["exit"] == 3
    assert done["report"]["stopped"] == "No recipe covers aten.sort.default."
    assert done["report"]["findings"][0]["line"] == 6


def test_a_module_that_cannot_be_traced_is_unusable_input(rig: Rig):
    finding = Finding("no-inputs", "There are no inputs; add get_inputs().", 5, str(rig.file))
    rig.evaluator.inspection = Inspection(H200, None, ("x",), (finding,))
    done = rig.run(draft(Script(), t=1))
    assert (done["exit"], done["report"]["stopped"]) == (2, finding.message)
    assert done["report"]["device"] == "NVIDIA H200"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MODULE.replace("(self, x):\n        return", "(self, x): return"), "shares a line with its body"),
        (MODULE.replace("(self, x)", "(self, x, **kwargs)"), "takes **kwargs"),
        (MODULE + "\n\nclass NewGELU(nn.Module): pass\n", "more than once"),
        (MODULE.replace("NewGELU", "Other"), "no class NewGELU"),
        (MODULE + "\nx = (\n", "syntax error"),
        (f"{DESCRIBED}        ...\n", "only its docstring says what it computes. Write it in PyTorch (a kernel"),
        (f"{DESCRIBED}        raise NotImplementedError('later')\n", "forward of NewGELU (gelu.py:6)"),
    ],
)
def test_a_file_that_cannot_take_a_kernel_is_refused_before_any_work(rig: Rig, text: str, reason: str):
    rig.file.write_text(text)
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 2
    assert reason in done["report"]["stopped"]
    assert rig.evaluator.asked("compile") == []


def test_a_missing_file_is_refused(rig: Rig):
    rig.file.unlink()
    done = rig.run(draft(Script(), t=1))
    assert (done["exit"], done["report"]["stopped"]) == (
        2,
        f"{rig.file} cannot be read (No such file or directory); save it first.",
    )


@pytest.mark.parametrize("content", [b"# coding: utf-8\n\xff", b"# coding: klingon\n", MODULE.encode("utf-16")])
def test_a_file_that_cannot_be_decoded_is_refused(rig: Rig, content: bytes):
    rig.file.write_bytes(content)
    done = rig.run(draft(Script(), t=1))
    assert (done["exit"], done["report"]["findings"][0]["kind"]) == (2, "unreadable-file")


def test_text_that_cannot_be_encoded_is_refused(rig: Rig):
    done = rig.run(draft(Script(), t=1), job=replace(rig.job, source=MODULE + "# \ud800\n"))
    assert (done["exit"], done["report"]["findings"][0]["kind"]) == (2, "unreadable-file")


def test_unsaved_text_is_what_is_inspected_patched_and_diffed(rig: Rig):
    unsaved = MODULE.replace("return x", "return x * 2  # ü").replace("\n", "\r\n")
    finding = Finding("note", "Something.", 6, None, "information")

    def place(request: Request) -> None:
        if request.method == "inspect":
            assert request.text == unsaved

    rig.evaluator.interrupt = place
    rig.evaluator.inspection = Inspection(
        H200, ScriptedEvaluator().inspect(Task(str(rig.file), "")).graph, ("x",), (finding,)
    )
    done = rig.run(draft(Script(), t=1), job=replace(rig.job, source=unsaved))
    assert done["exit"] == 0
    assert "return x * 2  # ü\r\n" in rig.evaluator.requests[-2].patched_text
    assert "+    def" not in done["report"]["patch"]
    assert "+        if new_gelu_cute.supports(self, x):\r\n" in done["report"]["patch"]
    assert rig.file.read_text() == MODULE


def test_a_kernel_that_is_there_already_is_not_its_own_reference(rig: Rig):
    guard = "        if new_gelu_cute.supports(self, x):\n            return new_gelu_cute.forward(self, x)\n"
    text = MODULE.replace("nn\n", "nn\n\nfrom . import new_gelu_cute\n", 1).replace(
        "        return x", guard + "        return x"
    )
    rig.file.write_text(text)
    (rig.root / "pkg" / "new_gelu_cute.py").write_text("# the accepted one\n")
    done = rig.run(draft(Script(), t=1))
    assert done["exit"] == 0
    assert rig.evaluator.requests[0].text == MODULE
    assert rig.evaluator.requests[-2].patched_text == text
    assert done["report"]["kernel"]["path"] == str(rig.root / "pkg" / "new_gelu_cute.py")
    assert done["report"]["patch"] == ""


def test_a_strangers_file_of_the_kernels_name_is_not_replaced(rig: Rig):
    (rig.root / "pkg" / "new_gelu_cute.py").write_text("# mine\n")
    report = rig.run(draft(Script(), t=1))["report"]
    assert report["kernel"]["path"] == str(rig.root / "pkg" / "new_gelu_gelu_cute.py")
    assert "from . import new_gelu_gelu_cute" in report["patch"]
    (rig.root / "pkg" / "new_gelu_cute.py").write_text(report["kernel"]["source"])
    report = rig.run(draft(Script(), t=1))["report"]
    assert report["kernel"]["path"] == str(rig.root / "pkg" / "new_gelu_cute.py")
