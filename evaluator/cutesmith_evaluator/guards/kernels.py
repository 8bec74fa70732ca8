"""Which kernels a file defines, and which of them its forward can reach."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_KERNEL = ("kernel",)  # cute.kernel, or the name alone
_ENTRIES = ("forward", "warm_up")


@dataclass(frozen=True)
class KernelDefinition:
    name: str
    line: int
    reached: bool


def kernels_of(tree: ast.Module) -> tuple[KernelDefinition, ...]:
    """The functions decorated as kernels; `reached`: a launch can come of forward, as far as names tell."""
    functions = [node for node in ast.walk(tree) if isinstance(node, _FunctionNode)]
    used = _reachable(tree, functions)
    kernels = [node for node in functions if any(map(_is_kernel, node.decorator_list))]
    return tuple(KernelDefinition(node.name, node.lineno, node in used) for node in kernels)


def _is_kernel(decorator: ast.expr) -> bool:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(node, ast.Attribute):
        return node.attr in _KERNEL or (node.attr == "jit" and getattr(node.value, "id", "") == "triton")
    return isinstance(node, ast.Name) and node.id in _KERNEL


def _reachable(tree: ast.Module, functions: list[_FunctionNode]) -> set[ast.AST]:
    by_name: dict[str, list[_FunctionNode]] = {}
    for node in functions:
        by_name.setdefault(node.name, []).append(node)
    waiting = [*_names(tree.body), *_ENTRIES]
    seen: set[str] = set()
    found: set[ast.AST] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in by_name.get(name, ()):
            found.add(node)
            waiting += _names(node.body)
    return found


def _names(body: Iterable[ast.AST]) -> list[str]:
    """Names that are read here; not in the functions that are defined here, nor where a constant says never."""
    return [name for node in body for name in _read(node)]


def _read(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    if isinstance(node, _FunctionNode):
        for part in (*node.decorator_list, *node.args.defaults, *(each for each in node.args.kw_defaults if each)):
            yield from _read(part)
        return
    if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
        yield from _names(node.body if node.test.value else node.orelse)
        return
    if isinstance(node, ast.ClassDef):
        members = [each for each in node.body if not isinstance(each, _FunctionNode)]
        yield from _names(
            [*node.bases, *members, *(each for each in node.body if getattr(each, "name", "") == "__init__")]
        )
        return
    for child in ast.iter_child_nodes(node):
        yield from _read(child)
