"""Taking a kernel into a developer's file, and out again byte for byte.

Two hunks: the import, and at the top of forward, below its docstring,

    if new_gelu_cute.supports(self, x):
        return new_gelu_cute.forward(self, x)
"""

from __future__ import annotations

import re

from tree_sitter import Node

from cutesmith_agent.source.edits import Edit, EditRefusedError, StaleClassError, apply_edits
from cutesmith_agent.source.fingerprint import class_hash
from cutesmith_agent.source.guard import KernelGuard, find_guard
from cutesmith_agent.source.imports import add_import, find_import, remove_import, uses
from cutesmith_agent.source.methods import Method, read_method
from cutesmith_agent.source.outline import ClassNode, class_nodes
from cutesmith_agent.source.parsing import Source, parse
from cutesmith_agent.source.syntax import syntax_problem

_REST_OF_LINE = re.compile(r"[ \t\f]*(?:#[^\r\n]*)?(\r\n|\r|\n)")
_UNBOUND = {"staticmethod", "classmethod", "property", "torch.jit.script_method", "jit.script_method"}


def adopt(text: str, qualname: str, kernel: str, *, relative: bool, replace: bool = False) -> tuple[Edit, ...]:
    """The edits that make the class hand over to the module `kernel` (its name, without `.py`).

    relative: import it as `from . import kernel`. replace: where the class has a kernel already, put this one in its
    place. Raises EditRefusedError where the result would not be exactly the old behaviour plus the kernel."""
    source = parse(text)
    _check_parses(source)
    found = _only_class(source, qualname)
    guard = _guard_of(source, found)
    if guard is not None and replace:
        return _replace(text, qualname, guard.kernel, kernel, relative=relative)
    if guard is not None:
        raise EditRefusedError(f"{qualname} already has the kernel {guard.kernel}: remove that one first.")
    method = _forward(source, found)
    imported = find_import(source, kernel)
    _check_name_is_free(source, kernel, within=imported.statement if imported else None)
    edits = () if imported else (add_import(source, kernel, found.node, relative=relative),)
    return (*edits, _add_guard(source, qualname, method, kernel))


def remove(text: str, qualname: str, kernel: str) -> tuple[Edit, ...]:
    """The edits that take the guard for `kernel` out of the class, and its import if nothing else needs it.

    Raises EditRefusedError when the class has no such guard."""
    source = parse(text)
    guards = [
        guard for found in class_nodes(source) if found.qualname == qualname if (guard := _guard_of(source, found))
    ]
    guards = [guard for guard in guards if guard.kernel == kernel]
    if len(guards) != 1:
        reason = "has no kernel" if not guards else "is defined more than once with the kernel"
        raise EditRefusedError(f"{qualname} {reason} {kernel}: nothing was removed.")
    imported = find_import(source, kernel)
    inside = [guards[0].node, *([imported.statement] if imported else [])]
    needed = any(not any(_contains(node, use) for node in inside) for use in uses(source, kernel))
    edits = (_remove_guard(source, guards[0]),)
    return edits if imported is None or needed else (remove_import(source, imported), *edits)


def kernel_lines(source: Source, qualname: str) -> tuple[int, ...]:
    """The lines, 1-based, of the class's guard and of the import that it needs; none without a kernel."""
    guards = [_guard_of(source, found) for found in class_nodes(source) if found.qualname == qualname]
    guard = next((each for each in guards if each is not None), None)
    if guard is None:
        return ()
    imported = find_import(source, guard.kernel)
    spans = [source.span(node) for node in (*([imported.statement] if imported else []), guard.node)]
    lines = source.lines
    rows = [row for span in spans for row in range(lines.line_of(span.start), lines.line_of(span.end) + 1)]
    return tuple(row + 1 for row in rows)


def adopt_if_unchanged(text: str, qualname: str, kernel: str, *, relative: bool, proved: str) -> tuple[Edit, ...]:
    """`adopt` on a text that may have moved on since the kernel was proved on a class of hash `proved`.

    Raises StaleClassError when the class, or code of the file that it uses, is another one now."""
    if class_hash(text, qualname) != proved:
        raise StaleClassError(f"{qualname} has changed since its kernel was proved: generate it again.")
    return adopt(text, qualname, kernel, relative=relative, replace=True)


def without_kernel(text: str, qualname: str) -> str:
    """The text with the class's kernel, if it has one, taken out: what a new kernel is proved against."""
    source = parse(text)
    for found in class_nodes(source):
        guard = _guard_of(source, found) if found.qualname == qualname else None
        if guard is not None:
            return apply_edits(text, remove(text, qualname, guard.kernel))
    return text


def _replace(text: str, qualname: str, old: str, new: str, *, relative: bool) -> tuple[Edit, ...]:
    bare = apply_edits(text, remove(text, qualname, old))
    result = apply_edits(bare, adopt(bare, qualname, new, relative=relative))
    if result == text:
        return ()
    start = next((i for i, (a, b) in enumerate(zip(text, result, strict=False)) if a != b), min(len(text), len(result)))
    limit = min(len(text), len(result)) - start
    tail = next((i for i in range(limit) if text[-1 - i] != result[-1 - i]), limit)
    return (Edit(start, len(text) - tail, result[start : len(result) - tail]),)


