"""The main job in an editor: open, lens, generate, progress, diagnostics, accept, undo. Real processes throughout."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from accepted_module import added_lines, check_accepted
from scripted_editor import editor

pytestmark = pytest.mark.asyncio

TRUSTED = {"trusted": True, "archs": ["sm_90a"], "device": "none"}
ENDED = ("ready", "compiled", "failed")
CLASS = "NewGELU"


async def test_from_opening_a_file_to_an_accepted_kernel(project):
    path, original = project / "new_gelu.py", (project / "new_gelu.py").read_text()
    async with editor(project, options=TRUSTED) as session:
        uri = session.open(path)
        assert await session.lenses(uri) == ["Generate CuTe kernel"]

        started = await session.run("generate", uri, CLASS)
        assert started is not None
        assert started["state"] == "running"
        assert "Cancel" in await session.lenses(uri)

        ended = await session.state(*ENDED)
        assert ended["state"] == "compiled"
        assert ended["best"]["ok"] is None
        assert ended["best"]["resources"][0]["arch"] == "sm_90a"
        stages = {state["stage"] for state in session.states if state["state"] == "running"}
        assert {"propose", "compile"} <= stages

        begin, *reports, end = session.progress()
        assert (begin.title, begin.cancellable) == ("CuTe kernel for NewGELU", True)
        assert {"propose", "compile"} <= {report.message.partition(":")[0] for report in reports}
        assert isinstance(end, types.WorkDoneProgressEnd)
        assert end.message == "compiled, not validated"

        await session.until(lambda: session.lens_refreshes)
        assert await session.lenses(uri) == ["compiled, not validated", "Review", "Accept", "Reject"]
        (diagnostic,) = await session.until(lambda: session.diagnostics(uri))
        assert (diagnostic.source, diagnostic.code) == ("cutesmith", "kernel-compiled")
        assert diagnostic.severity == types.DiagnosticSeverity.Information
        assert original.splitlines()[diagnostic.range.start.line].startswith("class NewGELU")
        hover = await session.hover(uri, "NewGELU(")
        assert hover is not None
        assert "no device" in hover
        assert "requires grad" in hover

        session.answers = {"never run": "Accept"}
        accepted = await session.run("accept", uri, CLASS)
        assert accepted is not None, session.said()
        assert accepted["state"] == "accepted"
        assert len(session.questions) == 1
        assert await session.lenses(uri) == ["CuTe kernel", "Remove"]
        await session.until(lambda: not session.diagnostics(uri))
        session.save(uri)

        kernel = project / "new_gelu_cute.py"
        assert kernel.read_text() == Path(ended["best"]["path"]).read_text()
        added = [line.strip() for line in added_lines(original, path.read_text())]
        assert added == [
            "import new_gelu_cute",
            "",
            "if new_gelu_cute.supports(self, x):",
            "return new_gelu_cute.forward(self, x)",
        ]
        check_accepted(project, original, path)

        session.undo(uri)
        assert session.documents[uri].text == original


async def test_what_is_not_saved_yet_is_what_gets_a_kernel(project):
    path = project / "new_gelu.py"
    on_disk = path.read_text()
    path.write_text("import torch\n")
    async with editor(project, options=TRUSTED) as session:
        uri = session.open(path)
        session.type(uri, "import torch\n", on_disk)
        assert await session.run("generate", uri, CLASS)
        assert (await session.state(*ENDED))["state"] == "compiled"
        assert path.read_text() == "import torch\n"
