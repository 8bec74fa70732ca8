"""Inlay hints, symbols, per-line diagnostics, links of codes and the hover's reasons."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from class_views import ACCEPTED, OUTLINE, PROVED, TEXT, candidate, ended, report, view
from cutesmith_agent.subject import candidate_id
from cutesmith_evaluator.types import Finding
from cutesmith_server import codes, sessions
from cutesmith_server.conditions import reasons
from cutesmith_server.diagnostics import Shown, diagnostics, diagnostics_within
from cutesmith_server.documents import Document, Text
from cutesmith_server.hover import hover_text
from cutesmith_server.inlays import inlay
from cutesmith_server.outlines import outline_of
from cutesmith_server.symbols import flat, symbols
from raw_server import INITIALIZE, OURS, Server, message

ROOT = Path(__file__).parents[2]
KERNEL = """\
import torch

def explain(module, x):
    if not x.is_cuda:
        return "x is no CUDA tensor"
    if x.dim() != 2:
        return f"x has {x.dim()} dimensions"
    return None

if True:
    class Holder:
        @cute.kernel
        def add_kernel(self, gX: cute.Tensor): pass

    @cute.jit
    def add(mX): pass
"""


def test_the_speedup_stands_beside_the_class():
    hint = inlay(view(ended(report(PROVED))), Text(TEXT))
    assert hint is not None
    assert (hint.label, hint.position) == ("2.1× vs torch.compile", types.Position(3, 7))
    assert inlay(view(ended(report(None))), Text(TEXT)) is None


def test_a_hover_has_the_measured_table_and_why_the_kernel_may_not_run():
    kernel = report(PROVED) | {"kernel": {"path": "/project/a_cute.py", "source": KERNEL}}
    shown = hover_text(view(ended(kernel)))
    assert "| candidate | 0.0634 ms | 0.0634 ms–0.0634 ms |" in shown
    assert "- x is no CUDA tensor\n- x has … dimensions" in shown


@given(st.text() | st.from_regex(r"def explain\(m\):\n( return ['a-z{]*\n)*", fullmatch=True))
def test_reasons_of_any_text_are_sentences(text):
    assert all(isinstance(each, str) and each for each in reasons(text))


def a_document(text: str, path: str = "/project/a_cute.py") -> Document:
    item = types.TextDocumentItem(Path(path).as_uri(), types.LanguageKind.Python, 1, text)
    return Document(Path(path), item, "utf-16")


def test_symbols_of_a_kernel_file_say_what_runs_where():
    document = a_document(KERNEL)
    found = symbols(document, outline_of(KERNEL))
    assert [(each.name, each.detail) for each in found] == [
        ("explain", None),
        ("Holder", None),
        ("add", "CuTe host function"),
    ]
    (inner,) = found[1].children or ()
    assert (inner.name, inner.detail) == ("add_kernel", "CuTe kernel")
    assert inner.selection_range.start == types.Position(12, 12)
    assert [(each.name, each.container_name) for each in flat(found, "file:///a")][2] == ("add_kernel", "Holder")


@given(st.text(alphabet="@cute.knldfas:( )\n\tjit\r😀"))
def test_half_typed_kernels_have_symbols_within_their_text(text):
    document = a_document(text)
    for each in flat(symbols(document, outline_of(text)), document.uri):
        assert each.location.range.start.line <= text.count("\n") + text.count("\r")


def test_what_failed_is_on_its_line_of_the_open_kernel_file_until_that_is_edited():
    text = "import torch\n\n\n    bad = 1\n"
    wrong = Finding("compile-error", "bad is not defined.", 4, "/project/a_cute.py")
    judged = candidate(id=candidate_id(text), ok=False, stage="compile", findings=(wrong,))
    views = [view(ended(report(judged)))]
    (found,) = diagnostics_within(Path("/project/a_cute.py"), Text(text), views, Shown())
    assert found.range == types.Range(types.Position(3, 4), types.Position(3, 11))
    assert (found.severity, found.code) == (types.DiagnosticSeverity.Error, "compile-error")
    assert found.code_description is not None
    assert found.code_description.href.endswith("codes.md#compile-error")
    assert diagnostics_within(Path("/project/a_cute.py"), Text("\n" + text), views, Shown()) == []


def test_codes_link_to_their_section_where_the_editor_shows_links():
    failed = view(ended(report(None, Finding("no-inputs", "How is A called?"))))
    (linked,) = diagnostics(failed, OUTLINE, Text(TEXT), Shown())
    assert linked.code_description is not None
    assert linked.code_description.href == f"{(ROOT / 'docs' / 'codes.md').as_uri()}#no-inputs"
    (bare,) = diagnostics(failed, OUTLINE, Text(TEXT), Shown(links=False))
    assert bare.code_description is None
    assert codes.link("unheard-of") is None


def test_every_explained_code_is_one_that_can_come_and_every_code_of_ours_is_explained():
    source = "".join(
        path.read_text() for part in ("evaluator", "agent", "server") for path in (ROOT / part).rglob("*.py")
    )
    spoken = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source)) | {"kernel-ready", "kernel-compiled"}
    assert codes.explained() <= spoken
    assert {"kernel-ready", "kernel-compiled", "kernel-stale", "kernel-edited", "no-kernel"} <= codes.explained()


def test_an_accepted_kernel_that_drifted_says_so_beside_the_class():
    accepted = sessions.decided(ended(report(PROVED)), "accepted")
    shown = replace(view(accepted, text=ACCEPTED, drift="a_cute.py was edited."), accepted=PROVED.id)
    hint = inlay(shown, Text(ACCEPTED))
    assert hint is not None
    assert hint.label == "kernel edited since it was proved"


def test_an_editor_without_nested_symbols_gets_flat_ones_and_other_files_get_none(tmp_path):
    kernel = {"uri": "file:///project/a_cute.py", "languageId": "python", "version": 1, "text": KERNEL}
    other = kernel | {"uri": "file:///project/a.py", "text": TEXT}
    with Server(OURS, tmp_path) as server:
        server.send(INITIALIZE)
        for number, item in enumerate((kernel, other), 2):
            server.send(message("textDocument/didOpen", {"textDocument": item}))
            server.send(message("textDocument/documentSymbol", {"textDocument": {"uri": item["uri"]}}, number))
        assert [each["name"] for each in server.answer(2)] == ["explain", "Holder", "add_kernel", "add"]
        assert server.answer(3) == []


def test_status_goes_to_editors_that_asked_for_it(tmp_path):
    from cutesmith_server.protocol import JobState
    from cutesmith_server.telling import _status

    a, b = (JobState("file:///a.py", name, "running") for name in "AB")
    assert _status([a, b]) == {"health": "ok", "quiescent": False, "message": "Making a CuTe kernel for A, B"}
    assert _status([JobState("file:///a.py", "A", "ready")])["message"] == "1 CuTe kernel on offer"