def _only_class(source: Source, qualname: str) -> ClassNode:
    found = [node for node in class_nodes(source) if node.qualname == qualname]
    if not found:
        raise EditRefusedError(f"There is no class {qualname} in the file: it may have been renamed.")
    if len(found) > 1:
        lines = " and ".join(str(node.definition.start_point.row + 1) for node in found)
        raise EditRefusedError(
            f"The file defines {qualname} more than once (lines {lines}): rename or remove all but one."
        )
    holder = found[0].node.parent
    while holder is not None and holder.type in ("block", "class_definition", "decorated_definition", "module"):
        holder = holder.parent
    if holder is not None and holder.type != "ERROR":
        line = found[0].definition.start_point.row + 1
        raise EditRefusedError(
            f"{qualname} (line {line}) is defined inside a block such as if or try: move it out of it."
        )
    return found[0]


def _guard_of(source: Source, found: ClassNode) -> KernelGuard | None:
    return None if found.forward is None else find_guard(source, _function(found.forward))


def _function(node: Node) -> Node:
    return node.child_by_field_name("definition") or node


def _forward(source: Source, found: ClassNode) -> Method:
    """The class's forward, once it is one that a guard can stand in."""
    if found.forward is None:
        raise EditRefusedError(
            f"{found.qualname} has no forward of its own in this file: write one, or choose the class that has it."
        )
    method = read_method(source, found.forward)
    reason = _why_unguardable(method, _function(found.forward))
    if reason:
        raise EditRefusedError(f"forward of {found.qualname} (line {method.line}) {reason}")
    return method


def _why_unguardable(method: Method, function: Node) -> str | None:
    decorator = next((text for text in method.decorators if text.lstrip("@ ").split("(")[0] in _UNBOUND), None)
    extra = next((parameter for parameter in method.inputs if parameter.kind != "positional"), None)
    if decorator:
        return f"is decorated with {decorator}: a kernel needs a plain method."
    if method.is_async or _yields(function.child_by_field_name("body")):
        return "is a coroutine or a generator: a kernel can only return its result."
    if not method.parameters or method.parameters[0].kind != "positional":
        return "has no self parameter: a kernel needs it to reach the module."
    if extra is not None:
        stars = {"args": "*", "kwargs": "**", "keyword": "keyword-only "}[extra.kind]
        return (
            f"takes {stars}{extra.name}: a kernel is proved for positional inputs only, so make all of them positional."
        )
    if method.body_start is None:
        return "has no statements: write its body first."
    return None


def _yields(node: Node | None) -> bool:
    """Whether a body yields, functions and lambdas within it aside."""
    if node is None or node.type in ("function_definition", "lambda"):
        return False
    return node.type == "yield" or any(_yields(child) for child in node.named_children)


def _check_name_is_free(source: Source, name: str, within: Node | None) -> None:
    """Reading attributes of the module is fine; binding or passing the name means that it is something else here."""
    for use in uses(source, name):
        parent = use.parent
        is_read = parent is not None and parent.type == "attribute"
        if not is_read and (within is None or not _contains(within, use)):
            line = use.start_point.row + 1
            raise EditRefusedError(
                f"The name {name} is already used on line {line}: rename that, so that the kernel can have it."
            )


def _contains(outer: Node, inner: Node) -> bool:
    return outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte


def _add_guard(source: Source, qualname: str, method: Method, kernel: str) -> Edit:
    above = method.docstring_end if method.docstring_end is not None else method.header_end
    match = _REST_OF_LINE.match(source.text, above)
    if match is None:
        raise EditRefusedError(
            f"forward of {qualname} (line {method.line}) shares a line with its body: put the body on lines of its own."
        )
    outer, end = method.indent, match[1]
    step = outer.removeprefix(method.def_indent) if outer.startswith(method.def_indent) else ""
    arguments = ", ".join(parameter.name for parameter in method.parameters)
    inner = outer + (step or "    ")
    guard = f"{outer}if {kernel}.supports({arguments}):{end}{inner}return {kernel}.forward({arguments}){end}"
    return Edit(match.end(), match.end(), guard)


def _remove_guard(source: Source, guard: KernelGuard) -> Edit:
    span, lines = source.span(guard.node), source.lines
    return Edit(lines.span(lines.line_of(span.start)).start, lines.span(lines.line_of(span.end)).end, "")


def _check_parses(source: Source) -> None:
    """Half-typed code is not edited. tree-sitter or Python itself may vouch for it: each knows syntax the other
    lacks."""
    if not source.has_error:
        return
    problem = syntax_problem(source.text)
    if problem is not None:
        place = f" near line {problem[0]}" if problem[0] else ""
        raise EditRefusedError(f"The file has a syntax error{place}: correct it first.")
