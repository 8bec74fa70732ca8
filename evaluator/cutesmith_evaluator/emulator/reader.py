"""Reads the PTX that NVVM writes: modules, kernels, declarations, instructions with their lines of source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cutesmith_evaluator.emulator.body import read_body
from cutesmith_evaluator.emulator.declarations import declared, layout_parameters
from cutesmith_evaluator.emulator.faults import UnsupportedError
from cutesmith_evaluator.emulator.ptx import Kernel, Module, Variable

_NOISE = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TARGET = re.compile(r"\.target\s+(\w+)")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"\n]*)"[^\n]*')
_ENTRY = re.compile(r"(?:\.visible\s+|\.weak\s+)?\.entry\s+([\w$]+)")
_THREADS = re.compile(r"\.reqntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_IGNORED = re.compile(r"\.(?:version|target|address_size|file)\b[^\n]*")
_PRINTF = re.compile(r"\.extern\s+\.func\s*\([^)]*\)\s*vprintf\b")  # calls of it are left out
_SECTION = re.compile(r"\.section\b[^\n{]*")


def read_module(text: str) -> Module:
    """Raises UnsupportedError for what is not understood."""
    text = without_comments(text)
    target = _TARGET.search(text)
    files = {int(number): path for number, path in _FILE.findall(text)}
    kernels: dict[str, Kernel] = {}
    variables: list[Variable] = []
    for head, body, line in _top_level(text):
        if entry := _ENTRY.match(head):
            kernels[entry[1]] = _kernel(entry[1], head, body, line, files)
        elif _PRINTF.match(head):
            continue
        elif ".func" in head:
            raise UnsupportedError(
                f"the PTX holds a function ({head.split('(')[0].strip()}), which is not emulated yet"
            )
        else:
            variables += declared(head)
    return Module(target[1] if target else "", kernels, tuple(variables))


def without_comments(text: str) -> str:
    """Comments become spaces, so that lines keep their numbers."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0])

    return _NOISE.sub(blank, text)


def _top_level(text: str) -> Iterator[tuple[str, str, int]]:
    """(declaration, body or "", line of the body) of each thing in the module."""
    place = 0
    while (place := _after_space(text, place)) < len(text):
        if ignored := _IGNORED.match(text, place):
            place = ignored.end()
            continue
        if section := _SECTION.match(text, place):
            place = closing(text, text.index("{", section.start())) + 1
            continue
        end, brace = text.find(";", place), text.find("{", place)
        if ".entry" in text[place : brace if brace >= 0 else None] and brace >= 0 and (end < 0 or brace < end):
            close = closing(text, brace)
            yield text[place:brace], text[brace + 1 : close], text.count("\n", 0, brace) + 1
            place = close + 1
        elif end < 0:
            raise UnsupportedError(f"the PTX ends in `{text[place:].strip()[:60]}`, which is not understood")
        else:
            yield text[place:end], "", 0
            place = end + 1


def closing(text: str, brace: int) -> int:
    """The place of the brace that closes the one at `brace`."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(text, brace):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.start()
    raise UnsupportedError("a brace of the PTX is never closed")


def _after_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _kernel(name: str, head: str, body: str, line: int, files: dict[int, str]) -> Kernel:
    opening, end = head.find("("), head.rfind(")")
    threads = _THREADS.search(head)
    read = read_body(body, name, line, files)
    return Kernel(
        name=name,
        parameters=layout_parameters(head[opening + 1 : end] if opening >= 0 else ""),
        registers=read.registers,
        variables=tuple(read.variables),
        body=tuple(read.instructions),
        labels=read.labels,
        threads=_triple(threads) if threads else None,
    )


def _triple(found: re.Match[str]) -> tuple[int, int, int]:
    x, y, z = (int(found[place] or 1) for place in (1, 2, 3))
    return x, y, z
