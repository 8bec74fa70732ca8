"""Places that say the same as a quoted text in another layout."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from keyword import iskeyword

from cutesmith_agent.patches import prose
from cutesmith_agent.patches.indenting import width
from cutesmith_agent.patches.text import Text, indent_of
from cutesmith_agent.patches.tokens import Token, plain, tokens
from cutesmith_agent.source.positions import Span

_WORD = re.compile(r"\w+|-(?=\d)|[+*/<>=%^&|]|\"{3}|'{3}")
_ANCHOR = 2  # names that must be quoted with a message or docstring for it to be found in other words


@dataclass(frozen=True)
class Match:
    """A place, from its first to its last token. `indents`: (quoted, real) widths, by line of the quoted text."""

    span: Span
    indents: tuple[tuple[int, int], ...]


def same_tokens(text: Text, find: str) -> list[Match]:
    """Places with the tokens of `find`; where there is none, those whose messages and docstrings are reworded."""
    wanted = list(tokens(find).code)
    ends_in_comma = bool(wanted) and wanted[-1].form == ","
    if ends_in_comma:
        wanted.pop()
    if not wanted:
        return []
    found = _starts(text, wanted, _reads)
    if not found and sum(token.kind == "name" and not iskeyword(token.form) for token in wanted) >= _ANCHOR:
        found = _starts(text, wanted, _reads_alike)
    matches = [_match(text, find, at, wanted, ends_in_comma=ends_in_comma) for at in found]
    return [match for match in matches if text.is_whole(match.span)]


def _starts(text: Text, wanted: Sequence[Token], reads: Callable[[Token, Token], bool]) -> list[int]:
    """The tokens of the file, by number, from which on it reads as is wanted."""
    code, count = text.tokens.code, len(wanted)
    return [at for at in range(len(code) - count + 1) if all(map(reads, code[at : at + count], wanted))]


def _reads(have: Token, want: Token) -> bool:
    return have.form == want.form


def _reads_alike(have: Token, want: Token) -> bool:
    return have.form == want.form or (have.kind == want.kind == "prose" and prose.is_reworded(have.form, want.form))


def _match(text: Text, find: str, at: int, wanted: Sequence[Token], *, ends_in_comma: bool) -> Match:
    have = text.tokens.code[at : at + len(wanted)]
    end = have[-1].end
    if ends_in_comma and (comma := re.match(r"\s*,", text.text[end:])):
        end += comma.end()
    pairs = [
        (real.depth, width(before), width(indent))
        for real, want in zip(have, wanted, strict=True)
        if (before := _before(find, want.start)) is not None and (indent := text.indent(real.start)) is not None
    ]
    statements = [pair for pair in pairs if pair[0] == 0] or pairs[:1]
    return Match(Span(have[0].start, end), tuple((quoted, real) for _, quoted, real in statements))


def _before(find: str, char: int) -> str | None:
    before = find[find.rfind("\n", 0, char) + 1 : char]
    return before if not before.strip() else None


_ALIKE = 0.5  # the share of their tokens by which a changed line is known again


@dataclass(frozen=True)
class _CodeLine:
    forms: tuple[str, ...]
    span: Span
    indent: int


def _code_lines(text: Text) -> list[_CodeLine]:
    """The lines that hold code, with the tokens that begin on each."""
    lines: dict[int, list[Token]] = {}
    for token in text.tokens.code:
        lines.setdefault(text.line(token.start), []).append(token)
    return [
        _CodeLine(
            tuple(token.form for token in line),
            Span(line[0].start, line[-1].end),
            width(indent_of(text.line_text(number))),
        )
        for number, line in lines.items()
    ]


def same_lines(text: Text, find: str) -> list[Match]:
    """Places with the lines of `find`, two or more, in another order."""
    wanted, have = _code_lines(Text(find)), _code_lines(text)
    count, forms = len(wanted), Counter(line.forms for line in wanted)
    if count < 2:
        return []
    windows = [have[at : at + count] for at in range(len(have) - count + 1)]
    return [_reordered(wanted, window) for window in windows if Counter(line.forms for line in window) == forms]


def _reordered(wanted: Sequence[_CodeLine], window: Sequence[_CodeLine]) -> Match:
    indents = {line.forms: line.indent for line in window}
    pairs = tuple((line.indent, indents[line.forms]) for line in wanted)
    return Match(Span(window[0].span.start, window[-1].span.end), pairs)


def follows(text: Text, span: Span, new: str) -> bool:
    """Whether the lines of `new` that are like ones of the span stand in the span's order.

    One that quotes lines in another order than the file may have them so in its own text as well: a barrier then moves.
    """
    old = [line.forms for line in _code_lines(text) if span.start <= line.span.start and line.span.end <= span.end]
    places = [place for line in _code_lines(Text(new)) if (place := _like(line.forms, old)) is not None]
    return places == sorted(places)


def _like(forms: tuple[str, ...], old: Sequence[tuple[str, ...]]) -> int | None:
    shares = [SequenceMatcher(None, forms, each, autojunk=False).ratio() for each in old]
    best = max(shares, default=0.0)
    return shares.index(best) if best >= _ALIKE else None


def same_words(text: Text, find: str) -> list[Match]:
    """Places in comments and docstrings with the words of `find`, punctuation and line breaks aside."""
    wanted, quoted = _words(find), width(indent_of(find.lstrip("\n")))
    is_comment = all(line.lstrip().startswith("#") for line in find.splitlines() if line.strip())
    starts = [number for number in range(1, len(text.lines.starts) + 1) if text.is_prose(number, comment=is_comment)]
    spans = [span for number in starts if (span := _span_of_words(text, number, wanted, comment=is_comment))]
    return [Match(span, ((quoted, width(text.indent(span.start) or "")),)) for span in spans]


def _span_of_words(text: Text, first: int, wanted: list[str], *, comment: bool) -> Span | None:
    words: list[str] = []
    for number in range(first, len(text.lines.starts) + 1):
        words += _words(text.line_text(number))
        if not text.is_prose(number, comment=comment) or words != wanted[: len(words)] or not words:
            return None
        if len(words) == len(wanted):
            last = text.lines.span(number - 1).start + len(text.line_text(number).rstrip())
            start = text.lines.span(first - 1).start
            return Span(start + len(indent_of(text.line_text(first))), last)
    return None


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", plain(text)).casefold())
