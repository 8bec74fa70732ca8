"""Kernel files a class can be validated against: its `_cute.py` beside it, and `ModelNew` files that are open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from cutesmith_server.outlines import Outline, outline_of_file

_MODEL_NEW = re.compile(r"^class ModelNew\b", re.MULTILINE)
_KERNEL_SUFFIX = "_cute.py"
_MOST_FILES = 200


def is_candidate(path: Path, text: str) -> bool:
    """Whether a file is a kernel in our contract or KernelBench's."""
    return path.name.endswith(_KERNEL_SUFFIX) or _MODEL_NEW.search(text) is not None


def candidates_for(module: Path, qualname: str, open_files: Iterable[tuple[Path, str]]) -> Iterator[Path]:
    """Candidates for one class: its kernel file, then open `ModelNew` files."""
    from cutesmith_agent.source.naming import snake_case

    beside = module.with_name(f"{snake_case(qualname)}{_KERNEL_SUFFIX}")
    if beside.exists():
        yield beside
    yield from (path for path, text in open_files if path not in (beside, module) and _MODEL_NEW.search(text))


def modules_for(candidate: Path, text: str, open_files: Iterable[tuple[Path, Outline]]) -> Iterator[tuple[Path, str]]:
    """(file, class) of the modules that a candidate may be meant for: in open files, else in files beside it."""
    known = dict(open_files)
    beside = (path for path in sorted(candidate.parent.glob("*.py"))[:_MOST_FILES] if path not in known)
    for path, outline in [*known.items(), *((path, found) for path in beside if (found := _outline(path)))]:
        for found in outline.classes:
            if path != candidate and _is_meant(candidate, text, found.qualname):
                yield path, found.qualname


def _is_meant(candidate: Path, text: str, qualname: str) -> bool:
    from cutesmith_agent.source.naming import snake_case

    if candidate.name.endswith(_KERNEL_SUFFIX):
        return candidate.name == f"{snake_case(qualname)}{_KERNEL_SUFFIX}"
    return qualname == "Model" and _MODEL_NEW.search(text) is not None


def _outline(path: Path) -> Outline | None:
    try:
        return outline_of_file(path)
    except (OSError, UnicodeDecodeError, SyntaxError):
        return None
