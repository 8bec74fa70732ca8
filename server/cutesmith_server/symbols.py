"""Document symbols of kernel files: what runs on the device, what launches it, and the functions that callers use.

Other Python files get none: their outline is the work of the Python server beside us.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from tree_sitter import Node

    from cutesmith_server.documents import Document
    from cutesmith_server.outlines import Outline

_DETAILS = {"cute.kernel": "CuTe kernel", "cute.jit": "CuTe host function"}
_KINDS = {"function_definition": types.SymbolKind.Function, "class_definition": types.SymbolKind.Class}


def symbols(document: Document, outline: Outline) -> list[types.DocumentSymbol]:
    return list(_within(outline.source.statements(), document, outline))


def flat(
    found: Iterable[types.DocumentSymbol], uri: str, container: str | None = None
) -> list[types.SymbolInformation]:
    """For an editor that knows no nested symbols."""
    result: list[types.SymbolInformation] = []
    for each in found:
        place = types.Location(uri, each.range)
        result.append(types.SymbolInformation(place, each.name, each.kind, container_name=container))
        result += flat(each.children or (), uri, each.name)
    return result


def _within(nodes: Iterable[Node], document: Document, outline: Outline) -> Iterator[types.DocumentSymbol]:
    for node in nodes:
        definition = node.child_by_field_name("definition") or node
        name = definition.child_by_field_name("name")
        if definition.type in _KINDS and name is not None:
            yield _symbol(node, definition, name, document, outline)
        elif node.type in ("if_statement", "try_statement", "with_statement", "block"):
            yield from _within(node.named_children, document, outline)


def _symbol(node: Node, definition: Node, name: Node, document: Document, outline: Outline) -> types.DocumentSymbol:
    source, text = outline.source, document.text
    whole, word = source.span(node), source.span(name)
    body = definition.child_by_field_name("body")
    decorators = (source.read(each) for each in node.named_children if each.type == "decorator")
    names = (each.lstrip("@").partition("(")[0].strip() for each in decorators)
    detail = next((_DETAILS[each] for each in names if each in _DETAILS), None)
    return types.DocumentSymbol(
        source.read(name),
        _KINDS[definition.type],
        text.range_of(whole.start, whole.end),
        text.range_of(word.start, word.end),
        detail,
        children=list(_within(body.named_children, document, outline)) if body is not None else [],
    )
