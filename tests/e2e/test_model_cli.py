"""The command line with a model behind it: keys, consent, reasons, and what can be exported afterwards."""

from __future__ import annotations

import json
import os
import pty
from contextlib import suppress
from pathlib import Path

import pytest

import model_kernels as kernels
from command_line import CUTESMITH, Ended, cutesmith
from model_rig import DEFAULT, KEY
from scripted_messages import Act, Fail, Request, Say, ScriptedMessages, kernel, patch

EXAMPLES = Path(__file__).parents[2] / "examples"
WITHOUT_GPU = ("--device", "none", "--arch", "sm_90a")


@pytest.fixture
def flip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that no recipe covers, in a project of its own; the environment has a key and names no model's host."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "flip.py").write_text(kernels.MODULE)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("CUTESMITH_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CUTESMITH_MODEL", DEFAULT)
    return root / "flip.py"


def test_no_key_is_one_line_that_says_how_to_set_it(flip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    ended = cutesmith("optimize", flip, "--proposer", "llm", *WITHOUT_GPU)
    assert ended.status == 2
    assert "ANTHROPIC_API_KEY is not set; run `export ANTHROPIC_API_KEY=<your key>` and try again" in ended.stdout


def test_nothing_is_sent_before_the_user_agreed(flip: Path) -> None:
    with ScriptedMessages([]) as endpoint:
        address = ("--proposer", "llm", "--json", *WITHOUT_GPU)
        ended = cutesmith("optimize", flip, *address)
        assert endpoint.requests == []
    assert ended.status == 2
    assert "Nothing was sent. Ask claude-" in ended.json["error"]
    assert ended.json["error"].endswith("Add --yes to agree.")


def test_on_a_terminal_it_asks_and_a_no_sends_nothing(flip: Path) -> None:
    """On a pseudo-terminal, as a person would answer."""
    words = ("optimize", str(flip), "--proposer", "llm", *WITHOUT_GPU)
    child, terminal = pty.fork()
    if child == 0:
        os.execv(CUTESMITH[0], [*CUTESMITH, *words])
    said = b""
    with suppress(OSError):  # the terminal's end
        while data := os.read(terminal, 4096):
            said += data
            if b"[y/N]" in data:
                os.write(terminal, b"n\n")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert said.count(b"[y/N]") == 1
    assert b"Nothing was sent" in said


def test_a_yes_does_not_cover_an_address_that_the_project_names(flip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUTESMITH_BASE_URL")
    flip.with_name("pyproject.toml").write_text('[tool.cutesmith]\nbase_url = "https://models.example.net"\n')
    ended = cutesmith("optimize", flip, "--proposer", "llm", "--yes", "--json", *WITHOUT_GPU)
    assert ended.status == 2
    assert "--yes does not cover what this project's pyproject.toml asks for" in ended.json["error"]
    assert "pyproject.toml asks for: base_url https://models.example.net." in ended.json["error"]


BROKEN, MENDED = kernels.flip(thread=kernels.UNKNOWN_NAME), kernels.flip()
MEND = patch(kernels.UNKNOWN_NAME, kernels.KNOWN_NAME, "the name that the DSL has")


def optimize(flip: Path, acts: list[Act], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[Ended, list[Request]]:
    """How it ended, and what was asked of a model that plays `acts`."""
    with ScriptedMessages(acts) as endpoint:
        monkeypatch.setenv("CUTESMITH_BASE_URL", endpoint.url)
        ended = cutesmith("optimize", flip, "--proposer", "llm", "--yes", *WITHOUT_GPU, *words)
        return ended, endpoint.requests


def test_a_wrong_key_is_told_with_the_apis_reason(flip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Fail(401, "authentication_error", "invalid x-api-key")
    ended, asked = optimize(flip, [refusal], monkeypatch)
    assert ended.status == 3
    assert " ".join(ended.stdout.split()).count("answered 401: invalid x-api-key; check ANTHROPIC_API_KEY.") == 1
    assert len(asked) == 1
    assert KEY not in ended.stdout + ended.stderr


def test_offline_the_recipes_work(flip: Path) -> None:
    """Nothing listens at the model's address."""
    (file := flip.with_name("new_gelu.py")).write_bytes((EXAMPLES / "new_gelu.py").read_bytes())
    ended = cutesmith("optimize", file, "--proposer", "llm", "--yes", *WITHOUT_GPU)
    assert ended.status == 4, ended.stderr
    assert "To take it: cutesmith accept" in ended.stdout
    assert "the model was not asked" in " ".join(ended.stdout.split())


def test_a_model_writes_what_no_recipe_covers_over_two_runs_and_it_can_be_exported(
    flip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run breaks off when the account is empty; `--resume` goes on with the answer that it has."""
    empty = Fail(400, "invalid_request_error", "credit balance is too low")
    half = Say(None, text="half a character: \ud83d", stop="end_turn")
    ended, asked = optimize(flip, [half, kernel(BROKEN), empty], monkeypatch)
    assert (ended.status, len(asked)) == (3, 3)
    assert "credit balance is too low" in " ".join(ended.stdout.split())
    ended, asked = optimize(flip, [MEND], monkeypatch, "--resume")
    assert ended.status == 4, ended.stderr
    (fix,) = asked
    assert "> " in fix.moment
    assert "module 'cutlass.cute.arch' has no attribute 'thread_index'" in fix.moment
    assert "Model: claude-" in ended.stdout
    assert "3 calls" in ended.stdout
    assert "To take it: cutesmith accept" in ended.stdout
    replayed = cutesmith("optimize", flip, "--proposer", "llm", "--yes", *WITHOUT_GPU, "--resume")
    assert replayed.status == 4, "nothing listens at the model's address any more"
    assert "3 calls" in replayed.stdout
    exported = cutesmith("export", "--trajectories", cwd=flip.parent)
    nothing, written, mended = map(json.loads, exported.stdout.splitlines())
    assert (nothing["outcome"], nothing["reward"], nothing["reply"]["text"][-1]) == ("unusable", 0.0, "\ud83d")
    assert (written["file"], written["class"], written["purpose"], written["reward"]) == (
        "flip.py",
        "Flip",
        "synthesise",
        0.1,
    )
    assert written["reply"]["calls"][0]["input"]["source"] == BROKEN
    assert (mended["purpose"], mended["outcome"], mended["reward"]) == ("fix", "candidate", 0.2)
    assert KEY not in exported.stdout
    none = cutesmith("export", "--trajectories", f"{flip}::Other")
    assert (none.stdout, none.status) == ("", 0)
    assert "No model was asked" in none.stderr
