"""Which sections to show: those whose words are those of the errors (BM25), then those for the category."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from cutesmith_agent.knowledge.pack import Section, pack

FOR_ERRORS = 3  # sections that the errors may choose
_SATURATION, _LENGTH = 1.2, 0.5  # BM25's k1 and b
_CODE = re.compile(r"```.*?```", re.DOTALL)
_PLACE = re.compile(r"\S+\.py(?::\d+)?(?: does not compile:| failed while [a-z ]+:)?|<class '([^']*)'>")
_WORD = re.compile(r"[a-z]+|\d+", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_IDLE = frozenset(
    re.findall(r"\w+", "a an and as at be but by for from got has have in is it its of on or that the this to with you")
)


def sections(category: str, arch: str, errors: Sequence[str], limit_chars: int) -> tuple[Section, ...]:
    """The sections for a task of this category ("matmul") and arch ("sm_90a"), best first, in at most that many
    characters of text. errors: messages of the evaluator; with none, the category alone chooses."""
    chosen: list[Section] = []
    left = limit_chars
    for section in _ranked(category, arch, errors):
        if len(section.text) <= left and section not in chosen:
            chosen.append(section)
            left -= len(section.text)
    return tuple(chosen)


def _ranked(category: str, arch: str, errors: Sequence[str]) -> Iterator[Section]:
    if errors:
        yield from by_errors(errors, arch)[:FOR_ERRORS]
    fitting = [section for section in pack() if category in section.categories and section.fits(arch)]
    # What few categories share, or few archs have, is about this task more than what all share.
    yield from sorted(fitting, key=lambda section: (not section.archs, len(section.categories)))


def by_errors(errors: Sequence[str], arch: str) -> list[Section]:
    """The sections that have words of the errors, best first."""
    query = Counter(word for error in errors for word in set(words(_PLACE.sub(r" \1 ", error))))
    scores = {section: _index().score(number, query) for number, section in enumerate(pack()) if section.fits(arch)}
    return sorted((section for section in scores if scores[section] > 0), key=lambda section: -scores[section])


def words(text: str) -> list[str]:
    """The words of a text or of its identifiers, in one form each: `CopyG2SOp` is copy, g2, s, op."""
    lower = _HUMP.sub(" ", text).lower()
    return [
        _stem(word) for word in _WORD.findall(lower) if word not in _IDLE and not (word.isdigit() and len(word) > 3)
    ]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word.removesuffix(ending)
    return word


@dataclass(frozen=True)
class _Index:
    counts: tuple[Counter[str], ...]
    sections_with: Counter[str]
    mean_length: float

    def score(self, number: int, query: Counter[str]) -> float:
        counts = self.counts[number]
        norm = 1 - _LENGTH + _LENGTH * counts.total() / self.mean_length
        return sum(
            times * self._rarity(word) * counts[word] * (_SATURATION + 1) / (counts[word] + _SATURATION * norm)
            for word, times in query.items()
            if counts[word]
        )

    def _rarity(self, word: str) -> float:
        having = self.sections_with[word]
        return math.log(1 + (len(self.counts) - having + 0.5) / (having + 0.5))


@cache
def _index() -> _Index:
    counts = tuple(Counter(words(_CODE.sub(" ", each.text)) + words(each.title)) for each in pack())
    sections_with = Counter(word for each in counts for word in each)
    return _Index(counts, sections_with, sum(each.total() for each in counts) / len(counts))
