"""Kernel files a class can be validated against: its `_cute.py` beside it, and `ModelNew` files that are open.

Editors ask at every move of the cursor, so files are skimmed for class names, once per version, and not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from stat import S_ISREG

from cutesmith_agent.source.naming import snake_case
from cutesmith_server.outlines import Outline

_CLASS = re.compile(rb"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)
_MODEL_NEW = re.compile(r"^class ModelNew\b", re.MULTILINE)
_KERNEL_SUFFIX = "_cute.py"
_MOST_FILES = 500


def is_candidate(path: Path, text: str) -> bool:
    """Whether a file is a kernel in our contract or KernelBench's."""
    return path.name.endswith(_KERNEL_SUFFIX) or _MODEL_NEW.search(text) is not None


def candidates_for(module: Path, qualname: str, open_files: Iterable[tuple[Path, str]]) -> Iterator[Path]:
    """Candidates for one class: its kernel file, then open `ModelNew` files."""
    beside = module.with_name(f"{snake_case(qualname)}{_KERNEL_SUFFIX}")
    if beside.is_file():
        yield beside
    yield from (path for path, text in open_files if path not in (beside, module) and _MODEL_NEW.search(text))


def modules_for(candidate: Path, open_files: Iterable[tuple[Path, Outline]]) -> Iterator[tuple[Path, str]]:
    """(file, class) of the modules that a candidate may be meant for: in open files, then in files beside it."""
    known = {path: tuple(found.qualname for found in outline.classes) for path, outline in open_files}
    for path in sorted(islice(candidate.parent.glob("*.py"), _MOST_FILES)):
        known.setdefault(path, _skimmed(path))
    for path, names in known.items():
        if path != candidate:
            yield from ((path, name) for name in names if _is_meant(candidate, name))


def _is_meant(candidate: Path, qualname: str) -> bool:
    if candidate.name.endswith(_KERNEL_SUFFIX):
        return candidate.name == f"{snake_case(qualname)}{_KERNEL_SUFFIX}"
    return qualname == "Model"


def _skimmed(path: Path) -> tuple[str, ...]:
    try:
        stat = path.stat()
        if not S_ISREG(stat.st_mode):  # reading a pipe may never end
            return ()
        return _class_names(path, stat.st_mtime_ns, stat.st_size)
    except OSError:
        return ()


@lru_cache(maxsize=2 * _MOST_FILES)
def _class_names(path: Path, mtime_ns: int, size: int) -> tuple[str, ...]:
    return tuple(name.decode("utf-8", "replace") for name in _CLASS.findall(path.read_bytes()))
