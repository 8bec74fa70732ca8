"""The page about a kernel: what it says, that it needs nothing, and that no text of a project becomes markup."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.store.opening import open_store
from cutesmith_server.page.document import document
from cutesmith_server.page.finding import page_of
from cutesmith_server.page.markup import markup, tag
from cutesmith_server.page.scales import linear, logarithmic
from cutesmith_server.page.study import Study, study
from told_job import told_project

VOID = {"meta"}
OUTSIDE = {"src", "srcset", "action", "formaction", "background", "style", "xlink:href"}


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed where it must be, and no attribute reaches outside."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.words: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scripts = 0
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        assert not OUTSIDE & known.keys()
        assert not [name for name in known if name.startswith("on")]
        self.scripts += tag == "script"
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known["href"]] if "href" in known else []
        if known.get("http-equiv") == "Content-Security-Policy":
            self.policy = known["content"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(set(reader.ids)) == len(reader.ids)
    return reader


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return told_project(tmp_path_factory.mktemp("told") / "project")


def page(file: Path, name: str = "A") -> str:
    found = page_of(file, name)
    assert found is not None
    return found.html


def test_the_page_tells_of_speed_error_roofline_job_resources_hints_and_spend(told):
    words = " ".join(read(page(told)).words)
    for said in (
        "2.1× vs torch.compile",
        "0.0634 ms",
        "0.06213 ms to 0.0653 ms",
        "precision kept",
        "4,234 GFLOP/s",
        "torch.compile: 2,065 GFLOP/s",
        "failed at compile: tile is <not> defined.",
        "4 candidates: 2 right, 2 failed, 0 not run",
        "0ld0ld0: 1,570 GFLOP/s",
        "16.4 kB",
        "Loads are 4 bytes a thread",
        "$0.34",
        "2.11.0+cu130",
    ):
        assert said in words, said


def test_every_link_leads_to_a_line_of_the_source_on_the_page(told):
    found = read(page(told))
    assert "#L5" in found.links
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)


def test_the_page_loads_and_runs_nothing(told):
    text = page(told)
    found = read(text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert found.policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert found.scripts == 0
    assert "url(" not in style
    assert "@import" not in style


def told_study(file: Path) -> Study:
    with open_store(file.parent).store as store:
        found = study(store, file, "A")
    assert found is not None
    return found


@given(st.text(min_size=1))
def test_no_text_becomes_markup(text):
    inner = tag("b", text, title=text)
    reader = Reader()
    reader.feed(inner)
    reader.close()
    assert reader.open == []
    assert markup(markup(text)) == markup(text)


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=6))
def test_every_value_has_its_place_on_its_chart(values):
    for scale in (linear(values, 100, 600), logarithmic(values, 100, 600)):
        assert all(99.99 <= scale(value) <= 600.01 for value in values)
        ticks = scale.ticks()
        assert 2 <= len(ticks) <= 11
        assert ticks == sorted(ticks)


def test_a_job_that_was_cancelled_and_one_without_times_have_a_page(told, tmp_path):
    from dataclasses import replace

    found = told_study(told)
    cancelled = replace(found, report=None, job=replace(found.job, state="cancelled", report=None))
    assert "The job was cancelled." in read(document(cancelled)).words
    bare = tuple(
        replace(each, candidate=replace(each.candidate, timing=None, speedup=None, error=None, profile=None, ok=None))
        for each in found.attempts
    )
    words = " ".join(read(document(replace(found, attempts=bare, earlier=(), source=""))).words)
    assert "Nothing was timed" in words
    assert "compiled, not run" in words


def report(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cutesmith_server", "report", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_writes_the_page_or_says_what_to_do(told, tmp_path):
    output = tmp_path / "report.html"
    run = report(str(told), "-o", str(output))
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
    assert output.read_text() == page(told)
    assert report(f"{told}::A").stdout == page(told)
    nothing = tmp_path / "a.py"
    nothing.write_text(told.read_text())
    for arguments, exit_status, said in (
        ((str(nothing),), 3, "No kernel was tried for A yet: cutesmith optimize"),
        ((str(told), "-o", str(tmp_path / "no" / "r.html")), 3, "cannot be written"),
        ((str(tmp_path / "none.py"),), 2, "does not exist"),
    ):
        run = report(*arguments)
        assert (run.returncode, run.stdout, run.stderr.count("\n")) == (exit_status, "", 1), run.stderr
        assert said in run.stderr
    assert not (tmp_path / ".cutesmith").exists()
