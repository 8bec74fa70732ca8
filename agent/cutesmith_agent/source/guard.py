"""The guard that hands a forward over to its kernel, recognised by its syntax, however it is laid out.

if new_gelu_cute.supports(self, x):
    return new_gelu_cute.forward(self, x)
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from cutesmith_agent.source.parsing import Source


@dataclass(frozen=True)
class KernelGuard:
    """A guard in the file: the module name of its kernel, and its `if` statement."""

    kernel: str
    node: Node


def find_guard(source: Source, function: Node) -> KernelGuard | None:
    """The first guard among the statements of a function's body."""
    body = function.child_by_field_name("body")
    for statement in body.named_children if body is not None else ():
        kernel = _kernel_of(source, statement)
        if kernel:
            return KernelGuard(kernel, statement)
    return None


def _kernel_of(source: Source, statement: Node) -> str | None:
    if statement.type != "if_statement" or statement.child_by_field_name("alternative") is not None:
        return None
    condition, body = statement.child_by_field_name("condition"), statement.child_by_field_name("consequence")
    statements = [] if body is None else [node for node in body.named_children if node.type != "comment"]
    if condition is None or len(statements) != 1 or statements[0].type != "return_statement":
        return None
    supports, returned = _method_call(source, condition), statements[0].named_children
    kernel = _method_call(source, returned[0]) if returned else None
    if supports is None or kernel is None or supports[0] != kernel[0]:
        return None
    return kernel[0] if (supports[1], kernel[1]) == ("supports", "forward") else None


def _method_call(source: Source, node: Node) -> tuple[str, str] | None:
    """("name", "method") of the call `name.method(...)`, parenthesised or not."""
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    function = node.child_by_field_name("function") if node.type == "call" else None
    if function is None or function.type != "attribute" or function.named_children[0].type != "identifier":
        return None
    return source.read(function.named_children[0]), source.read(function.named_children[1])
