"""From a docstring to a kernel on the command line: shown, asked, written, and a kernel made against it."""

from __future__ import annotations

import os
import pty
from contextlib import suppress
from pathlib import Path

import pytest

from command_line import CUTESMITH, cutesmith
from cutesmith_agent.store.opening import open_store
from described_rig import DESCRIBED, checks, reference
from model_rig import DEFAULT, KEY
from scripted_messages import Fail, ScriptedMessages

WORDS = ("--proposer", "llm", "--device", "none", "--arch", "sm_90a")


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "flip.py").write_text(DESCRIBED)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("CUTESMITH_MODEL", DEFAULT)
    return root / "flip.py"


def on_a_terminal(answers: dict[bytes, bytes], *words: str | Path) -> tuple[int, str]:
    """The exit status and all that was said; each question is answered once."""
    child, terminal = pty.fork()
    if child == 0:
        os.execv(CUTESMITH[0], [*CUTESMITH, *map(str, words)])
    said, asked = b"", 0
    with suppress(OSError):  # the terminal's end
        while data := os.read(terminal, 65536):
            said += data
            if said.count(b"[y/N]") > asked:
                asked = said.count(b"[y/N]")
                question = said.rpartition(b"\n")[2]
                os.write(terminal, next(answer for word, answer in answers.items() if word in question))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.decode()


def test_a_reference_waits_is_turned_down_and_another_is_proved_against(
    described: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody to ask: it waits. On a terminal it is shown and turned down. The next one is approved by --yes."""
    made = [reference(), checks()]
    with ScriptedMessages([*made, *made]) as endpoint:
        monkeypatch.setenv("CUTESMITH_BASE_URL", endpoint.url)
        with open_store(described.parent).store as store:
            store.set_consent(endpoint.url.removeprefix("http://"), granted=True)
        waiting = cutesmith("optimize", described, *WORDS, "--json")
        assert waiting.status == 5
        assert waiting.json["reference"]["agreed"] == ["check_shape", "check_worked_values"]
        assert "read it and approve it" in waiting.json["stopped"]
        assert "its reference waits for approval" in cutesmith("accept", described, "--yes").stderr
        assert "reference: A reference for Flip was written" in cutesmith("status", described).stdout

        status, said = on_a_terminal({b"Write this reference": b"n\n"}, "optimize", described, *WORDS)
        assert len(endpoint.requests) == 2, "the one that waited was shown again"
        assert status == 3
        for word in (
            "+        return x.flip(0)",
            "def check_worked_values(build, inputs):",
            "into flip.py and make a kern",
        ):
            assert word in said
        assert described.read_text() == DESCRIBED

        proved = cutesmith("optimize", described, *WORDS, "--json", "--yes")
        assert proved.status == 4
        assert proved.json["kernel"]["source"].count("def flip_kernel") == 1
        assert len(endpoint.requests) == 4, "a recipe covers what was written"
    stub = '"""x in reverse order along its first dimension."""\n        '
    assert described.read_text() == DESCRIBED.replace(f"{stub}...", f"{stub}return x.flip(0)")


def test_a_wrong_key_is_told_with_the_apis_reason(described: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedMessages([Fail(401, "authentication_error", "invalid x-api-key")] * 2) as endpoint:
        monkeypatch.setenv("CUTESMITH_BASE_URL", endpoint.url)
        ended = cutesmith("optimize", described, *WORDS, "--yes")
        assert ended.status == 3
        assert "answered 401: invalid x-api-key; check ANTHROPIC_API_KEY." in ended.stdout
        assert len(endpoint.requests) == 1, "asking again would not help"
        assert KEY not in ended.stdout + ended.stderr
