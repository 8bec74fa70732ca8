"""The tokens of Python text, whole file or torn-out piece, in a form in which layout does not count."""

from __future__ import annotations

import ast
import re
import unicodedata
from dataclasses import dataclass, replace
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
_CLOSING = {")": "(", "]": "[", "}": "{"}
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
    """`code` in order, commas that only trail left out; `comments` apart."""

    code: tuple[Token, ...]
    comments: tuple[Token, ...]

    def forms(self) -> list[str]:
        return [token.form for token in self.code]


def plain(text: str) -> str:
    """Typographic quotes, dashes, blanks as ASCII; characters of no width gone."""
    return text if text.isascii() else text.translate(_TYPESET)


def tokens(text: str) -> Tokens:
    """The tokens of any text. What is no Python gives tokens too, which match nothing by chance."""
    found = [_token(match) for match in _TOKEN.finditer(text)]
    code = _nested([token for token in found if token.kind != "comment"])
    return Tokens(tuple(code), tuple(token for token in found if token.kind == "comment"))


def _token(match: re.Match[str]) -> Token:
    kind, text = match.lastgroup, match[0]
    if kind == "number":
        return Token("number", _value(text), match.start(), match.end(), 0)
    if kind == "string":
        form = _value(text)
        prose = len(form.split()) >= _WORDS_OF_PROSE
        return Token("prose" if prose else "string", form, match.start(), match.end(), 0)
    if kind == "name":
        return Token("name", unicodedata.normalize("NFKC", text), match.start(), match.end(), 0)
    return Token("comment" if kind == "comment" else "op", text, match.start(), match.end(), 0)


def _value(text: str) -> str:
    """One spelling for all literals of a value: 1e-5 and 0.00001, 'a' and "a"."""
    try:
        return repr(ast.literal_eval(text))
    except (ValueError, SyntaxError):  # an f-string, or digits such as 007
        return text


def _nested(code: list[Token]) -> list[Token]:
    """The tokens with their depths, without the commas that a formatter may add and take away."""
    kept: list[Token] = []
    commas: list[int] = [0]  # seen so far, in each open bracket
    for token in code:
        closing = token.form in _CLOSING and token.kind == "op"
        if closing and len(commas) > 1:
            if kept[-1].form == "," and not (token.form == ")" and commas[-1] == 1):
                kept.pop()  # but the comma of a one-element tuple stays
            commas.pop()
        kept.append(replace(token, depth=len(commas) - 1))
        if token.kind == "op" and token.form in _CLOSING.values():
            commas.append(0)
        elif token.kind == "op" and token.form == ",":
            commas[-1] += 1
    return kept
