"""The names that a top-level statement binds."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node


def bound_names(statement: Node, data: bytes) -> Iterator[str]:
    """`data` is what the node counts in. Imports bind none here: those of kernels are ours, and others are no code."""
    if statement.type in ("import_statement", "import_from_statement"):
        return
    definition = statement.child_by_field_name("definition") or statement
    name = definition.child_by_field_name("name")
    if name is not None:
        yield _read(name, data)
    elif statement.type == "expression_statement" and statement.named_children:
        left = statement.named_children[0].child_by_field_name("left")
        yield from _identifiers(left, data) if left is not None else ()


def _identifiers(node: Node, data: bytes) -> Iterator[str]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.type == "identifier":
            yield _read(node, data)
        waiting += node.named_children


def _read(node: Node, data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "surrogatepass")
