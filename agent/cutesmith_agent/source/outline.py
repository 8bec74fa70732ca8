"""The nn.Module classes of a file, found without running it, in half-typed text too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from tree_sitter import Node

from cutesmith_agent.source.bases import LocalClass, Names
from cutesmith_agent.source.guard import find_guard
from cutesmith_agent.source.methods import Method, read_method
from cutesmith_agent.source.parsing import Source, parse
from cutesmith_agent.source.positions import Span

_COMPOUND = {
    "if_statement", "elif_clause", "else_clause", "try_statement", "except_clause", "except_group_clause",
    "finally_clause", "with_statement", "for_statement", "while_statement", "block", "ERROR",
}  # fmt: skip
_INERT = frozenset({"function_definition", "comment"})  # at the top level they neither hold classes nor name any


@dataclass(frozen=True)
class ModuleClass:
    """A class of the file that derives from torch.nn.Module. Spans are characters, lines 1-based."""

    qualname: str  # "Outer.Inner"
    line: int  # of `class`
    end_line: int
    name_range: Span
    span: Span  # decorators included
    forward: Method | None  # None: inherited or missing
    kernel: str | None  # the kernel module its forward's guard names
    is_duplicate: bool  # another class of the file has this qualname

    @property
    def has_kernel(self) -> bool:
        return self.kernel is not None


@dataclass(frozen=True)
class ClassNode:
    """Any class of the file, with its syntax."""

    qualname: str
    is_module: bool
    node: Node  # the decorated definition where there is one
    definition: Node
    forward: Node | None  # the last `def forward` of its body, decorated or not


def outline(text: str | bytes | Source) -> tuple[ModuleClass, ...]:
    """The module classes in text order.

    After an edit, pass `parse(text, previous)` to parse only what changed."""
    source = text if isinstance(text, Source) else parse(text)
    found = class_nodes(source)
    count = Counter(node.qualname for node in found)
    return tuple(_module_class(source, node, count[node.qualname] > 1) for node in found if node.is_module)


def class_nodes(source: Source) -> tuple[ClassNode, ...]:
    """Every class that can be named from outside: at the top level or in a class, not within a function."""
    if "classes" not in source.memo:
        source.memo["classes"] = tuple(_class_nodes(source))
    return source.memo["classes"]


def _class_nodes(source: Source) -> Iterator[ClassNode]:
    names = Names(source)
    for statement in source.statements(unneeded=_INERT):
        with suppress(RecursionError):  # nested deeper than Python itself reads
            yield from _visit(statement, names, "")


def _visit(node: Node, names: Names, prefix: str) -> Iterator[ClassNode]:
    kind = node.type
    if kind == "class_definition":
        yield from _visit_class(node, node, names, prefix)
    elif kind == "decorated_definition":
        definition = node.child_by_field_name("definition")
        if definition is not None and definition.type == "class_definition":
            yield from _visit_class(node, definition, names, prefix)
    elif kind in _COMPOUND:
        for child in node.named_children:
            yield from _visit(child, names, prefix)
    elif kind != "function_definition":
        names.bind(node)


def _visit_class(node: Node, definition: Node, names: Names, prefix: str) -> Iterator[ClassNode]:
    name_node, body = definition.child_by_field_name("name"), definition.child_by_field_name("body")
    if name_node is None:
        return
    name = names.source.read(name_node)
    local = LocalClass(names.is_module(definition))
    statements = body.named_children if body is not None else []
    yield ClassNode(prefix + name, local.is_module, node, definition, _last_forward(names.source, statements))
    inner = Names(names.source, outer=names if names.outer is None else names.outer)
    for statement in statements:
        yield from _visit(statement, inner, f"{prefix}{name}.")
    local.members.update({key: value for key, value in inner.meanings.items() if isinstance(value, LocalClass)})
    names.meanings[name] = local


def _last_forward(source: Source, statements: list[Node]) -> Node | None:
    for statement in reversed(statements):
        function = statement.child_by_field_name("definition") or statement
        if function.type != "function_definition":
            continue
        name = function.child_by_field_name("name")
        if name is not None and source.read(name) == "forward":
            return statement
    return None


def _module_class(source: Source, found: ClassNode, is_duplicate: bool) -> ModuleClass:
    definition, lines = found.definition, source.lines
    name = definition.child_by_field_name("name")
    assert name is not None
    span = source.span(definition)
    return ModuleClass(
        qualname=found.qualname,
        line=lines.line_of(span.start) + 1,
        end_line=lines.line_of(span.end) + 1,
        name_range=source.span(name),
        span=source.span(found.node),
        forward=read_method(source, found.forward) if found.forward is not None else None,
        kernel=kernel_of(source, found),
        is_duplicate=is_duplicate,
    )


def kernel_of(source: Source, found: ClassNode) -> str | None:
    """The kernel module that the class's forward already hands over to."""
    if found.forward is None:
        return None
    guard = find_guard(source, found.forward.child_by_field_name("definition") or found.forward)
    return guard.kernel if guard else None
