"""Bad input gets a clear sentence in the editor and on the command line, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import CUTESMITH, cutesmith
from scripted_editor import editor

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
ENDED = ("ready", "compiled", "failed")

MODULE = """\
import os

import torch
from torch import nn


class A(nn.Module):
    def __init__(self):
        super().__init__()
        {constructor}

    def forward(self, x):
        {forward}


def get_inputs():
    return [{inputs}]
"""


def module(
    constructor: str = "pass", forward: str = "return torch.relu(x)", inputs: str = "torch.randn(64, 96)"
) -> str:
    return MODULE.format(constructor=constructor, forward=forward, inputs=inputs)


WITHOUT_INPUTS = """\
from torch import nn


class A(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def forward(self, x, mask=None):
        return x.sigmoid() * self.width"""

REFUSED = {
    "syntax error": (module(forward="return x +"), 2, "syntax-error", "a.py:13"),
    "constructor raises": (module(constructor="raise OSError('no file')"), 2, "constructor-raised", "no file"),
    "forward raises": (module(forward="raise KeyError('mask')"), 2, "forward-raised", "mask"),
    "forward exits": (module(forward="os._exit(7)"), 2, "worker-died", "exit code 7"),
    "inputs raise": (module(inputs="1 / 0"), 2, "inputs-raised", "ZeroDivisionError"),
    "no inputs": (module().replace("get_inputs", "unrelated"), 2, "no-inputs", "def get_inputs():"),
    "complex inputs": (module(inputs="torch.randn(8, 8, dtype=torch.cfloat)"), 2, "unsupported-dtype", "complex"),
    "integer inputs": (module(inputs="torch.ones(8, 8, dtype=torch.int64)"), 3, "no-recipe", "int64"),
    "no elements": (module(inputs="torch.randn(0, 8)"), 3, "no-recipe", "no elements"),
    "one element": (module(inputs="torch.randn(1)"), 3, "no-recipe", "element"),
    "unsupported op": (module(forward="return x.sort(0)[0]"), 3, "no-recipe", "aten.sort.default"),
    "not contiguous": (module(inputs="torch.randn(96, 64).t()"), 3, "no-recipe", "contiguous"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_command_line_names_what_is_wrong(project, case):
    source, status, kind, said = REFUSED[case]
    (project / "a.py").write_text(source)
    ended = cutesmith("optimize", "a.py", "--device", "none", "--arch", "sm_90a", "--json", cwd=project)
    assert ended.status == status
    finding = next(each for each in ended.json["findings"] if each["severity"] == "error")
    assert finding["kind"] == kind
    assert said in finding["message"]
    assert ended.json["stopped"]
    assert (project / "a.py").read_text() == source


def test_half_precision_is_no_bad_input(project):
    (project / "a.py").write_text(module(inputs="torch.randn(64, 96).half()"))
    assert cutesmith("optimize", "a.py", "--device", "none", "--arch", "sm_80", cwd=project).status == 4


def test_several_classes_are_listed(project):
    (project / "a.py").write_text(module() + "\n\nclass B(A):\n    def forward(self, x):\n        return x\n")
    ended = cutesmith("optimize", "a.py", cwd=project)
    assert ended.status == 2
    assert "a.py::A, a.py::B" in ended.stderr


def test_an_interpreter_without_torch_is_named(project, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True)
    python = str(tmp_path / "empty" / "bin" / "python")
    ended = cutesmith("optimize", "new_gelu.py", "--interpreter", python, "--json", cwd=project)
    assert ended.status == 2
    assert f"{python} has no torch" in ended.json["stopped"]


def test_a_project_with_packages_of_our_folders_names(project):
    for name in ("server", "agent", "evaluator"):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(f"NAME = {name!r}\n")
    source = "import agent, evaluator, server\nassert (server.NAME, agent.NAME) == ('server', 'agent')\n"
    (project / "a.py").write_text(source + module())
    (project / "cutesmith_server.py").write_text("raise RuntimeError('the project shadows us')\n")
    run = subprocess.run(
        [CUTESMITH[0], "-P", *CUTESMITH[1:], "optimize", "a.py", "--device", "none", "--arch", "sm_90a"],
        cwd=project, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 4, run.stderr


@pytest.mark.asyncio
async def test_the_editor_shows_what_is_wrong_on_the_class_and_where(project):
    path = project / "a.py"
    path.write_text(module(forward="raise KeyError('mask')"))
    async with editor(project, options=TRUSTED) as session:
        uri = session.open(path)
        await session.run("generate", uri, "A")
        failed = await session.state("failed")
        assert "mask" in failed["message"]
        (diagnostic,) = await session.until(lambda: session.diagnostics(uri))
        assert (diagnostic.code, diagnostic.range.start.line) == ("forward-raised", 6)
        (related,) = diagnostic.related_information or ()
        assert (related.location.uri, related.location.range.start.line) == (uri, 12)
        lens, retry = await session.lenses(uri)
        assert lens.startswith("No CuTe kernel: a.py:13 failed")
        assert retry == "Try again"
        session.type(uri, "raise KeyError('mask')", "return x + 1")
        await session.until(lambda: not session.diagnostics(uri))


@pytest.mark.asyncio
async def test_a_failing_kernel_is_shown_at_its_line(offered):
    kernel = offered / "new_gelu_cute.py"
    source = next((offered / ".cutesmith").rglob("new_gelu_cute.py")).read_text()
    before, _, _ = source.partition("cute.math.exp(")
    kernel.write_text(source.replace("cute.math.exp(", "cute.math.no_such_function("))
    async with editor(offered, options=TRUSTED) as session:
        uri = session.open(offered / "new_gelu.py")
        offers = await session.actions(uri, "class NewGELU", only=["refactor.rewrite.cutesmith.check"])
        (offer,) = [each for each in offers if "Validate" in each["title"]]
        assert offer["title"] == "Validate new_gelu_cute.py against NewGELU"
        assert offer["command"]["arguments"][0]["candidate"] == str(kernel)
        await session.run("check", uri, "NewGELU", candidate=str(kernel))
        await session.state("failed")
        (diagnostic,) = await session.until(
            lambda: [each for each in session.diagnostics(uri) if each.related_information]
        )
        (related,) = diagnostic.related_information or ()
        assert related.location.uri == kernel.as_uri()
        assert related.location.range.start.line == before.count("\n")


@pytest.mark.asyncio
async def test_a_kernel_file_offers_to_be_validated_against_its_module(offered):
    kernel = offered / "new_gelu_cute.py"
    kernel.write_text(next((offered / ".cutesmith").rglob("new_gelu_cute.py")).read_text())
    async with editor(offered, options=TRUSTED) as session:
        uri = session.open(kernel)
        (offer,) = await session.actions(uri, "import")
        assert offer["title"] == "Validate this kernel against its module (NewGELU in new_gelu.py)"
        (argument,) = offer["command"]["arguments"]
        assert argument == {"uri": (offered / "new_gelu.py").as_uri(), "class": "NewGELU", "candidate": str(kernel)}
        await session.run("check", argument["uri"], "NewGELU", candidate=argument["candidate"])
        assert (await session.state(*ENDED))["state"] == "compiled"


@pytest.mark.asyncio
async def test_missing_inputs_are_added_by_a_quick_fix(project):
    path = project / "a.py"
    path.write_text(WITHOUT_INPUTS)
    async with editor(project, options=TRUSTED) as session:
        uri = session.open(path)
        await session.run("generate", uri, "A")
        await session.state("failed")
        await session.until(lambda: session.diagnostics(uri))
        (fix,) = await session.actions(uri, "class A", only=["quickfix"])
        assert fix["title"] == "Add get_inputs()"
        assert fix["diagnostics"][0]["code"] == "no-inputs"
        await session.run("addInputs", uri, "A")
        text = session.documents[uri].text
        assert "def get_inputs():" in text
        assert "def get_init_inputs():" in text
        await session.until(lambda: not session.diagnostics(uri))
        assert await session.run("addInputs", uri, "A") is None
        await session.run("generate", uri, "A")
        await session.state("running")
        assert (await session.state(*ENDED))["state"] == "compiled"


@pytest.mark.asyncio
async def test_commands_on_what_cannot_be_say_so(project):
    twice = "from torch import nn\n" + "class A(nn.Module):\n    def forward(self, x):\n        return x\n" * 2
    (project / "twice.py").write_text(twice)
    async with editor(project, options=TRUSTED) as session:
        uri = session.open(project / "twice.py")
        for command, file, name, said in [
            ("generate", uri, "A", "more than once (lines 2 and 5)"),
            ("generate", uri, "B", "no module class B"),
            ("generate", (project / "gone.py").as_uri(), "A", "does not exist any more"),
            ("generate", "untitled:Untitled-1", "A", "save it first"),
            ("check", uri, "A", "Name the kernel file"),
            ("cancel", uri, "A", "No kernel is being made"),
            ("accept", uri, "A", "generate one first"),
            ("reject", uri, "A", "no kernel for A to reject"),
            ("remove", uri, "A", "no CuTe kernel to remove"),
            ("review", uri, "A", "to look at yet"),
        ]:
            assert await session.run(command, file, name) is None
            assert said in session.said()[-1]
    assert (project / "twice.py").read_text() == twice


@pytest.mark.asyncio
async def test_a_class_that_has_a_kernel_gets_a_new_one_in_its_place(offered):
    async with editor(offered, options=TRUSTED) as session:
        session.answers = {"never run": "Accept"}
        uri = session.open(offered / "new_gelu.py")
        await session.state("compiled")
        assert await session.run("accept", uri, "NewGELU")
        session.save(uri)
        text = session.documents[uri].text
        assert await session.run("generate", uri, "NewGELU")
        await session.state("running")
        assert (await session.state(*ENDED))["state"] == "compiled"
        assert (await session.run("accept", uri, "NewGELU") or {})["state"] == "accepted"
        assert session.documents[uri].text == text


def test_every_refused_case_is_a_file_python_could_be_given(tmp_path: Path):
    broken = [case for case, (source, *_) in REFUSED.items() if not _parses(source)]
    assert broken == ["syntax error"]


def _parses(source: str) -> bool:
    try:
        compile(source, "a.py", "exec")
    except SyntaxError:
        return False
    return True


def test_a_wrong_class_name_is_answered_with_the_modules_of_the_file(project):
    (project / "a.py").write_text(module() + module().replace("class A", "class Attention"))
    for wrong, hint in (
        ("Atention", "did you mean Attention? Its modules are A, Attention."),
        ("X", "its modules are"),
    ):
        ended = cutesmith("optimize", f"a.py::{wrong}", cwd=project)
        assert (ended.status, ended.stdout) == (2, "")
        assert f"has no class {wrong}: {hint}" in ended.stderr


def test_the_reason_alone_is_shown_where_nothing_could_be_made(project):
    (project / "a.py").write_text(WITHOUT_INPUTS)
    ended = cutesmith("optimize", "a.py", cwd=project)
    assert ended.status == 2
    (line,) = ended.stdout.splitlines()
    assert line.startswith("a.py does not say how to call A; add `def get_inputs():`")
    accepted = cutesmith("accept", "a.py", cwd=project)
    assert f"There is no kernel for A: {line}" in accepted.stderr


@pytest.mark.parametrize("bound", [("--max-dollars", "-1"), ("--max-dollars", "x"), ("--max-rounds", "0")])
def test_bounds_that_bound_nothing_are_refused(project, bound):
    ended = cutesmith("optimize", "new_gelu.py", *bound, cwd=project)
    assert ended.status == 2
    assert f"argument {bound[0]}: '{bound[1]}' is no" in ended.stderr


def test_status_names_files_with_their_folders(offered):
    ended = cutesmith("status", cwd=offered.parent)
    assert "No kernel was made in this project" in ended.stdout
    ended = cutesmith("status", offered / "new_gelu.py", cwd=offered.parent)
    assert ended.stdout.startswith("project/new_gelu.py::NewGELU  compiled")
