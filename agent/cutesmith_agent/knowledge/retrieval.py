"""Which sections to show: those whose words are those of the errors (BM25), then those for the category."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from cutesmith_agent.knowledge.pack import Section, pack

FOR_ERRORS = 3  # sections that the errors may choose
_FAINT = 0.5  # of the best section's score: those below it are not about the error
_SATURATION, _LENGTH = 1.2, 0.5  # BM25's k1 and b
_CODE = re.compile(r"```.*?```", re.DOTALL)
_PLACE = re.compile(r"\S+\.py(?::\d+)?(?: does not compile:| failed while [a-z ]+:)?|<class '([^']*)'>")
_WORD = re.compile(r"[a-z]+|\d+", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_IDLE = frozenset(
    re.findall(r"\w+", "a an and as at be but by for from got has have in is it its of on or that the this to with you")
)


def sections(
    categories: Sequence[str], arch: str, errors: Sequence[str], limit_chars: int, shown: Collection[str] = ()
) -> tuple[Section, ...]:
    """The sections for a task of these categories ("matmul"), what matters most first, and arch ("sm_90a"): the best
    first, in at most that many characters of text. errors: messages of the evaluator; with none, the categories alone
    choose. shown: names of those that the reader has.

    A task's best section comes whole. All others are cut to their rules at first, so that each has its room. What is
    left of it goes to their examples, best first; with errors, to the best section's alone."""
    ranked = [section for section in dict.fromkeys(_ranked(categories, arch, errors)) if section.name not in shown]
    texts: dict[Section, str] = {}
    for number, section in enumerate(ranked):
        forms = (section.text, section.gist) if number == 0 and not errors else (section.gist,)
        _add(texts, section, forms, limit_chars)
    for section in list(texts)[: 1 if errors else None]:
        _add(texts, section, (section.text,), limit_chars)
    return tuple(replace(section, text=text) for section, text in texts.items())


def _add(texts: dict[Section, str], section: Section, forms: Sequence[str], limit: int) -> None:
    """The first of the forms that there is room for, in place of what is there of the section."""
    others = sum(len(text) for other, text in texts.items() if other is not section)
    form = next((form for form in forms if others + len(form) <= limit), None)
    if form is not None:
        texts[section] = form


def _ranked(categories: Sequence[str], arch: str, errors: Sequence[str]) -> Iterator[Section]:
    if errors:
        yield from by_errors(errors, arch)[:FOR_ERRORS]
    for category in categories:
        yield from sorted(_fitting(category, arch), key=lambda section: _generality(section, category))


def _fitting(category: str, arch: str) -> list[Section]:
    return [section for section in pack() if category in section.categories and section.fits(arch)]


def _generality(section: Section, category: str) -> tuple[float, int]:
    """What few archs have is more about a task than what all share; then what is for its category before others."""
    return len(section.archs) or math.inf, section.categories.index(category)


def by_errors(errors: Sequence[str], arch: str) -> list[Section]:
    """The sections that have words of the errors, best first."""
    query = Counter(word for error in errors for word in set(words(_PLACE.sub(r" \1 ", error))))
    scores = {section: _index().score(number, query) for number, section in enumerate(pack()) if section.fits(arch)}
    least = max(scores.values()) * _FAINT
    return sorted((each for each in scores if scores[each] > least), key=lambda section: -scores[section])


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
