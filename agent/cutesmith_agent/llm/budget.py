"""Hard bounds on what one job may use, looked at before each call: an answer that might break one is not asked for."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from cutesmith_agent.llm.catalogue import Price
from cutesmith_agent.llm.port import Prompt, Usage
from cutesmith_agent.llm.settings import ModelSettings

_BYTES_PER_TOKEN = 2.0  # fewer than any tokenizer's on code: an upper bound on the tokens of a prompt
_OVERHEAD = 2_000  # tokens of tool schemas and of the API's own instructions
_SHORTEST_ANSWER = 6_000  # tokens: less does not hold a kernel


class OverBudgetError(Exception):
    """The next call might break a bound. `str()` says which, in words that follow "after"."""


@dataclass
class Budget:
    """What is left of a job's bounds. `price` None: dollars are not known, and only tokens are bounded."""

    settings: ModelSettings
    price: Price | None
    spent: Usage = field(default_factory=Usage)
    calls: int = 0
    _started: float = field(default_factory=time.monotonic)

    def spend(self, usage: Usage) -> None:
        self.spent += usage
        self.calls += 1

    @property
    def dollars(self) -> float | None:
        return self.price.dollars(self.spent) if self.price else None

    @property
    def seconds_left(self) -> float:
        return self.settings.max_minutes * 60 - (time.monotonic() - self._started)

    def answer_tokens(self, prompt: Prompt) -> int:
        """How long the next answer may be. Raises OverBudgetError."""
        limits = self.settings
        if self.seconds_left <= 0:
            raise OverBudgetError(f"the {limits.max_minutes:g} minutes for it were up")
        reading = most_tokens(prompt)
        left = limits.max_tokens - self.spent.total - reading
        if left < _SHORTEST_ANSWER:
            raise OverBudgetError(f"{self.spent.total:,} of at most {limits.max_tokens:,} tokens")
        if self.price is not None:
            money = limits.max_dollars - self.price.dollars(self.spent) - reading * self.price.cache_write / 1e6
            left = min(left, math.floor(money / self.price.output * 1e6))
            if left < _SHORTEST_ANSWER:
                spent = self.price.dollars(self.spent)
                raise OverBudgetError(f"${spent:.2f} of at most ${limits.max_dollars:.2f}")
        return min(left, limits.answer_tokens)


def most_tokens(prompt: Prompt) -> int:
    """No fewer than the tokens of a prompt."""
    size = sum(len(part.text.encode("utf-8", "surrogatepass")) for part in prompt.parts)
    return math.ceil(size / _BYTES_PER_TOKEN) + _OVERHEAD
