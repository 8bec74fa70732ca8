"""The tokens of Python text, whole file or torn-out piece, in a form in which layout does not count."""

from __future__ import annotations

import ast
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "number", "string", "prose", "comment", "op"]

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\r\n]*)
  | (?P<string>(?i:[rbfu]{0,2})
      (?:'''(?:\\.|[^\\])*?'''|\"""(?:\\.|[^\\])*?\"""|'(?:\\.|[^'\\\r\n])*'|"(?:\\.|[^"\\\r\n])*"))
  | (?P<number>0[xXbBoO][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?[jJ]?)
  | (?P<name>[^\W\d]\w*)
  | (?P<op>\*\*=|//=|>>=|<<=|\.\.\.|->|:=|[-+*/%@&|^<>=!]=|\*\*|//|<<|>>|[^\s\w\\])
    """,
    re.VERBOSE | re.DOTALL,
)
_WORDS_OF_PROSE = 3
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
# What word processors, and models that learnt from them, make of ASCII.
_TYPESET = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201b\u2032", "'")
    | dict.fromkeys("\u201c\u201d\u201f\u2033", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
    | dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " ")
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", None)
)


@dataclass(frozen=True)
class Token:
    """`form`: equal for tokens that mean the same. `depth`: brackets open around it. Characters start to end."""

    kind: Kind
    form: str
    start: int
    end: int
    depth: int


@dataclass(frozen=True)
class Tokens:
    """`code` in order, without the commas that only trail; `comments` apart."""

    code: tuple[Token, ...]
    comments: tuple[Token, ...]


def plain(text: str) -> str:
    """Typographic quotes, dashes, blanks as ASCII; characters of no width gone; letters composed with their marks."""
    return text if text.isascii() else unicodedata.normalize("NFC", text.translate(_TYPESET))


def tokens(text: str) -> Tokens:
    """The tokens of any text. What is no Python gives tokens too, which match nothing by chance."""
    code: list[Token] = []
    comments: list[Token] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        char = match["op"]
        depth -= char is not None and char in _CLOSING and depth > 0
        token = _token(match, depth)
        if token.kind == "comment":
            comments.append(token)
            continue
        if char in _CLOSING and code and code[-1].form == "," and "\n" in text[code[-1].end : token.start]:
            code.pop()  # formatters put one before a bracket on a line of its own
        code.append(token)
        depth += char in _OPENING
    return Tokens(tuple(code), tuple(comments))


def _token(match: re.Match[str], depth: int) -> Token:
    kind, text, start, end = match.lastgroup, match[0], match.start(), match.end()
    if kind == "number":
        return Token("number", _value(text), start, end, depth)
    if kind == "string":
        form = _value(text)
        return Token("prose" if len(form.split()) >= _WORDS_OF_PROSE else "string", form, start, end, depth)
    if kind == "name":
        return Token("name", unicodedata.normalize("NFKC", text), start, end, depth)
    return Token("comment" if kind == "comment" else "op", text, start, end, depth)


def _value(text: str) -> str:
    """One spelling for all literals of a value: 1e-5 and 0.00001, 'a' and "a"."""
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError):  # an f-string, or digits such as 007
        return text
