"""What a kernel's module is called, and how the file it serves imports it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, count
from pathlib import Path

from cutesmith_agent.source.outline import class_nodes, kernel_of
from cutesmith_agent.source.parsing import Source
from cutesmith_evaluator.names import snake_case


def kernel_module(source: Source, qualname: str, file: Path, *, is_ours: Callable[[Path], bool]) -> str:
    """The module name of a class's kernel: the one its guard names, else `<class>_cute`.

    is_ours: whether an existing file was made for this class and may be replaced. Where `<class>_cute.py` beside the
    file is somebody else's (another file's class of the same name, say), the file's name joins in, then a number."""
    used = next((kernel_of(source, found) for found in class_nodes(source) if found.qualname == qualname), None)
    if used:
        return used
    plain = snake_case(qualname)
    qualified = plain + "_" + snake_case(re.sub(r"\W", "_", file.stem))
    names = chain((plain, qualified), (f"{qualified}_{number}" for number in count(2)))
    paths = (file.with_name(f"{name}_cute.py") for name in names)
    return next(path.stem for path in paths if not path.exists() or is_ours(path))


def is_in_package(file: Path) -> bool:
    """Whether the file is imported as part of a package, so that its kernel is imported relatively."""
    return file.with_name("__init__.py").exists()
