"""What can be seen of a candidate without running it."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from cutesmith_agent.printable import hidden_line
from cutesmith_evaluator.guards.static import Signature, judge
from cutesmith_evaluator.guards.torch_names import MANTISSA
from cutesmith_evaluator.types import Finding, Graph

SOURCE_LIMIT = 512 << 10  # characters, or bytes
_FUNCTIONS = ("supports", "explain", "forward", "warm_up")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTABLE = sys.stdlib_module_names | {"torch"}


def static_findings(source: str, path: Path, graph: Graph | None = None) -> tuple[Finding, ...]:
    """Where a candidate breaks the contract in `docs/contracts.md`, or what `docs/evaluator.md` says no kernel may do.

    KernelBench's contract (`ModelNew`) asks for no functions and no late imports. `graph`: the reference's.
    """
    if len(source) > SOURCE_LIMIT:
        return (too_long(path, len(source)),)
    source = source.removeprefix("\ufeff")  # a byte order mark
    if (hidden := hidden_line(source)) is not None:
        message = f"{path.name}:{hidden} has a character that hides or reorders text; write it as an escape."
        return (Finding("hidden-text", message, hidden, str(path)),)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            judged = judge(source, path, _signature(graph)).findings
    except (RecursionError, MemoryError):
        message = f"{path.name} has expressions that are nested too deeply to be read; split them."
        return (Finding("too-deep", message, 1, str(path)),)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        message = f"{path.name}:{line or 1} is no valid Python ({getattr(error, 'msg', error)}); correct it."
        return (Finding("syntax-error", message, line, str(path)),)
    if any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in tree.body):
        return judged
    breaches = (*_missing_functions(tree, path), *_bound_again(tree, path), *_forbidden_imports(tree, path))
    lines = {finding.line for finding in breaches}
    return (*breaches, *(finding for finding in judged if finding.line not in lines))


def too_long(path: Path, size: int) -> Finding:
    """The longest kernel that was ever made here has 20 KB; reading code takes a thousand times its size."""
    message = f"{path.name} has {size / 2**20:.1f} MiB; a kernel's file has at most {SOURCE_LIMIT >> 10} KiB."
    return Finding("too-long", message, None, str(path))


def _signature(graph: Graph | None) -> Signature:
    if graph is None:
        return Signature()
    specs = [each.spec for each in graph.inputs] + [spec for node in graph.nodes for spec in node.outputs]
    bits = [MANTISSA[spec.dtype] for spec in specs if spec.dtype in MANTISSA]
    return Signature(
        frozenset(each.position for each in graph.inputs if each.kind == "argument" and each.position is not None),
        frozenset(each.path for each in graph.inputs if each.kind != "argument" and each.path),
        min(bits, default=None),
    )


def _missing_functions(tree: ast.Module, path: Path) -> Iterator[Finding]:
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    missing = [name for name in _FUNCTIONS if name not in defined]
    if missing:
        message = f"{path.name} defines no {', '.join(missing)}; a kernel file needs {', '.join(_FUNCTIONS)}."
        yield Finding("not-a-candidate", message, 1, str(path))


def _bound_again(tree: ast.Module, path: Path) -> Iterator[Finding]:
    """What is read as `def supports` has to be what is called."""
    seen: set[str] = set()
    for node in _outside_functions(tree):
        name = node.name if isinstance(node, _DEFINITIONS) else node.id if isinstance(node, ast.Name) else ""
        is_bound = isinstance(node, _DEFINITIONS) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        if is_bound and name in _FUNCTIONS and (name in seen or isinstance(node, ast.Name)):
            message = f"{path.name}:{node.lineno} binds {name} again; a kernel file defines it once, as a function."
            yield Finding("not-a-candidate", message, node.lineno, str(path))
        seen |= {name} if isinstance(node, _DEFINITIONS) else set()


def _outside_functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Name]:
    """Names and definitions of the module's own scope."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _outside_functions(child)


def _forbidden_imports(tree: ast.Module, path: Path) -> Iterator[Finding]:
    """A kernel file must import where neither the DSL nor a GPU is, and the DSL reads annotations as they are."""
    for node in _run_at_import(tree):
        for name in _imported(node):
            if name == "__future__":
                message = (
                    f"{path.name}:{node.lineno} has a __future__ import, which hides types from the DSL; remove it."
                )
                yield Finding("future-import", message, node.lineno, str(path))
            elif name.partition(".")[0] not in _IMPORTABLE:
                message = f"{path.name}:{node.lineno} imports {name} at import; move it into the function that uses it."
                yield Finding("early-import", message, node.lineno, str(path))


def _run_at_import(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _run_at_import(child)


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return ["." * node.level + (node.module or "")]
    return [alias.name for alias in node.names]
