"""What users complained of in other assistants, each as a test of ours; docs/editors.md says who did, and where."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lsprotocol import types

from cutesmith_evaluator.processes import descendants
from hanging_job import hanging
from scripted_editor import Editor, editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
CLASS = "NewGELU"
DECIDE = ["compiled, not validated", "Review", "Accept", "Reject"]


def is_agent(pid: int) -> bool:
    try:
        return b'run_module("cutesmith_agent"' in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def opened(session: Editor, path: Path) -> str:
    """The file open, with the kernel that its project's store offers. Returns its URI."""
    session.answers = {"never run": "Accept"}
    uri = session.open(path)
    await session.state("compiled")
    return uri


async def test_a_cancel_takes_effect_within_a_second_whatever_runs(project, slow):
    async with editor(project, options=TRUSTED) as session:
        started = await hanging(session, slow)
        before = time.perf_counter()
        assert await session.run("cancel", slow.as_uri(), "Slow")
        await session.state("cancelled", timeout_s=10.0)
        seconds = time.perf_counter() - before
        server = session.client._server
        assert server is not None
        assert not set(started) & set(descendants(server.pid))
    print(f"cancelled in {seconds:.2f} s")
    assert seconds < 1.0


async def test_progress_tokens_are_never_used_twice_and_every_bar_ends(project, slow):
    async with editor(project, options=TRUSTED) as session:
        started = await hanging(session, slow)
        assert await session.run("cancel", slow.as_uri(), "Slow")
        await session.state("cancelled", timeout_s=15.0)
        assert await session.run("generate", slow.as_uri(), "Slow")
        await session.until(lambda: len(session.client.progress_reports) == 2)
        server = session.client._server
        assert server is not None
        agents = await session.until(
            lambda: [pid for pid in descendants(server.pid) if pid not in started and is_agent(pid)]
        )
        os.kill(agents[0], signal.SIGKILL)
        await session.state("failed", timeout_s=15.0)
        bars = list(session.client.progress_reports.values())
        assert len(bars) == 2
        await session.until(lambda: all(isinstance(bar[-1], types.WorkDoneProgressEnd) for bar in bars))
        assert session.said() == []  # and a failure is no pop-up: lens and diagnostic say it
        await session.until(lambda: [each.code for each in session.diagnostics(slow.as_uri())] == ["no-kernel"])


