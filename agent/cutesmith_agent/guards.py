"""What can be seen of a candidate without running it."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from cutesmith_evaluator.guards.static import Signature, judge
from cutesmith_evaluator.guards.torch_names import MANTISSA
from cutesmith_evaluator.types import Finding, Graph

_FUNCTIONS = ("supports", "explain", "forward", "warm_up")
_IMPORTABLE = sys.stdlib_module_names | {"torch"}


def static_findings(source: str, path: Path, graph: Graph | None = None) -> tuple[Finding, ...]:
    """Where a candidate breaks the contract in `docs/contracts.md`, or what `docs/evaluator.md` says no kernel may do.

    KernelBench's contract (`ModelNew`) asks for no functions and no late imports. `graph`: the reference's.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        message = f"{path.name}:{line or 1} is no valid Python ({getattr(error, 'msg', error)}); correct it."
        return (Finding("syntax-error", message, line, str(path)),)
    judged = judge(source, path, _signature(graph)).findings
    if any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in tree.body):
        return judged
    breaches = (*_missing_functions(tree, path), *_forbidden_imports(tree, path))
    lines = {finding.line for finding in breaches}
    return (*breaches, *(finding for finding in judged if finding.line not in lines))


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
