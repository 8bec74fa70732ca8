"""What is said to the models of a class, and to the user of what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutesmith_agent.refine.prompts import filled
from cutesmith_agent.refine.wording import enclosed, shortened
from cutesmith_agent.source.unwritten import Unwritten
from cutesmith_evaluator.probing import CheckResult, Probing


@dataclass(frozen=True)
class Described:
    """A class to write a forward for. `excerpt`: its source and what it uses; `interface`: from `probe`."""

    class_name: str
    excerpt: str
    unwritten: Unwritten
    interface: Probing

    def for_reference(self) -> str:
        return filled("described", class_name=self.class_name, source=enclosed(self.excerpt), **self._called())

    def for_checks(self) -> str:
        """The description and how the class is called, and not a line of its code."""
        signatures = "\n".join(filter(None, (self.unwritten.constructor, self.unwritten.signature)))
        words = enclosed(self.unwritten.description)
        return filled(
            "described_alone", class_name=self.class_name, description=words, signatures=signatures, **self._called()
        )

    def _called(self) -> dict[str, str]:
        return {"inputs": _bullets(self.interface.inputs), "state": _bullets(self.interface.state)}


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "- none"


def disagreements(results: Sequence[CheckResult]) -> str:
    return _bullets([f"{one.name}: {shortened(one.message)}" for one in results if one.outcome != "agrees"])


def names(results: Sequence[CheckResult]) -> str:
    return _bullets([one.name for one in results if one.outcome != "agrees"])


def shortcomings(probing: Probing) -> str:
    """What is wrong with checks that hold: what none of them notices, and those that notice nothing; "" if nothing."""
    if any(one.outcome != "agrees" for one in probing.checks):
        return ""  # not weighed yet
    missed = [f"{name} passes every check; add one that it fails." for name in probing.uncaught]
    idle = [
        f"{one.name} holds for every wrong module that was tried: it checks nothing. Sharpen it or leave it out."
        for one in probing.checks
        if one.outcome == "agrees" and not one.caught
    ]
    return _bullets([f"A wrong module, {each}" for each in missed] + idle) if missed or idle else ""
