"""The patched file: the kernel's bits where the guard holds, the original's elsewhere, eagerly and compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cutesmith_evaluator.types import Task
from cutesmith_evaluator.worker.adopted import Adoption, check_kernel_runs, check_on_cpu
from cutesmith_evaluator.worker.candidate import LoadedCandidate, load_candidate
from cutesmith_evaluator.worker.checks import Outcome
from cutesmith_evaluator.worker.reference import Reference, load_reference
from planted_candidates import (
    AS_AN_OP,
    GUARD,
    HONEST,
    QUALNAME,
    TASK,
    patched_text,
    write_candidate,
    write_patched,
    write_task,
)

CPU = torch.device("cpu")


class Project:
    """A task, a candidate for it, and a scratch folder with the patched file beside a copy of the candidate."""

    def __init__(self, folder: Path, forward: str, device: str, **patch: str) -> None:
        self.task = write_task(folder)
        self.candidate = write_candidate(folder / "store", forward, device)
        self.patched = write_patched(folder / "scratch", self.candidate, patched_text(**patch))
        self.kernel = self.patched.with_name(self.candidate.name)

    def loaded(self) -> tuple[Reference, LoadedCandidate]:
        reference = load_reference(Task(str(self.task), QUALNAME))
        return reference, load_candidate(self.candidate, reference)

    def cpu_outcome(self) -> Outcome:
        outcome = Outcome()
        check_on_cpu(*self.loaded(), self.patched, outcome)
        return outcome

    def kernel_outcome(self) -> Outcome:
        """The part for a device, on the CPU: the candidate has to support CPU tensors."""
        outcome = Outcome()
        reference, candidate = self.loaded()
        with torch.no_grad():
            inputs = reference.inputs(0, CPU)
            adoption = Adoption(reference, candidate, self.patched)
            check_kernel_runs(adoption, reference.build(CPU), inputs, CPU, outcome)
        return outcome


def test_the_original_runs_on_the_cpu_with_gradients_and_when_disabled(tmp_path: Path):
    outcome = Project(tmp_path, HONEST["own_softmax"], "cuda").cpu_outcome()
    assert outcome.findings == []
    assert outcome.checks == [
        "patched file: imported",
        "patched class: the original's bits with gradients on the CPU",
        "patched class: the original's bits on the CPU",
        "patched class: the original's bits on the CPU with CUTESMITH_DISABLE=1",
    ]


def test_inputs_that_would_fill_the_memory_are_not_made(tmp_path: Path):
    project = Project(tmp_path, HONEST["own_softmax"], "cuda")
    project.task.write_text(TASK.replace("torch.randn(64, 40)", "torch.randn(1 << 20, 1 << 20)"))
    assert project.cpu_outcome().checks[-1].endswith("the inputs are too big")


def test_a_kernel_that_ignores_the_switch_is_found(tmp_path: Path):
    findings = Project(tmp_path, HONEST["own_softmax"], "cpu").cpu_outcome().findings
    assert any("called the kernel on the CPU with CUTESMITH_DISABLE=1" in finding.message for finding in findings)


def test_a_kernel_that_heeds_the_switch_is_not_called(tmp_path: Path):
    switched = (
        HONEST["own_softmax"] + "\nimport os\nif os.environ.get('CUTESMITH_DISABLE') == '1':\n    DEVICE = 'none'\n"
    )
    findings = Project(tmp_path, switched, "cpu").cpu_outcome().findings
    assert not any("CUTESMITH_DISABLE=1" in finding.message for finding in findings)


def test_lost_gradients_are_found(tmp_path: Path):
    guard = GUARD + "        x = x.detach()\n"
    findings = Project(tmp_path, HONEST["own_softmax"], "cuda", guard=guard).cpu_outcome().findings
    assert [finding.kind for finding in findings] == ["adopted-differs"]
    assert "values or gradients" in findings[0].message


def test_another_result_is_found(tmp_path: Path):
    guard = GUARD + "        x = x + 1e-3 * x.sum()\n"
    findings = Project(tmp_path, HONEST["own_softmax"], "cuda", guard=guard).cpu_outcome().findings
    assert len(findings) == 3


def test_a_kernel_file_with_other_bytes_is_refused(tmp_path: Path):
    project = Project(tmp_path, HONEST["own_softmax"], "cuda")
    project.kernel.write_text(project.kernel.read_text() + "\n# another\n")
    assert [finding.kind for finding in project.cpu_outcome().findings] == ["adopted-kernel-missing"]


def test_a_patched_file_that_does_not_import_its_kernel_is_refused(tmp_path: Path):
    project = Project(tmp_path, HONEST["own_softmax"], "cuda", importing="")
    assert [finding.kind for finding in project.cpu_outcome().findings] == ["adopted-kernel-missing"]


def test_a_patched_file_that_cannot_be_imported_is_a_finding(tmp_path: Path):
    project = Project(
        tmp_path, HONEST["own_softmax"], "cuda", importing="import weighted_softmax_cute, no_such_module\n"
    )
    (finding,) = project.cpu_outcome().findings
    assert finding.kind == "import-error"
    assert "no_such_module" in finding.message


def test_relative_imports_find_the_kernel_and_the_package(tmp_path: Path):
    package = tmp_path / "adopting_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "shared.py").write_text("TEMPERATURE = 1.0\n")
    text = TASK.replace("import torch\n", "import torch\nfrom .shared import TEMPERATURE\n", 1)
    file = package / "layers.py"
    file.write_text(text)
    candidate = write_candidate(tmp_path, HONEST["own_softmax"], "cuda")
    importing = "from . import weighted_softmax_cute\n"
    patched = write_patched(tmp_path / "scratch", candidate, patched_text(text, importing))
    reference = load_reference(Task(str(file), QUALNAME))
    outcome = Outcome()
    check_on_cpu(reference, load_candidate(candidate, reference), patched, outcome)
    assert outcome.findings == []


def test_the_kernels_bits_come_out_eagerly_and_compiled(tmp_path: Path):
    outcome = Project(tmp_path, AS_AN_OP, "cpu").kernel_outcome()
    assert outcome.findings == []
    assert outcome.checks == [
        "patched class: the kernel's bits",
        "patched class: the kernel's bits under torch.compile, in one graph",
    ]


def test_a_guard_that_never_holds_is_found(tmp_path: Path):
    findings = Project(tmp_path, AS_AN_OP, "cuda").kernel_outcome().findings
    assert "did not call the kernel" in findings[0].message
    assert any("runs the original code" in finding.message for finding in findings)


def test_a_graph_break_is_found(tmp_path: Path):
    breaking = AS_AN_OP.replace("    return _OP(", "    torch._dynamo.graph_break()\n    return _OP(")
    findings = Project(tmp_path, breaking, "cpu").kernel_outcome().findings
    assert [finding.kind for finding in findings] == ["adopted-compile-error"]


def test_kernelbenchs_contract_is_not_adoptable(tmp_path: Path):
    project = Project(tmp_path, HONEST["own_softmax"], "cuda")
    project.candidate.write_text("from torch import nn\n\n\nclass ModelNew(nn.Module):\n    pass\n")
    project.kernel.write_bytes(project.candidate.read_bytes())
    assert [finding.kind for finding in project.cpu_outcome().findings] == ["not-adoptable"]


@pytest.fixture(autouse=True)
def _fresh_store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
