"""Where a kernel's import goes, as a developer would place it, and how it comes out again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from cutesmith_agent.source.edits import Edit, EditRefusedError
from cutesmith_agent.source.methods import is_docstring
from cutesmith_agent.source.parsing import Source
from cutesmith_agent.source.positions import to_bytes

_IMPORTS = ("import_statement", "import_from_statement", "future_import_statement")
_DEFINITIONS = ("class_definition", "function_definition", "decorated_definition")


@dataclass(frozen=True)
class KernelImport:
    """A top-level import that binds the kernel's name: its statement, and all names that it imports."""

    statement: Node
    names: tuple[Node, ...]
    name: Node


def find_import(source: Source, kernel: str) -> KernelImport | None:
    """The top-level import that binds `kernel`, in whatever form a tool or a person has put it."""
    for statement in source.statements():
        if statement.type not in _IMPORTS[:2]:
            continue
        names = tuple(statement.children_by_field_name("name"))
        for name in names:
            if name.type == "dotted_name" and source.read(name) == kernel:
                return KernelImport(statement, names, name)
    return None


def uses(source: Source, name: str) -> Iterator[Node]:
    """Where the file uses `name` as a name of its own: not as an attribute (`x.name`) or keyword (`f(name=1)`)."""
    wanted = to_bytes(name)
    start = source.data.find(wanted)
    while start >= 0:
        node = source.node_at(start, start + len(wanted))
        if node is not None and node.type == "identifier" and source.read(node) == name and not _is_label(node):
            yield node
        start = source.data.find(wanted, start + len(wanted))


def _is_label(node: Node) -> bool:
    parent = node.parent
    label = None
    if parent is not None and parent.type == "attribute":
        label = parent.child_by_field_name("attribute")
    elif parent is not None and parent.type == "keyword_argument":
        label = parent.child_by_field_name("name")
    return label is not None and label.id == node.id


def add_import(source: Source, kernel: str, target: Node, *, relative: bool) -> Edit:
    """The edit that imports the kernel above the class `target`."""
    statement = f"from . import {kernel}" if relative else f"import {kernel}"
    statements = [node for node in source.statements() if node.type != "comment"]
    anchor = _anchor(source, [node for node in statements if node.end_byte <= target.start_byte])
    if anchor is None:
        start = _below_leading_comments(source)
        return Edit(start, start, statement + _line_end(source, start))
    line = source.lines.line_of(source.span(_last_on_line(statements, anchor)).end)
    end, at = source.lines.line_end(line), source.lines.span(line).end
    gap = "" if _is_neighbour(source, anchor) else end
    return Edit(at, at, f"{gap}{statement}{end}")


def _anchor(source: Source, statements: list[Node]) -> Node | None:
    """The statement the import goes below: the last import of the file's head, or the docstring."""
    first_definition = next((i for i, node in enumerate(statements) if node.type in _DEFINITIONS), len(statements))
    head = [node for node in statements[:first_definition] if node.type in _IMPORTS]
    later = [node for node in statements if node.type in _IMPORTS]
    blocks = [node for node in statements if node.type in ("try_statement", "if_statement") and _imports(node)]
    docstring = [node for node in statements[:1] if is_docstring(source, node)]
    return next((group[-1] for group in (head, later, blocks, docstring) if group), None)


def _imports(node: Node) -> bool:
    return any(
        child.type in _IMPORTS or (child.type not in _DEFINITIONS and _imports(child)) for child in node.children
    )


def _last_on_line(statements: list[Node], node: Node) -> Node:
    """The statement that ends the logical line of `node` (`import a; b = 1`)."""
    for other in statements:
        if other.start_byte >= node.end_byte and other.start_point.row == node.end_point.row:
            node = other
    return node


def _is_neighbour(source: Source, anchor: Node) -> bool:
    """Whether the import above is of the project's own modules too, so that no blank line divides the two."""
    if anchor.type == "import_from_statement":
        return source.read(anchor.named_children[0]).startswith(".")
    return anchor.type == "import_statement" and source.read(anchor).endswith("_cute")


def _below_leading_comments(source: Source) -> int:
    """After a BOM, a shebang and a coding comment."""
    match = re.match(r"\ufeff?(?:#(?:!|.*coding)[^\r\n]*(?:\r\n|\r|\n)){0,2}", source.text)
    return match.end() if match else 0


def _line_end(source: Source, char: int) -> str:
    return source.lines.line_end(source.lines.line_of(char)) or "\n"


def remove_import(source: Source, found: KernelImport) -> Edit:
    """The edit that takes the kernel's import out: its lines and the blank line it brought, or its name alone."""
    if len(found.names) > 1:
        return _remove_name(source, found)
    span, lines = source.span(found.statement), source.lines
    first, last = lines.line_of(span.start), lines.line_of(span.end)
    before = source.text[lines.span(first).start : span.start].strip("\ufeff")
    after = source.text[span.end : lines.span(last).end].strip()
    if before or (after and not after.startswith("#")):
        raise EditRefusedError(
            f"The import on line {first + 1} shares its line with other code: put it on a line of its own."
        )
    start, end = (
        lines.span(first).start + source.text.startswith("\ufeff", lines.span(first).start),
        lines.span(last).end,
    )
    follows = source.text[end : lines.span(lines.line_of(end)).end]
    if first and _is_blank(source, first - 1) and not re.match(r"(from|import)\b", follows):
        start = lines.span(first - 1).start
    return Edit(start, end, "")


def _is_blank(source: Source, line: int) -> bool:
    span = source.lines.span(line)
    return not source.text[span.start : span.end].strip()


def _remove_name(source: Source, found: KernelImport) -> Edit:
    index = found.names.index(found.name)
    if index + 1 < len(found.names):
        return Edit(source.span(found.name).start, source.span(found.names[index + 1]).start, "")
    return Edit(source.span(found.names[index - 1]).end, source.span(found.name).end, "")
