"""Asking until an answer can be used: each that cannot is told why, and so many in a row end the matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from cutesmith_agent import patches
from cutesmith_agent.llm.budget import OverBudgetError
from cutesmith_agent.llm.ledger import Ledger
from cutesmith_agent.llm.port import ModelUnavailableError, OnProgress, Prompt
from cutesmith_agent.llm.tools import Answer, Bottleneck, Form, Kernel, Unusable, read_answer
from cutesmith_agent.patches import Patch
from cutesmith_agent.recipes.contract import Draft
from cutesmith_agent.refine import prompts, wording
from cutesmith_agent.refine.evidence import with_evidence_section
from cutesmith_agent.store.calls import Outcome
from cutesmith_agent.subject import candidate_id
from cutesmith_evaluator.types import Finding

_ATTEMPTS = 4  # answers in a row that cannot be used
_REFUSALS = 2
_LONGEST_REASON = 8_000  # characters: of a refusal of a hundred edits the first and the last tell enough
T = TypeVar("T")


class StoppedError(Exception):
    """There will be no more answers. `str()` follows "after"; `finding` where that is a failure and not a bound."""

    def __init__(self, reason: str, finding: Finding | None = None) -> None:
        super().__init__(reason)
        self.finding = finding


@dataclass
class Asker:
    """Puts prompts to a model. `seen`: ids of the sources it has handed in, which it may not hand in again."""

    ledger: Ledger
    progress: OnProgress
    seen: dict[str, str]  # id to how that candidate ended

    def kernel(self, prompt: Prompt, purpose: str) -> Draft:
        """A whole file. Raises StoppedError, as the others do."""

        def use(answer: Answer) -> Draft | Unusable:
            return self._fresh(answer.source, answer.summary) if isinstance(answer, Kernel) else unexpected()

        return self.usable(prompt, purpose, ("submit_kernel",), use)

    def change(self, prompt: Prompt, purpose: str, source: str) -> Draft:
        """`source` patched, or rewritten."""

        def use(answer: Answer) -> Draft | Unusable:
            if isinstance(answer, Kernel):
                return self._fresh(answer.source, answer.summary)
            return self._patched(source, answer) if isinstance(answer, Patch) else unexpected()

        return self.usable(prompt, purpose, ("submit_patch", "submit_kernel"), use)

    def bottleneck(self, prompt: Prompt, purpose: str) -> Bottleneck:
        def use(answer: Answer) -> Bottleneck | Unusable:
            return answer if isinstance(answer, Bottleneck) else unexpected()

        plan = self.usable(prompt, purpose, ("name_bottleneck",), use)
        self.ledger.judge(Outcome("plan"))
        return plan

    def usable(self, prompt: Prompt, purpose: str, forms: tuple[Form, ...], use: Callable[[Answer], T | Unusable]) -> T:
        """What `use` makes of an answer in one of the forms; what it says is Unusable goes back with its reason.

        Raises StoppedError."""
        reason, refusals = "", 0
        for _ in range(_ATTEMPTS):
            answer = self._answer(prompts.again(prompt, reason), purpose, forms)
            made = answer if isinstance(answer, Unusable) else use(answer)
            if not isinstance(made, Unusable):
                return made
            self.ledger.judge(Outcome("declined" if made.is_refusal else "unusable", made.reason))
            reason, refusals = wording.shortened(made.reason, _LONGEST_REASON), refusals + made.is_refusal
            if refusals == _REFUSALS:
                raise _failed("model-refused", "the model declined to answer", "The model declined this task twice.")
            self.progress(f"asking again: {reason or 'no answer came'}"[:200])
        message = (
            f"The model gave {_ATTEMPTS} answers in a row that could not be used; the last: {reason or 'declined'}"
        )
        raise _failed("model-unusable", f"{_ATTEMPTS} answers in a row that could not be used", message)

    def _answer(self, prompt: Prompt, purpose: str, forms: tuple[Form, ...]) -> Answer:
        try:
            return read_answer(self.ledger.ask(prompt, purpose, self.progress), forms)
        except OverBudgetError as error:
            raise StoppedError(str(error)) from None
        except ModelUnavailableError as error:
            raise _failed("model-unavailable", "the model could not be asked any more", str(error)) from None

    def _patched(self, source: str, patch: Patch) -> Draft | Unusable:
        done = patches.apply(source, patch)
        if isinstance(done, patches.Refused):
            return Unusable(f"The patch was refused.\n{done.text}")
        return self._fresh(done.source, patch.summary)

    def _fresh(self, source: str, summary: str) -> Draft | Unusable:
        """A draft that was not judged before."""
        draft = Draft(with_evidence_section(source.replace("\r\n", "\n")), title=" ".join(summary.split())[:200])
        id = candidate_id(draft.source)
        if id in self.seen:
            return Unusable(f"That is a file you handed in before ({self.seen[id]}). Change something.")
        self.ledger.made(id)
        return draft


def unexpected() -> Unusable:
    """An answer of a form that was not asked for."""
    return Unusable("That is not the form of answer that was asked for.")


def _failed(kind: str, reason: str, message: str) -> StoppedError:
    return StoppedError(reason, Finding(kind, message, severity="warning"))
