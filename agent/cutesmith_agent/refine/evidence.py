"""A model's file given the header that kernel files have, where it left it out."""

from __future__ import annotations

import ast
import warnings

from cutesmith_agent.recipes.file import EVIDENCE, NOTHING_YET

_SECTION = f"{EVIDENCE}\n" + "".join(f"- {line}\n" for line in NOTHING_YET)


def with_evidence_section(source: str) -> str:
    """The same file with a docstring that ends in an evidence section. What is no Python stays as it is."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    said = ast.get_docstring(tree)
    if said is not None and f"{EVIDENCE}\n" in source.partition('"""')[2].partition('"""')[0]:
        return source
    if said is None:
        return f'"""A kernel that a model wrote.\n\n{_SECTION}"""\n\n{source}'
    end = tree.body[0].end_lineno or 1
    rest = "\n".join(source.split("\n")[end:])
    clean = said.replace("\\", "/").replace('"""', "'''").rstrip()
    return f'"""{clean}\n\n{_SECTION}"""\n{rest}'
