"""What a proof holds for: a class and the code of its file that it uses, whatever their layout and comments."""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from cutesmith_agent.source.binding import bound_names
from cutesmith_agent.source.edits import EditRefusedError
from cutesmith_agent.source.guard import find_guard
from cutesmith_agent.source.outline import class_nodes
from cutesmith_agent.source.parsing import Source, parse


def class_hash(text: str | Source, qualname: str) -> str:
    """SHA-256 (hex) of the class and, transitively, of the top-level definitions it uses.

    Comments, layout and kernel guards do not count. Raises EditRefusedError when the file has no such class."""
    source = text if isinstance(text, Source) else parse(text)
    found = [item.node for item in class_nodes(source) if item.qualname == qualname]
    if not found:
        raise EditRefusedError(f"There is no class {qualname} in the file: it may have been renamed.")
    pieces = [*found, *used_by(source, found)]
    return hashlib.sha256("\n".join(_normal_form(source, piece) for piece in pieces).encode()).hexdigest()


def file_hash(data: bytes) -> str:
    """SHA-256 (hex) of a file's code; of its bytes, where Python cannot read it.

    Comments, layout, kernel guards and the imports of their kernels do not count."""
    text = _file_code(data)
    return hashlib.sha256(data if text is None else text.encode("utf-8", "surrogatepass")).hexdigest()


def _file_code(data: bytes) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
        guards = _WithoutGuards()
        tree = guards.visit(tree)
        return "\n".join(ast.unparse(node) for node in tree.body if not _imports_only(node, guards.kernels))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _imports_only(node: ast.stmt, kernels: set[str]) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) and all(each.name in kernels for each in node.names)


def used_by(source: Source, nodes: list[Node]) -> list[Node]:
    """The top-level statements that bind a name which the nodes use, or which those statements use in turn."""
    wanted = {name for node in nodes for name in _names(source, node)}
    used: dict[tuple[int, int], Node] = {}
    while fresh := {
        place: node
        for place, node in source.binding(wanted)
        if place not in used and not wanted.isdisjoint(bound_names(node, source.data))
    }:
        used |= fresh
        wanted |= {name for node in fresh.values() for name in _names(source, node)}
    return [used[place] for place in sorted(used)]


def _names(source: Source, node: Node) -> Iterator[str]:
    """Every name in a piece of code, guards left out, and attributes too (a harmless excess)."""
    waiting = [node]  # no recursion: generated sums are thousands of nodes deep
    while waiting:
        node = waiting.pop()
        if node.type == "identifier":
            yield source.read(node)
        guard = find_guard(source, node) if node.type == "function_definition" else None
        for child in node.named_children:
            inner = child.named_children if guard is not None and child.type == "block" else [child]
            waiting += [each for each in inner if guard is None or each.id != guard.node.id]


def _normal_form(source: Source, node: Node) -> str:
    """The code as Python's own printer lays it out; as it stands where Python cannot read it."""
    start = node.start_byte - node.start_point.column
    lead = source.data[start : node.start_byte].decode("utf-8", "surrogatepass")
    code = source.read(node)
    nested = bool(lead) and not lead.strip()
    return _printed(f"if True:\n{lead}{code}" if nested else code) or re.sub(r"\s+", " ", code)


@lru_cache(maxsize=512)  # an edit leaves nearly all classes as they were
def _printed(code: str) -> str:
    """As Python's own printer lays it out, without guards; "" where Python cannot read it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
        return ast.unparse(_WithoutGuards().visit(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


class _WithoutGuards(ast.NodeTransformer):
    """Takes kernel guards out of a tree of Python's own parser, and knows whose they were."""

    def __init__(self) -> None:
        self.kernels: set[str] = set()

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        match node:
            case ast.If(
                test=ast.Call(func=ast.Attribute(value=ast.Name(id=tested), attr="supports")),
                body=[ast.Return(value=ast.Call(func=ast.Attribute(value=ast.Name(id=called), attr="forward")))],
                orelse=[],
            ) if tested == called:
                self.kernels.add(tested)
                return None
        return node
