"""Prompts put together from the files in `prompts/`: what never changes first, then the task, then the moment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from string import Template

from cutesmith_agent.llm.port import Part, Prompt
from cutesmith_agent.llm.tools import Bottleneck
from cutesmith_agent.refine import wording
from cutesmith_agent.refine.briefing import Briefing
from cutesmith_evaluator.types import Candidate, Category

_FOLDER = Path(__file__).parents[1] / "prompts"
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
    return Part("\n".join(map(_text, ("role", "contract", "answer", "example"))), cached=True)


def _menu(category: Category) -> str:
    return _text("menu_rows" if category in _ROWS else f"menu_{category}").rstrip()


class Prompts:
    """The prompts for one task."""

    def __init__(self, briefing: Briefing) -> None:
        self._briefing = briefing
        menu = _menu(briefing.graph.category)
        self._task = Part(filled("task", menu=menu, **briefing.fields()), cached=True)

    def _prompt(self, *parts: Part) -> Prompt:
        return Prompt((_fixed(),), (self._task, *parts))

    def synthesise(self) -> Prompt:
        return self._prompt(Part(filled("synthesise")))

    def restart(self, why: str, tried: Sequence[str]) -> Prompt:
        return self._prompt(Part(filled("restart", why=why, tried=_bullets(tried))))

    def fix(self, source: str, candidate: Candidate, earlier: Sequence[str]) -> Prompt:
        """`earlier`: the fixes tried on this file's forebears, and what each led to."""
        errors = [finding.message for finding in candidate.findings]
        shown = wording.listing(source, wording.marked_lines(candidate))
        verdict = wording.verdict(candidate, self._briefing.root)
        before = f"\nFixed so far, in this order:\n{_bullets(earlier)}\n" if earlier else ""
        knowledge = self._knowledge(errors)
        return self._prompt(*knowledge, Part(filled("fix", listing=shown, verdict=verdict, earlier=before)))

    def judge(self, best: Part, profile: Part | None) -> Prompt:
        return self._prompt(best, *([profile] if profile else []), Part(filled("judge")))

    def code(self, best: Part, profile: Part | None, plan: Bottleneck) -> Prompt:
        told = filled("code", bottleneck=plan.bottleneck, evidence=plan.evidence, change=plan.change)
        return self._prompt(best, *([profile] if profile else []), Part(told))

    def best(self, source: str, candidate: Candidate, tried: Sequence[str]) -> Part:
        """The best kernel and what was tried on it: judge and coder read the same, so the server keeps it for both."""
        history = f"\nTried on it, or on the way to it:\n{_bullets(tried)}" if tried else ""
        listing = wording.listing(source)
        return Part(filled("best", result=wording.result(candidate), listing=listing, history=history), cached=True)

    def profile(self, figures: str) -> Part:
        return Part(filled("profile", figures=figures))

    def _knowledge(self, errors: Sequence[str]) -> list[Part]:
        return []


def again(prompt: Prompt, reason: str) -> Prompt:
    """The same request, with what was wrong with the last answer."""
    told = (Part(filled("retry", reason=reason)),) if reason else ()
    return Prompt(prompt.system, (*prompt.user, *told))


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
