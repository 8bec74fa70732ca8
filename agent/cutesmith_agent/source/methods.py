"""A method as text: its parameters, and where its body's statements begin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from cutesmith_agent.source.parsing import Source
from cutesmith_agent.source.positions import Span

_STUB = re.compile(r"\.\.\.|pass|raise NotImplementedError(?:\(.*\))?", re.DOTALL)
ParameterKind = Literal["positional", "keyword", "args", "kwargs"]


@dataclass(frozen=True)
class Parameter:
    """A parameter as written; `name` has no stars."""

    name: str
    kind: ParameterKind
    annotation: str | None = None
    default: str | None = None


@dataclass(frozen=True)
class Method:
    """A method. Offsets are characters; `parameters` has self (whatever its name) first.

    `is_stub`: its body, a docstring aside, is nothing, `...`, `pass` or `raise NotImplementedError`."""

    name: str
    line: int  # 1-based, of `def`
    span: Span  # decorators included
    parameters: tuple[Parameter, ...]
    decorators: tuple[str, ...]
    is_async: bool
    header_end: int  # after the colon
    docstring_end: int | None
    body_start: int | None  # first statement after the docstring; None: there is none
    indent: str  # before the body's statements; "" when they share the line of `def`
    def_indent: str
    is_stub: bool

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """The parameters a caller gives: all but self."""
        return self.parameters[1:]


def read_method(source: Source, node: Node) -> Method:
    """Read a function definition, or a decorated one."""
    function = node.child_by_field_name("definition") if node.type == "decorated_definition" else node
    assert function is not None
    statements = statements_of(function)
    docstring = statements[0] if statements and is_docstring(source, statements[0]) else None
    first = statements[0] if statements else function
    rest = statements[1:] if docstring else statements
    colon = next((child for child in function.children if child.type == ":"), function)
    return Method(
        name=_field(source, function, "name") or "",
        line=source.lines.line_of(source.span(function).start) + 1,
        span=source.span(node),
        parameters=_parameters(source, function.child_by_field_name("parameters")),
        decorators=tuple(source.read(child) for child in node.children if child.type == "decorator"),
        is_async=function.children[0].type == "async",
        header_end=source.span(colon).end,
        docstring_end=source.span(docstring).end if docstring else None,
        body_start=source.span(rest[0]).start if rest else None,
        indent=_indent(source, first) if first.start_point.row > colon.end_point.row else "",
        def_indent=_indent(source, function),
        is_stub=all(_STUB.fullmatch(source.read(statement)) for statement in rest),
    )


def is_docstring(source: Source, statement: Node) -> bool:
    """Whether a statement is nothing but a plain string (f-strings and bytes document nothing)."""
    if statement.type != "expression_statement" or len(statement.named_children) != 1:
        return False
    node = statement.named_children[0]
    prefix = re.match(r"[A-Za-z]*", source.read(node))
    return node.type in ("string", "concatenated_string") and prefix is not None and prefix[0].lower() in ("", "r", "u")


def statements_of(function: Node) -> list[Node]:
    """The statements of a function's body, its docstring among them."""
    body = function.child_by_field_name("body")
    return [] if body is None else [node for node in body.named_children if node.type != "comment"]


def _indent(source: Source, node: Node) -> str:
    """The white space that begins the node's line."""
    line = source.data[node.start_byte - node.start_point.column : node.start_byte]
    return line[: len(line) - len(line.lstrip(b" \t\f"))].decode()


def _field(source: Source, node: Node, name: str) -> str | None:
    child = node.child_by_field_name(name)
    return None if child is None else source.read(child)


def _parameters(source: Source, node: Node | None) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    keyword_only = False
    for child in node.named_children if node is not None else ():
        if child.type == "keyword_separator":
            keyword_only = True
        parameter = _parameter(source, child, "keyword" if keyword_only else "positional")
        if parameter is not None:
            found.append(parameter)
            keyword_only |= parameter.kind == "args"
    return tuple(found)


def _parameter(source: Source, node: Node, kind: ParameterKind) -> Parameter | None:
    if node.type in ("default_parameter", "typed_default_parameter"):
        name, annotation = _field(source, node, "name"), _field(source, node, "type")
        return Parameter(name or "", kind, annotation, _field(source, node, "value"))
    annotation = None
    if node.type == "typed_parameter":
        annotation = _field(source, node, "type")
        node = node.named_children[0]
    if node.type == "identifier":
        return Parameter(source.read(node), kind, annotation)
    if node.type == "list_splat_pattern":
        return Parameter(source.read(node).lstrip("* "), "args", annotation)
    if node.type == "dictionary_splat_pattern":
        return Parameter(source.read(node).lstrip("* "), "kwargs", annotation)
    return None