async def test_diagnostics_of_another_server_under_our_source_do_no_harm(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        place = types.Range(types.Position(0, 0), types.Position(0, 1))
        warning = types.DiagnosticSeverity.Warning
        foreign = [
            types.Diagnostic(place, "x", warning, code, source=source, data={"of": "another"})
            for source in ("cutesmith", "ruff")
            for code in (7, "F401", "no-inputs", None)
        ]
        session.client.diagnostics[uri] = [*session.diagnostics(uri), *foreign]
        kinds = [each["kind"] for each in await session.actions(uri, "NewGELU(nn")]
        assert "refactor.rewrite.cutesmith.accept" in kinds


async def test_what_a_lens_does_a_code_action_does_too(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        for accept in (False, True):
            if accept:
                assert await session.run("accept", uri, CLASS)
            params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
            lenses = await session.client.text_document_code_lens_async(params) or ()
            by_lens = {lens.command.command for lens in lenses if lens.command}
            by_action = {action["command"]["command"] for action in await session.actions(uri, "NewGELU(nn")}
            assert by_lens <= by_action | {"cutesmith.review"}


async def test_nothing_is_written_beside_the_module_before_it_is_accepted_and_reviewing_accepts_nothing(offered):
    before = {path.name: path.read_bytes() for path in offered.iterdir() if path.is_file()}
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("review", uri, CLASS)
        assert await session.lenses(uri) == DECIDE
        assert session.edits == []
    assert {path.name: path.read_bytes() for path in offered.iterdir() if path.is_file()} == before


async def test_a_restart_edits_nothing_and_keeps_what_was_typed(offered):
    path = offered / "new_gelu.py"
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, path)
        assert await session.run("accept", uri, CLASS)
        session.insert(uri, "def get_inputs", "# mine\n\n\n")
        session.save(uri)
    text = path.read_text()
    async with editor(offered, options=TRUSTED) as session:
        uri = session.open(path)
        await session.state("accepted")
        assert session.edits == []
        assert session.documents[uri].text == text == path.read_text()


async def test_typing_within_a_class_on_offer_keeps_every_character(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        before = session.documents[uri].text
        for character in "abc":
            session.insert(uri, "        inner =", character)
        await session.state("stale")
        assert session.documents[uri].text == before.replace("        inner =", "abc        inner =")
        assert session.edits == []


async def test_rejecting_asks_nothing_and_leaves_nothing_on_the_screen(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("reject", uri, CLASS)
        assert (session.questions, session.said()) == ([], [])
        await session.until(lambda: session.diagnostics(uri) == [])


async def test_a_kernel_is_accepted_though_its_file_was_closed(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        session.close(uri)
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"
        assert "new_gelu_cute.supports(self, x)" in session.documents[uri].text


async def test_a_kernel_is_accepted_in_a_buffer_with_unsaved_changes(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        session.insert(uri, "import math", "import os\n")
        assert (await session.run("accept", uri, CLASS) or {})["state"] == "accepted"
        assert "import os\nimport math\n" in session.documents[uri].text


async def test_an_action_that_is_older_than_an_edit_does_no_harm(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        actions = await session.actions(uri, "NewGELU(nn")
        (accept,) = (each["command"] for each in actions if each["title"].startswith("Accept"))
        session.type(uri, "0.5 * x", "0.6 * x")
        text = session.documents[uri].text
        params = types.ExecuteCommandParams(accept["command"], accept["arguments"])
        assert await session.client.workspace_execute_command_async(params) is None
        assert session.documents[uri].text == text
        session.undo(uri)
        for _ in range(2):  # the second use of a menu that stayed open
            await session.client.workspace_execute_command_async(params)
        assert session.documents[uri].text.count("new_gelu_cute.supports") == 1


async def test_a_job_s_result_for_text_that_was_changed_meanwhile_is_not_on_offer(offered):
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, offered / "new_gelu.py")
        assert await session.run("generate", uri, CLASS)
        session.type(uri, "0.5 * x", "0.25 * x")
        stale = await session.state("stale")
        assert "has changed since" in stale["message"]
        assert await session.run("accept", uri, CLASS) is None
        assert "0.25 * x" in session.documents[uri].text


async def test_the_editor_and_the_command_line_say_the_same(offered):
    path = offered / "new_gelu.py"
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, path)
        assert _status(path) == "compiled"
        assert await session.run("accept", uri, CLASS)
        session.save(uri)
        assert _status(path) == "accepted"
        session.undo(uri)
        session.save(uri)
        assert (await session.state("compiled"))["state"] == _status(path)


def _status(path: Path) -> str:
    command = [sys.executable, "-m", "cutesmith_server", "status", str(path), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=path.parent)
    (found,) = json.loads(run.stdout)["classes"]
    return found["state"]


@pytest.mark.parametrize("style", ["ruff", "wide"])
async def test_a_kernel_is_removed_after_the_file_was_formatted(offered, style):
    path = offered / "new_gelu.py"
    original = path.read_text()
    async with editor(offered, options=TRUSTED) as session:
        uri = await opened(session, path)
        assert await session.run("accept", uri, CLASS)
        text = session.documents[uri].text
        if style == "ruff":
            ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff"
            command = [ruff, "format", "--line-length", "40", "-"]
            formatted = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
        else:  # as other formatters break lines
            formatted = text.replace("supports(self, x):", "supports(\n            self,\n            x,\n        ):")
        assert formatted != text
        session.type(uri, text, formatted)
        assert await session.run("remove", uri, CLASS), session.said()
        left = session.documents[uri].text
        assert "new_gelu_cute" not in left
        assert compile(left, "left.py", "exec").co_names == compile(original, "o.py", "exec").co_names
