"""Which model, where and within what bounds; and the small texts that prompts are made of."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.llm.catalogue import default_model, known, newest
from cutesmith_agent.llm.port import Usage
from cutesmith_agent.llm.settings import ModelSettings, SettingsError, Wish, read_settings
from cutesmith_agent.refine.changes import changes
from cutesmith_agent.refine.evidence import with_evidence_section
from cutesmith_agent.refine.prompts import filled, menu
from cutesmith_agent.refine.wording import listing
from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.source.excerpt import excerpt
from cutesmith_evaluator.types import Category
from model_rig import KEY


def read(root: Path, wish: Wish | None = None, **environment: str) -> ModelSettings:
    return read_settings(root, wish or Wish(), lambda: "the-newest", environment)


def test_the_job_comes_before_the_environment_and_that_before_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.cutesmith]\nmodel = "a"\neffort = "low"\nmax_rounds = 4\n')
    settings = read(tmp_path, Wish(model="c"), CUTESMITH_MODEL="b", CUTESMITH_EFFORT="max", CUTESMITH_MAX_DOLLARS="1.5")
    assert (settings.model, settings.effort, settings.max_rounds, settings.max_dollars) == ("c", "max", 4, 1.5)
    assert read(tmp_path / "elsewhere").model == "the-newest"


def test_what_the_project_decided_is_known(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.cutesmith]\nbase_url = "https://proxy.example.org/x/"\n')
    named = read(tmp_path)
    assert (named.host, named.base_url, named.by_project) == (
        "proxy.example.org",
        "https://proxy.example.org/x",
        ("base_url",),
    )
    assert read(tmp_path, ANTHROPIC_BASE_URL="http://localhost:8080").by_project == ()
    assert read(tmp_path / "elsewhere").by_project == ()


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"CUTESMITH_BASE_URL": "http://api.example.org"}, "must be an https address"),
        ({"CUTESMITH_BASE_URL": "https://"}, "must be an https address"),
        ({"CUTESMITH_BASE_URL": "https://a:b:c"}, "must be an https address"),
        ({"CUTESMITH_BASE_URL": "https://[::1"}, "must be an https address"),
        ({"CUTESMITH_BASE_URL": "https://user:pa55word@api.example.org"}, "must be a plain address"),
        ({"CUTESMITH_BASE_URL": "https://api.example.org?to=elsewhere"}, "must be a plain address"),
        ({"CUTESMITH_EFFORT": "heroic"}, "must be one of low"),
        ({"CUTESMITH_MAX_DOLLARS": "lots"}, "must be a number"),
        ({"CUTESMITH_MAX_DOLLARS": "-1"}, "must be more than 0"),
        ({"CUTESMITH_MAX_TOKENS": "nan"}, "must be more than 0"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path, environment: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as caught:
        read(tmp_path, **environment)
    assert "(environment)" in str(caught.value)
    assert "pa55word" not in str(caught.value)


def test_a_project_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool")
    with pytest.raises(SettingsError, match=r"pyproject\.toml cannot be read"):
        read(tmp_path)


def test_the_newest_opus_or_sonnet_is_the_default() -> None:
    assert newest(["claude-haiku-9", "claude-sonnet-5-5", "claude-opus-5-5", "claude-opus-5"]) == "claude-opus-5-5"
    assert newest(["claude-opus-4-5-20251101", "claude-sonnet-5", "claude-opus-4-8"]) == "claude-sonnet-5"
    assert known(default_model()) is not None, "the price of the installed SDK's newest model is in the table"


def test_dollars_follow_the_table() -> None:
    entry = known("claude-opus-5-5")
    assert entry is not None
    usage = Usage(input=100_000, cache_write=200_000, cache_read=1_000_000, output=50_000)
    assert entry.price.dollars(usage) == pytest.approx(0.4 + 1.0 + 0.2 + 1.0)
    assert known("claude-next-1") is None


@given(st.text(), st.text())
def test_a_key_is_never_left_in_a_text(before: str, after: str) -> None:
    assert KEY not in Scrubber({}).text(f"{before} {KEY} {after}")
    odd = "correct horse battery staple"
    assert odd not in Scrubber({"MY_TOKEN": odd, "HOME": "x" * 20}).text(before + odd + after)


def test_ordinary_text_is_left_alone() -> None:
    text = "a mask-of-many-long-words-in-a-row and x" + "y" * 30
    assert Scrubber({"API_KEY": "short", "HOME": "a mask-of"}).text(text) == text


def test_an_excerpt_is_the_class_and_what_it_uses() -> None:
    text = (
        "import torch\nfrom torch import nn\n\nSECRET = 1\nWIDTH = 3\n\n\ndef helper(x):\n    return x * WIDTH\n\n\n"
        "class Other(nn.Module):\n    pass\n\n\nclass Outer:\n    class Mine(nn.Module):\n"
        "        def forward(self, x):\n            return helper(x)\n"
    )
    shown = excerpt(text, "Outer.Mine")
    ast.parse(shown)
    assert "class Mine(nn.Module):\n    def forward" in shown
    assert "WIDTH = 3" in shown
    assert "import torch\n" in shown
    assert "SECRET" not in shown
    assert "Other" not in shown


@pytest.mark.parametrize(
    "source",
    ["x = 1\n", '"""A kernel."""\nx = 1\n', '"""A kernel.\n\nEvidence:\n- none\n"""\nx = 1\n', "'''One \\d.'''\n"],
)
def test_every_kernel_gets_an_evidence_section_and_keeps_its_code(source: str) -> None:
    made = with_evidence_section(source)
    assert "Evidence:\n- no" in (ast.get_docstring(ast.parse(made)) or "")
    code = [ast.dump(node) for node in ast.parse(source).body if not isinstance(node, ast.Expr)]
    assert [ast.dump(node) for node in ast.parse(made).body if not isinstance(node, ast.Expr)] == code
    assert with_evidence_section(made) == made


def test_what_is_no_python_is_left_to_the_guards() -> None:
    assert with_evidence_section("def (") == "def ("


def test_every_category_has_a_menu() -> None:
    assert all(menu((category,)) for category in get_args(Category))


def test_a_chain_is_told_what_helps_its_dearest_part() -> None:
    told = menu(("conv", "pooling", "mixed"))
    assert told.startswith("This is a chain.")
    assert told.index("Its dearest part is conv:") < told.index("implicit matrix product")


def test_a_listing_counts_from_one_and_marks_lines() -> None:
    assert listing("a\nb\n" * 3, frozenset({2})) == "      a\n   2> b\n      a\n      b\n   5| a\n      b"


LINES = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=40)


@given(LINES, LINES, st.sets(st.integers(1, 40), max_size=3))
def test_a_change_shows_every_line_that_is_new_gone_or_marked(old: list[str], new: list[str], marked: set[int]) -> None:
    shown = changes("\n".join(old), "\n".join(new), frozenset(marked)).split("\n")
    numbered = {int(line[:4]): line[6:] for line in shown if line[:4].strip().isdigit()}
    assert all(new[number - 1] == text for number, text in numbered.items())
    assert marked & set(range(1, len(new) + 1)) <= set(numbered)
    added = [line[6:] for line in shown if line[4] == "+"]
    kept = Counter(new) - Counter(added)
    gone = [line[6:] for line in shown if line.startswith("    - ")]
    if not marked:
        assert kept == Counter(old) - Counter(gone)


def test_values_are_filled_in_as_they_are() -> None:
    assert "$HOME ${x}" in filled("retry", reason="$HOME ${x}")
