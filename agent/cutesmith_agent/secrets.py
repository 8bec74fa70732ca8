"""Keys kept out of logs, events, prompts and rows."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cutesmith_agent.printable import printable
from cutesmith_evaluator.types import Candidate, Finding

_REDACTED = "[redacted]"
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_SHORTEST = 12  # characters: anything shorter may be an ordinary word
# What the common kinds of keys look like, whether or not one is in our environment.
_PATTERNS = re.compile(
    r"(?<![A-Za-z0-9_])(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|hf_[A-Za-z0-9]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,})"
)


class Scrubber:
    """Replaces the secrets of an environment, and what looks like a key."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        values = {value for name, value in environment.items() if _SECRET_NAME.search(name)}
        self._values = sorted((value for value in values if len(value) >= _SHORTEST), key=len, reverse=True)

    def text(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, _REDACTED)
        return _PATTERNS.sub(_REDACTED, text)

    def value(self, value: Any) -> Any:
        """The same JSON value with its strings scrubbed."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {key: self.value(each) for key, each in value.items()}
            case list() | tuple():
                return [self.value(each) for each in value]
        return value

    def findings(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        return tuple(replace(one, message=printable(self.text(one.message))) for one in findings)

    def candidate(self, candidate: Candidate) -> Candidate:
        """User code may print what it likes, and findings quote it."""
        return replace(candidate, findings=self.findings(candidate.findings))
