"""The knowledge pack: what it says fits the task and the error, within the room there is."""

from __future__ import annotations

import typing

import pytest

from cutesmith_agent import knowledge
from cutesmith_agent.knowledge.pack import pack
from cutesmith_agent.knowledge.retrieval import by_errors, words
from cutesmith_agent.refine.prompts import ERROR_KNOWLEDGE
from cutesmith_evaluator.types import Category
from knowledge_errors import hit_rates, read_records

CATEGORIES = typing.get_args(Category)
NEVER = ["module 'cutlass.cute' has no attribute 'program_id'"]


def test_every_section_has_a_head_that_is_true():
    assert len({section.name for section in pack()}) == len(pack()) > 20
    for section in pack():
        assert set(section.categories) <= set(CATEGORIES), section.name
        assert len(section.text) > 300
        assert "---" not in section.text.split("\n")[0]


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_each_category_has_sections_that_fit_the_arch(category: str, arch: str):
    found = knowledge.sections((category,), arch, (), 40_000)
    assert found
    assert all(category in section.categories and section.fits(arch) for section in found)
    names = {section.name for section in found}
    assert ("wgmma" in names) == (arch == "sm_90a" and category in ("matmul", "conv", "attention"))
    assert ("tma" in names) <= (arch != "sm_80")


@pytest.mark.parametrize("limit", [0, 500, 3_000, 8_000, 40_000])
def test_the_room_is_kept(limit: int):
    found = knowledge.sections(("matmul",), "sm_90a", NEVER, limit)
    assert sum(len(section.text) for section in found) <= limit
    assert len(set(found)) == len(found)


def test_the_error_comes_before_the_category():
    first, *_ = knowledge.sections(("softmax",), "sm_90a", NEVER, 20_000)
    assert first.name == "names"
    assert "reductions" in {section.name for section in knowledge.sections(("softmax",), "sm_90a", NEVER, 20_000)}


def test_an_error_in_no_words_that_are_known_finds_nothing():
    assert by_errors(["kernel_cute.py:3 does not compile: qwzrk"], "sm_90a") == []


def test_words_of_identifiers():
    assert words("CopyG2SOp is_needed, sm_90a 12345") == ["copy", "g", "2", "sop", "need", "sm", "90"]


def test_the_guide_is_one_text():
    assert knowledge.fixed_part() is knowledge.fixed_part()
    assert "cute.compile" in knowledge.fixed_part()


@pytest.mark.parametrize(("held_out", "first", "among", "came"), [(False, 0.90, 0.97, 0.96), (True, 0.80, 0.92, 0.90)])
def test_recorded_errors_find_their_cure(held_out: bool, first: float, among: float, came: float):
    records = [record for record in read_records() if record.held_out is held_out]
    assert len(records) > 40
    rates = hit_rates(records)
    assert rates[0] >= first
    assert rates[1] >= among
    assert rates[2] >= came, "in the room that a fix has"


@pytest.mark.parametrize("category", CATEGORIES)
def test_any_section_may_come_with_an_error(category: str):
    """However long its example is: its rules have room beside those of two others."""
    for section in pack():
        assert len(section.gist) <= ERROR_KNOWLEDGE / 2, section.name
        assert "```" not in section.gist
        arch = next(iter(section.archs), "sm_90a")
        found = knowledge.sections((category,), arch, [section.title, section.gist], ERROR_KNOWLEDGE)
        assert section.name in {each.name for each in found}


def test_a_tasks_best_section_comes_with_its_example():
    first, *others = knowledge.sections(("matmul",), "sm_90a", (), 12_000)
    assert (first.name, "```python" in first.text) == ("wgmma", True)
    assert {"tma", "epilogues"} <= {each.name for each in others}


def test_what_the_reader_has_does_not_come_again():
    found = knowledge.sections(("softmax",), "sm_90a", NEVER, 20_000, ("names", "reductions"))
    assert {"names", "reductions"}.isdisjoint(each.name for each in found)


def test_chance_would_not_find_them():
    """The same errors, each asked for the cure of another: the rates above are no accident of the sections' sizes."""
    records = read_records()
    turned = [
        record.__class__(**{**vars(record), "message": records[number - 40].message})
        for number, record in enumerate(records)
    ]
    assert hit_rates(turned)[0] < 0.3
