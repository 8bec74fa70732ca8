"""Every call a job makes: within its budget, written down, and not made again when the job is resumed."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, replace

from cutesmith_agent.llm.budget import Budget, most_tokens
from cutesmith_agent.llm.port import ChatModel, ModelUnavailableError, OnProgress, Part, Prompt, Reply, ToolCall, Usage
from cutesmith_agent.secrets import Scrubber
from cutesmith_agent.store.calls import Call, Outcome
from cutesmith_agent.store.reading import reading
from cutesmith_agent.store.reservations import Reservation
from cutesmith_agent.store.store import Store


class Ledger:
    """A job's access to a model. Answers of an earlier run of the job are given again, prompt by prompt; calls of that
    run that were cut off are spent."""

    def __init__(self, model: ChatModel, budget: Budget, store: Store, job: str, scrubber: Scrubber) -> None:
        self._model = model
        self.budget = budget
        self._store, self._job, self._scrubber = store, job, scrubber
        self._answered: dict[str, deque[tuple[int, Call]]] = {}
        self._unlinked: list[int] = []
        self.last = 0  # the number of the last call
        with reading("calls"):
            for number, call in store.calls.of(job):
                self._answered.setdefault(call.digest, deque()).append((number, call))
                budget.spend(_reply(call).usage)
        with reading("reservations"):
            for reserved in store.reservations.of(job):
                budget.spend(Usage(**reserved.usage))

    @property
    def model(self) -> str:
        return self._model.name

    def ask(self, prompt: Prompt, purpose: str, on_progress: OnProgress) -> Reply:
        """Raises OverBudgetError, ModelUnavailableError. Nothing that looks like a key is sent."""
        prompt = self._clean(prompt)
        digest = prompt.digest(self.model)
        if earlier := self._answered.get(digest):
            number, call = earlier.popleft()
            self.budget.took(call.seconds)
            reply = _reply(call)
        else:
            number, reply = self._asked(prompt, digest, purpose, on_progress)
        self._unlinked.append(number)
        self.last = number
        return reply

    def _asked(self, prompt: Prompt, digest: str, purpose: str, on_progress: OnProgress) -> tuple[int, Reply]:
        """The most it may cost is in the store before it is asked: who ends this process does not end the bill."""
        ours = self.budget
        allowed = ours.answer_tokens(prompt)
        seconds = min(ours.settings.answer_s, ours.seconds_left)
        most = Usage(cache_write=most_tokens(prompt), output=allowed)
        reserved = self._store.reservations.add(self._job, self._reservation(purpose, most))
        began = time.monotonic()
        try:
            reply = self._model.ask(prompt, max_tokens=allowed, deadline_s=seconds, on_progress=on_progress)
        except ModelUnavailableError as error:
            ours.took(time.monotonic() - began)
            self._unanswered(reserved, most, error)
            raise
        took = time.monotonic() - began
        if not reply.is_counted:
            reply = replace(reply, usage=replace(most, output=0))  # an answer says at its beginning that it is one
        ours.spend(reply.usage)
        ours.took(took)
        texts = tuple(part.text for part in prompt.parts)
        kept = self._scrubber.value(asdict(reply))
        call = Call(digest, purpose, self.model, texts, kept, self._dollars(reply.usage), took)
        return self._store.calls.add(self._job, call, settles=reserved), _reply(call)

    def _unanswered(self, reserved: int, most: Usage, error: ModelUnavailableError) -> None:
        """Raises OverBudgetError where the time is up, which then is the reason."""
        if error.may_cost:
            self.budget.spend(most)
        else:
            self._store.reservations.release(reserved)
        self.budget.require_time()

    def _reservation(self, purpose: str, most: Usage) -> Reservation:
        return Reservation(self.model, purpose, asdict(most), self._dollars(most))

    def _dollars(self, usage: Usage) -> float | None:
        return self.budget.price.dollars(usage) if self.budget.price else None

    def _clean(self, prompt: Prompt) -> Prompt:
        def clean(parts: tuple[Part, ...]) -> tuple[Part, ...]:
            return tuple(replace(part, text=self._scrubber.text(part.text)) for part in parts)

        return replace(prompt, system=clean(prompt.system), user=clean(prompt.user))

    def judge(self, outcome: Outcome, call: int | None = None) -> None:
        """Say what a reply amounted to, the last by default."""
        reason = self._scrubber.text(outcome.reason)
        self._store.calls.judge(call or self.last, replace(outcome, reason=reason))

    def made(self, candidate: str) -> None:
        """The last answer is this candidate, and those since the one before it were for it."""
        self.judge(Outcome("candidate"))
        self._store.calls.link(self._unlinked, candidate)
        self._unlinked.clear()


def _reply(call: Call) -> Reply:
    """As it was recorded: the first run and every later one see the same."""
    data = call.reply
    calls = tuple(ToolCall(one["name"], one["input"]) for one in data["calls"])
    return Reply(data["stop"], data["text"], calls, Usage(**data["usage"]), data["problem"])
