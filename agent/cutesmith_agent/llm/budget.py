"""Hard bounds on what one job may use, looked at before each call: an answer that might break one is not asked for."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field

from cutesmith_agent.llm.catalogue import Price
from cutesmith_agent.llm.port import Prompt, Usage
from cutesmith_agent.llm.settings import ModelSettings
from cutesmith_agent.llm.tools import TOOLS

_OVERHEAD = 2_000  # tokens of the API's own instructions for tools, and of what stands between the parts
_SHORTEST_ANSWER = 6_000  # tokens: less does not hold a kernel
_NEXT = " (the next answer might take more than is left)"
_SHORTEST_S = 1.0  # no answer comes in less


class OverBudgetError(Exception):
    """The next call might break a bound. `str()` says which, in words that follow "after"."""


@dataclass
class Budget:
    """What is left of a job's bounds. `price` None: dollars are not known, and only tokens are bounded.

    `seconds` are those that answers, verdicts and profiles took, when they were made: a job that goes on has only what
    is left of its minutes, and one that is replayed stops where it stopped."""

    settings: ModelSettings
    price: Price | None
    spent: Usage = field(default_factory=Usage)
    calls: int = 0
    seconds: float = 0.0

    def spend(self, usage: Usage) -> None:
        self.spent += usage
        self.calls += 1

    def took(self, seconds: float) -> None:
        """An answer, a verdict or a profile did."""
        self.seconds += seconds

    @property
    def dollars(self) -> float | None:
        return self.price.dollars(self.spent) if self.price else None

    @property
    def seconds_left(self) -> float:
        return self.settings.max_minutes * 60 - self.seconds

    def require_time(self) -> None:
        """Raises OverBudgetError where none is left for another answer."""
        if self.seconds_left < _SHORTEST_S:
            raise OverBudgetError(f"the {self.settings.max_minutes:g} minutes for it were up")

    def answer_tokens(self, prompt: Prompt) -> int:
        """How long the next answer may be. Raises OverBudgetError."""
        limits = self.settings
        self.require_time()
        reading = most_tokens(prompt)
        left = limits.max_tokens - self.spent.total - reading
        if left < _SHORTEST_ANSWER:
            raise OverBudgetError(f"{self.spent.total:,} of at most {limits.max_tokens:,} tokens{_NEXT}")
        if self.price is not None:
            money = limits.max_dollars - self.price.dollars(self.spent) - reading * self.price.cache_write / 1e6
            left = min(left, math.floor(money / self.price.output * 1e6))
            if left < _SHORTEST_ANSWER:
                spent = self.price.dollars(self.spent)
                raise OverBudgetError(f"${spent:.2f} of at most ${limits.max_dollars:.2f}{_NEXT}")
        return min(left, limits.answer_tokens)


def most_tokens(prompt: Prompt) -> int:
    """No fewer than the tokens of a prompt, whatever is in it: no token of a text is less than a byte of it."""
    texts = (*(part.text for part in prompt.parts), json.dumps(TOOLS[prompt.desk]))
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + _OVERHEAD
