"""The classes of a source file, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.failures import TaskError, finding_of


def check_class(file: Path, qualname: str) -> None:
    """Raises TaskError unless `file` parses and defines `qualname` once, outside functions."""
    tree = _parse(file)
    lines = [line for name, line in _classes(tree.body, "") if name == qualname]
    if len(lines) > 1:
        places = " and ".join(str(line) for line in lines)
        message = f"{file.name} defines {qualname} more than once (lines {places}); rename one of them."
        raise TaskError(Finding("duplicate-class", message, lines[-1], str(file)))
    if not lines:
        raise TaskError(_missing(tree, file, qualname))


def _parse(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes(), filename=str(file))
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}."
        raise TaskError(Finding("unreadable-file", message, None, str(file))) from error
    except (SyntaxError, ValueError) as error:
        raise TaskError(finding_of(error, "syntax-error", "being parsed", file)) from error


def _classes(body: list[ast.stmt], outer: str) -> Iterator[tuple[str, int]]:
    """(qualname, line) of every class that importing the file binds; of alternative branches, only the first."""
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            name = outer + statement.name
            yield name, statement.lineno
            yield from _classes(statement.body, name + ".")
            continue
        seen: set[str] = set()
        for branch in _branches(statement):
            found = list(_classes(branch, outer))
            yield from ((name, line) for name, line in found if name not in seen)
            seen |= {name for name, _ in found}


def _branches(statement: ast.stmt) -> list[list[ast.stmt]]:
    match statement:
        case ast.If(body=body, orelse=orelse):
            return [body, orelse]
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
            return [body, *(handler.body for handler in handlers), orelse, finalbody]
        case ast.With(body=body):
            return [body]
        case _:
            return []


def _missing(tree: ast.Module, file: Path, qualname: str) -> Finding:
    simple = qualname.rpartition(".")[2]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == simple:
            message = f"{file.name} has no class {qualname}: {simple} in line {node.lineno} lies in another scope."
            return Finding("class-missing", message, node.lineno, str(file))
    message = f"{file.name} has no class {qualname}; check the name and save the file."
    return Finding("class-missing", message, None, str(file))
