"""Fifty candidates that harm whoever runs them (tests/evaluator/data/hostile.txt, and files that are no source).

What no kernel's source may do (signals, processes, descriptors) they do through properties of the module's class, which
is the user's own code: static guards let them pass, and the worker has to stand it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

QUALNAME = "Scaled"
_EVALUATOR = Path(__file__).parents[1] / "evaluator"
_PLAIN = (_EVALUATOR / "honest" / "plain.py").read_text()
_HEADING = re.compile(r"^### (\w+): ([\w\- ]+?)(?: \| (.+))?\n((?:(?!### ).*\n)*)", re.MULTILINE)
_PART = re.compile(r"^\+ (\w+)\n((?:(?!\+ ).*\n)*)", re.MULTILINE)
_KERNEL_STORE = next(line for line in _PLAIN.splitlines(keepends=True) if "gY[row, column] =" in line)
_BEGINNINGS = {  # of places: the line before; what is put there is indented as its block is
    "explain": "def explain(module, x):\n",
    "supports": "def supports(module, x):\n",
    "warm_up": "def warm_up(module, x):\n",
    "forward": "def forward(module, x):\n",
    "kernel": _KERNEL_STORE,
}


@dataclass(frozen=True)
class Hostile:
    """`kinds`: one of them is that of its first error; empty where it is right all the same. `says`: a part of it."""

    name: str
    source: bytes
    kinds: tuple[str, ...]
    says: str = ""


def hostile_candidates() -> tuple[Hostile, ...]:
    return (*_of_page(), *_no_sources())


def write_project(folder: Path) -> tuple[Path, list[Path]]:
    """The task's file, and each candidate's."""
    task = folder / "scaled.py"
    task.write_text((_EVALUATOR / "data" / "hostile_task.txt").read_text())
    (folder / "pyproject.toml").touch()
    paths = []
    for each in hostile_candidates():
        paths.append(folder / f"{each.name}_cute.py")
        paths[-1].write_bytes(each.source)
    return task, paths


def _of_page() -> Iterator[Hostile]:
    for name, kinds, says, body in _HEADING.findall((_EVALUATOR / "data" / "hostile.txt").read_text()):
        source = _PLAIN
        for place, code in _PART.findall(body):
            source = _with(source, place, code)
        compile(source, name, "exec")
        yield Hostile(name, source.encode(), () if kinds == "right" else tuple(kinds.split()), says)


def _with(source: str, place: str, code: str) -> str:
    if place == "end":
        return f"{source}\n\n{code}"
    if place == "start":
        return f"{code}\n\n{source}"
    if place == "result":
        return source.replace("    return y\n", textwrap.indent(code, "    "))
    line = _BEGINNINGS[place]
    assert source.count(line) == 1
    indent = "        " if place == "kernel" else "    "
    return source.replace(line, line + textwrap.indent(code, indent))


def _no_sources() -> list[Hostile]:
    plain = _PLAIN.encode()
    deep = ("syntax-error", "too-deep")
    return [
        Hostile("fifty_megabytes", plain + b"#" * (50 << 20), ("too-long",)),
        Hostile("binary", bytes(range(256)) * 64, ("unreadable-file",)),
        Hostile("empty", b"", ("not-a-candidate",)),
        Hostile("with_a_zero", plain + b"\0\n", ("syntax-error", "hidden-text")),
        Hostile("nested", plain + b"X = " + b"(" * 5000 + b")" * 5000 + b"\n", deep),
        Hostile("signs", plain + b"X = " + b"-" * 20000 + b"1\n", deep),
        Hostile("sums", plain + b"X = " + b"+".join([b"1"] * 20000) + b"\n", deep),
    ]
