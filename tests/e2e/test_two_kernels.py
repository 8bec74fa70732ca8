"""Two kernels of one file on offer: what is decided on one leaves the other as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripted_editor import Editor, editor

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
DECIDE = ["compiled, not validated", "Review", "Accept", "Reject"]
PAIR = """\
import torch
from torch import nn


class First(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


class Second(nn.Module):
    def forward(self, x):
        return torch.tanh(x) + 1.0


def get_inputs():
    return [torch.randn(64, 256)]
"""
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def jobs_done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    root = folder / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    (root / "pair.py").write_text(PAIR)
    for name in ("First", "Second"):
        command = [sys.executable, "-m", "cutesmith_server", "optimize", f"{root / 'pair.py'}::{name}"]
        run = subprocess.run(
            [*command, "--arch", "sm_90a", "--device", "none"], capture_output=True, text=True, check=False
        )
        assert run.returncode == 4, run.stderr
    return root, Path(shutil.copytree(root, folder / "copy"))


@pytest.fixture
def pair(jobs_done: tuple[Path, Path]) -> Path:
    """A file with two classes, each with a kernel on offer."""
    root, copy = jobs_done
    shutil.rmtree(root)
    shutil.copytree(copy, root)
    return root / "pair.py"


async def opened(session: Editor, pair: Path) -> str:
    session.answers = {"never run": "Accept"}
    uri = session.open(pair)
    for name in ("First", "Second"):
        await session.state("compiled", qualname=name)
    return uri


@pytest.mark.asyncio
async def test_accepting_one_kernel_keeps_the_other_on_offer_in_its_place(pair):
    async with editor(pair.parent, options=TRUSTED) as session:
        uri = await opened(session, pair)
        assert (await session.run("accept", uri, "First") or {})["state"] == "accepted"
        assert await session.lenses(uri) == ["CuTe kernel", "Remove", *DECIDE]
        assert (await session.run("accept", uri, "Second") or {})["state"] == "accepted"
        text = session.documents[uri].text
        for name in ("first", "second"):
            body = text.partition(f"class {name.title()}(")[2]
            assert re.match(rf"[^\n]*\n    def forward[^\n]*\n        if {name}_cute.supports\(self, x\):", body)


@pytest.mark.asyncio
async def test_rejecting_one_kernel_leaves_the_accepted_one(pair):
    async with editor(pair.parent, options=TRUSTED) as session:
        uri = await opened(session, pair)
        assert await session.run("accept", uri, "Second")
        text = session.documents[uri].text
        assert await session.run("reject", uri, "First")
        assert session.documents[uri].text == text
        assert await session.lenses(uri) == ["Generate CuTe kernel", "CuTe kernel", "Remove"]
        assert await session.run("remove", uri, "Second"), session.said()
        assert session.documents[uri].text == PAIR


def test_the_page_of_complaints_names_tests_that_exist():
    page = (TESTS.parent / "docs" / "editors.md").read_text()
    named = re.findall(r"^\|[^|]+\|[^|]+\| `(test_\w+)` \|$", page, flags=re.MULTILINE)
    assert len(set(named)) >= 25
    files = [*(TESTS / "e2e").glob("test_*.py"), *(TESTS / "server").glob("test_*.py")]
    defined = set(re.findall(r"^(?:async )?def (test_\w+)\(", "".join(map(Path.read_text, files)), flags=re.MULTILINE))
    assert set(named) <= defined
