"""Prompts put together from the files in `prompts/`: what never changes first, then the task, then the moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template

from cutesmith_agent import knowledge
from cutesmith_agent.knowledge import Section
from cutesmith_agent.llm.port import Part, Prompt
from cutesmith_agent.llm.tools import Bottleneck
from cutesmith_agent.refine import wording
from cutesmith_agent.refine.briefing import Briefing
from cutesmith_agent.refine.changes import changes
from cutesmith_agent.refine.kinds import kinds
from cutesmith_evaluator.types import Candidate, Category

_FOLDER = Path(__file__).parents[1] / "prompts"
_TASK_KNOWLEDGE = 12_000  # characters of sections that fit the category, read once a job
ERROR_KNOWLEDGE = 5_500  # of those that fit the errors at hand, read once a fix
_SHORTER = 0.5  # of a listing: a change that is longer is shown as a whole file
_ROWS: tuple[Category, ...] = ("reduction", "normalisation", "softmax", "loss")


def filled(name: str, **values: str) -> str:
    """The file `prompts/<name>.md` with its $names replaced. Values are taken as they are, whatever they contain."""
    return Template(_text(name)).substitute(values)


@cache
def _text(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8")


@cache
def _fixed() -> Part:
    """The same in every call of every job: the server keeps it."""
    return Part(
        "\n".join((*map(_text, ("role", "contract", "answer", "example")), knowledge.fixed_part())), cached=True
    )


def menu(kinds: Sequence[Category]) -> str:
    """What tends to help a task of these kinds; of a chain, its dearest part's menu too."""
    *parts, whole = kinds
    own = [f"Its dearest part is {parts[0]}:\n{_menu(parts[0])}"] if parts else []
    return "\n".join([_menu(whole), *own])


def _menu(category: Category) -> str:
    return _text("menu_rows" if category in _ROWS else f"menu_{category}").rstrip()


@dataclass(frozen=True)
class Base:
    """A file that several calls are about, the parts of a prompt that show it, and what they call it."""

    source: str
    parts: tuple[Part, ...]
    name: str = "The best kernel"


class Prompts:
    """The prompts for one task."""

    def __init__(self, briefing: Briefing) -> None:
        self._briefing = briefing
        self._kinds = kinds(briefing.graph)
        self._known = knowledge.sections(self._kinds, briefing.arch, (), _TASK_KNOWLEDGE)
        task = filled("task", menu=menu(self._kinds), **briefing.fields())
        self._task = Part("\n".join((task, *map(_section, self._known))), cached=True)

    def _prompt(self, *parts: Part) -> Prompt:
        return Prompt((_fixed(),), (self._task, *parts))

    def synthesise(self) -> Prompt:
        return self._prompt(Part(filled("synthesise")))

    def restart(self, why: str, tried: Sequence[str]) -> Prompt:
        return self._prompt(Part(filled("restart", why=why, tried=_bullets(tried))))

    def first(self, source: str) -> Base:
        """A file that failed as it was handed in: its fixes are told against it."""
        listing = wording.listing(source)
        return Base(source, (Part(filled("first", listing=listing), cached=True),), "The first file")

    def fix(self, source: str, candidate: Candidate, earlier: Sequence[str], base: Base) -> Prompt:
        """`earlier`: the fixes tried on this file's forebears, and what each led to; `base`: what it was made from."""
        marked = wording.marked_lines(candidate)
        told = filled(
            "fix",
            file=_failed_file(source, marked, base),
            verdict=wording.verdict(candidate, self._briefing.root),
            earlier=f"\nFixed so far, in this order:\n{_bullets(earlier)}\n" if earlier else "",
        )
        knowledge = self._knowledge([finding.message for finding in candidate.findings])
        return self._prompt(*base.parts, *knowledge, Part(told))

    def judge(self, base: Base) -> Prompt:
        return self._prompt(*base.parts, Part(filled("judge")))

    def code(self, base: Base, plan: Bottleneck) -> Prompt:
        told = filled("code", bottleneck=plan.bottleneck, evidence=plan.evidence, change=plan.change)
        return self._prompt(*base.parts, Part(told))

    def base(self, source: str, candidate: Candidate, tried: Sequence[str], figures: str | None) -> Base:
        """The best kernel, the same until there is a better one; what was tried, and the profiler's figures where it is
        time for them: judge, coder and fixes of a round read all of it, so the server keeps it."""
        best = filled("best", result=wording.result(candidate), listing=wording.listing(source))
        history = [filled("history", tried=_bullets(tried))] if tried else []
        rest = "\n".join([*history, *([filled("profile", figures=figures)] if figures is not None else [])])
        return Base(source, (Part(best, cached=True), *([Part(rest, cached=True)] if rest else [])))

    def _knowledge(self, errors: Sequence[str]) -> list[Part]:
        """What the errors call for and the task did not bring."""
        known = [section.name for section in self._known]
        found = knowledge.sections(self._kinds, self._briefing.arch, errors, ERROR_KNOWLEDGE, known)
        return [Part("\n".join(map(_section, found)))] if found else []


def _section(section: Section) -> str:
    return f"# {section.title}\n{section.text}\n"


def _failed_file(source: str, marked: frozenset[int], base: Base) -> str:
    """The whole file, or where that is much shorter, how it differs from the one shown before."""
    whole, told = wording.listing(source, marked), changes(base.source, source, marked)
    if source == base.source:
        return f"# {base.name} failed, where lines are marked >\n{told}"
    if len(told) < _SHORTER * len(whole):
        return f"# {base.name} with this change, which failed (numbered as the changed file)\n{told}"
    return f"# The file, which failed\n{whole}"


def again(prompt: Prompt, reason: str) -> Prompt:
    """The same request, with what was wrong with the last answer."""
    told = (Part(filled("retry", reason=reason)),) if reason else ()
    return replace(prompt, user=(*prompt.user, *told))


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
