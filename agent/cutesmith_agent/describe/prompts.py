"""The prompts for a described forward. The checks' writer is never shown the reference, nor what it computed."""

from __future__ import annotations

from cutesmith_agent.describe.wording import Described
from cutesmith_agent.llm.port import Part, Prompt
from cutesmith_agent.refine.prompts import filled


class ReferencePrompts:
    """For the writer of the reference, who sees the class and, when they disagree, the checks that failed."""

    def __init__(self, described: Described) -> None:
        self._task = Part(described.for_reference(), cached=True)

    def write(self) -> Prompt:
        return self._prompt(filled("reference"))

    def mend(self, source: str, said: str) -> Prompt:
        """`said`: what happened when it was traced."""
        return self._prompt(filled("reference_mend", source=source.rstrip(), said=said))

    def answer(self, source: str, checks: str, failed: str) -> Prompt:
        return self._prompt(filled("reference_answer", source=source.rstrip(), checks=checks.rstrip(), failed=failed))

    def _prompt(self, moment: str) -> Prompt:
        return Prompt((Part(filled("role_reference"), cached=True),), (self._task, Part(moment)), "description")


class CheckPrompts:
    """For the writer of the checks, who sees the description and how the class is called."""

    def __init__(self, described: Described) -> None:
        self._task = Part(described.for_checks(), cached=True)

    def write(self) -> Prompt:
        return self._prompt(filled("checks"))

    def mend(self, checks: str, said: str) -> Prompt:
        """`said`: what is wrong with the checks themselves."""
        return self._prompt(filled("checks_mend", checks=checks.rstrip(), said=said))

    def again(self, checks: str, failed: str) -> Prompt:
        """`failed`: the names of checks that did not hold; not what came out instead."""
        return self._prompt(filled("checks_again", checks=checks.rstrip(), failed=failed))

    def _prompt(self, moment: str) -> Prompt:
        return Prompt((Part(filled("role_checks"), cached=True),), (self._task, Part(moment)), "description")
