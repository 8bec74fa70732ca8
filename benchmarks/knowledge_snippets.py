"""The Python of the knowledge pack's sections as modules, whole or broken in one place."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path
from types import ModuleType

from cutesmith_agent.knowledge.pack import Section, pack

_CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
_numbers = itertools.count()


def snippets() -> dict[str, Section]:
    """The sections that have code, by name."""
    return {section.name: section for section in pack() if _CODE.search(section.text)}


def code(section: Section) -> str:
    """The section's Python. Raises ValueError where it is not exactly one piece."""
    (only,) = _CODE.findall(section.text)
    return only


def load(path: Path) -> ModuleType:
    """The module in a file, loaded anew. (The DSL reads a kernel's source from its file.)"""
    spec = importlib.util.spec_from_file_location(f"{path.stem}_{next(_numbers)}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
