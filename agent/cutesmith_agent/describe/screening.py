"""What a reference and its checks may be made of: torch, math, plain Python, and what the user's file defines.

They are a model's code: they run in a worker alone until the user has read them, and nothing that a formula does not
need is let in at all. What is refused goes back to the model, so a refusal says what to write instead.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator

from cutesmith_agent.printable import hidden_line

_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "frozenset", "int", "isinstance",
    "len", "list", "map", "max", "min", "pow", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum",
    "super", "tuple", "type", "zip", "print", "repr", "ArithmeticError", "AssertionError", "Exception", "IndexError",
    "RuntimeError", "TypeError", "ValueError",
})  # fmt: skip
_MODULES = ("torch", "math", "itertools")
# Of torch: what reads and writes files, compiles, loads code, starts processes, or changes torch for everybody.
_ATTRIBUTES = frozenset({
    "load", "save", "hub", "package", "jit", "compile", "compiler", "cpp_extension", "load_library", "ops", "library",
    "serialization", "multiprocessing", "distributed", "from_file", "tofile", "fromfile", "export", "onnx", "fx",
    "overrides", "utils", "backends", "cuda", "use_deterministic_algorithms", "set_default_dtype",
    "set_default_device", "set_num_threads", "manual_seed_all", "register_forward_hook", "register_hook",
    "register_forward_pre_hook", "apply_", "map_", "classes", "data_ptr", "mro", "format", "format_map",
})  # fmt: skip
# Modules that torch's own modules have imported can be reached through them (torch.os); these are ops or harmless.
_LIBRARY = frozenset(sys.stdlib_module_names) - {"select", "math", "random", "signal", "copy", "itertools"}
_STATEMENTS = (
    ast.AsyncFor, ast.AsyncFunctionDef, ast.AsyncWith, ast.Await, ast.ClassDef, ast.Global, ast.Nonlocal,
    ast.Yield, ast.YieldFrom,
)  # fmt: skip


def reference_problem(method: str, text: str) -> str | None:
    """What is wrong with a `def forward(...)` for the class in `text`, the user's file; None: nothing."""
    tree = _tree(method)
    if isinstance(tree, str):
        return tree
    if found := next((node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)), None):
        return f"Line {found.lineno} imports: use what the file has imported, and torch by its full name."
    problems = [*_problems(tree, _names_of_file(text)), *_stores(tree, {"self"} | _imports(_tree_or_empty(text)))]
    return problems[0] if problems else None


def checks_problem(checks: str) -> str | None:
    """What is wrong with a file of checks; None: nothing."""
    tree = _tree(checks)
    if isinstance(tree, str):
        return tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and (bad := _foreign(node)):
            return f"Line {node.lineno} imports {bad}: checks may import {', '.join(_MODULES)} alone."
    allowed = (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not isinstance(node, allowed) and not is_text:
            return f"Line {node.lineno}: a file of checks holds imports, constants and functions only."
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")}
    if not names:
        return "There is no function whose name begins with check_."
    problems = [*_problems(tree, _BUILTINS), *_stores(tree, _imports(tree)), *_arguments(tree)]
    return problems[0] if problems else None


def _tree(source: str) -> ast.Module | str:
    if (hidden := hidden_line(source)) is not None:
        return f"Line {hidden} has a character that hides or reorders text: no valid Python for a reader."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return f"Line {line or 1} is no valid Python: {getattr(error, 'msg', error)}."


def _tree_or_empty(source: str) -> ast.Module:
    tree = _tree(source)
    return tree if isinstance(tree, ast.Module) else ast.Module([], [])


def _problems(tree: ast.Module, known: frozenset[str]) -> Iterator[str]:
    bound = known | frozenset(_bound(tree))
    for node in ast.walk(tree):
        if isinstance(node, _STATEMENTS):
            yield f"Line {node.lineno}: no {type(node).__name__} here; plain functions and expressions do."
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
            yield f"Line {node.lineno} uses {node.id}, which is neither defined there nor allowed here."
        if isinstance(node, ast.Attribute) and _is_off_limits(node.attr):
            yield f"Line {node.lineno} uses .{node.attr}, which a formula does not need."


def _is_off_limits(name: str) -> bool:
    return name.startswith("_") or name in _ATTRIBUTES or name in _LIBRARY


def _bound(tree: ast.AST) -> Iterator[str]:
    """Every name that the code itself binds, wherever."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _names_of_file(text: str) -> frozenset[str]:
    """What a method may use of its file: what it defines, and of what it imports torch and math."""
    names: set[str] = {*_BUILTINS}
    for node in _tree_or_empty(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if not _foreign(node):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - {"__builtins__"}
    return frozenset(names)


def _foreign(node: ast.Import | ast.ImportFrom) -> str | None:
    """The first module that is none of ours, or a part of torch that is off limits."""
    if isinstance(node, ast.ImportFrom):
        paths = [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
    else:
        paths = [alias.name for alias in node.names]
    for path in paths:
        parts = path.split(".")
        if parts[0] not in _MODULES or any(map(_is_off_limits, parts)):
            return path
    return None


def _imports(tree: ast.Module) -> set[str]:
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _stores(tree: ast.Module, shared: set[str]) -> Iterator[str]:
    """Writing to what others use as well: torch for everybody, or the module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            root: ast.AST = node
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            if isinstance(root, ast.Name) and root.id in shared:
                yield f"Line {node.lineno} writes to {root.id}: keep what you compute in variables of your own."


def _arguments(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_") and len(node.args.args) != 2:
            yield f"Line {node.lineno}: {node.name} must take two arguments, (build, inputs)."
