"""Whether a text is Python."""

from __future__ import annotations

import ast
import warnings


def syntax_problem(text: str) -> tuple[int | None, str] | None:
    """The line (1-based, where known) and the words of the first syntax error; None where Python parses the text."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError) as error:
        return getattr(error, "lineno", None), getattr(error, "msg", str(error))
    except (RecursionError, MemoryError):
        return None, "it is nested too deeply"
    return None
