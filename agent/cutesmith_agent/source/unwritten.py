"""A forward that is only described: what is said of it, and its statements written in under the docstring."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import warnings
from dataclasses import dataclass

from tree_sitter import Node

from cutesmith_agent.source.edits import Edit, EditRefusedError, apply_edits
from cutesmith_agent.source.methods import Method, is_docstring, read_method, statements_of
from cutesmith_agent.source.outline import ClassNode, class_nodes
from cutesmith_agent.source.parsing import Source, parse
from cutesmith_agent.source.syntax import syntax_problem

_NOT_LAID_OUT = (
    "The method cannot be laid out in the file: use no string over several lines, and a line for every statement."
)
_TO_LINE_END = re.compile(r"[ \t\f]*(?:#[^\r\n]*)?(?=[\r\n]|$)")


@dataclass(frozen=True)
class Unwritten:
    """A class whose forward is a stub. `description`: the docstrings of class and forward, "" where there is none."""

    line: int  # of forward, 1-based
    signature: str  # "def forward(self, x: torch.Tensor) -> torch.Tensor", over several lines where it is
    constructor: str  # as the signature; "" where the class has none of its own
    parameters: tuple[str, ...]  # of forward, self first
    description: str


def unwritten(source: Source, qualname: str) -> Unwritten | None:
    """None where forward is written, or the class has none."""
    found = next((node for node in class_nodes(source) if node.qualname == qualname), None)
    if found is None or found.forward is None:
        return None
    method = read_method(source, found.forward)
    if not method.is_stub:
        return None
    said = [_docstring(source, node) for node in (found.definition, _function(found.forward))]
    return Unwritten(
        line=method.line,
        signature=_signature(source, found.forward),
        constructor=_constructor(source, found),
        parameters=tuple(each.name for each in method.parameters),
        description="\n\n".join(text for text in said if text),
    )


def write_forward(text: str, qualname: str, written: str) -> tuple[Edit, ...]:
    """The edits that put the statements of `written`, a whole `def forward(...)`, in the place of a stub's.

    The docstring and the signature stay as the developer wrote them. Raises EditRefusedError, also where forward is
    written by now."""
    source = parse(text)
    if (problem := syntax_problem(text)) is not None:
        raise EditRefusedError(f"The file has a syntax error near line {problem[0] or 1}: correct it first.")
    method, stub = _stub(source, qualname)
    body = body_of(written, tuple(each.name for each in method.parameters))
    edit = _edit(source, qualname, method, stub, body)
    _require_same(apply_edits(text, [edit]), qualname, body)
    return (edit,)


def body_of(written: str, parameters: tuple[str, ...]) -> str:
    """The statements of a `def forward` with these parameters, at the margin; a docstring of its own is left out.

    Raises EditRefusedError; `str()` says what is wrong with `written`."""
    function = _only_function(textwrap.dedent(written.replace("\r\n", "\n")).strip() + "\n", parameters)
    lines = textwrap.dedent(written.replace("\r\n", "\n")).strip().split("\n")
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not statements:
        raise EditRefusedError("forward has no statements besides its docstring.")
    before = function.body[0].end_lineno if statements is not function.body else None
    first = statements[0]
    if before is None and first.lineno == function.lineno:
        return lines[first.lineno - 1][first.col_offset :].strip()
    start = before if before is not None else _header_end(function)
    return textwrap.dedent("\n".join(lines[start : function.end_lineno])).strip("\n")


def _only_function(text: str, parameters: tuple[str, ...]) -> ast.FunctionDef:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        raise EditRefusedError(f"That is no valid Python: {getattr(error, 'msg', error)}{where}.") from None
    if len(tree.body) != 1 or not isinstance(function := tree.body[0], ast.FunctionDef) or function.decorator_list:
        raise EditRefusedError("Hand in exactly one function, `def forward(...)`, without decorators.")
    named = tuple(each.arg for each in (*function.args.posonlyargs, *function.args.args))
    if function.name != "forward" or named != parameters or function.args.vararg or function.args.kwonlyargs:
        raise EditRefusedError(f"The function must be `def forward({', '.join(parameters)})`, as it is declared.")
    return function


def _header_end(function: ast.FunctionDef) -> int:
    """The number of lines up to the colon: comments below it belong to the body."""
    arguments = [node.end_lineno or 0 for node in ast.walk(function.args) if isinstance(node, ast.expr | ast.arg)]
    last = max([function.lineno, *arguments, (function.returns.end_lineno or 0) if function.returns else 0])
    return last if last < function.body[0].lineno else function.body[0].lineno - 1


def _stub(source: Source, qualname: str) -> tuple[Method, list[Node]]:
    """The method, and the statements of its stub, the docstring aside."""
    found = [node for node in class_nodes(source) if node.qualname == qualname]
    if len(found) != 1 or found[0].forward is None:
        raise EditRefusedError(f"There is no one class {qualname} with a forward in the file: is it renamed?")
    method = read_method(source, found[0].forward)
    if not method.is_stub:
        raise EditRefusedError(f"forward of {qualname} (line {method.line}) is written by now: nothing was changed.")
    statements = statements_of(_function(found[0].forward))
    return method, [node for node in statements if not is_docstring(source, node)]


def _edit(source: Source, qualname: str, method: Method, stub: list[Node], body: str) -> Edit:
    end_of_line = source.lines.line_end(0) or "\n"
    indent = method.indent or f"{method.def_indent}    "

    def laid_out(lines: str) -> str:
        return textwrap.indent(lines, indent).replace("\n", end_of_line)

    if not stub:
        assert method.docstring_end is not None
        if not method.indent:
            raise EditRefusedError(_shares_a_line(qualname, method))
        place = _line_end(source.text, method.docstring_end)
        return Edit(place, place, f"{end_of_line}{laid_out(body)}")
    start, end = source.span(stub[0]).start, _line_end(source.text, source.span(stub[-1]).end)
    if not method.indent and method.docstring_end is None:
        return Edit(method.header_end, end, f"{end_of_line}{laid_out(body)}")
    line_start = max(source.text.rfind("\n", 0, start), source.text.rfind("\r", 0, start)) + 1
    if source.text[line_start:start].strip():
        raise EditRefusedError(_shares_a_line(qualname, method))
    return Edit(line_start, end, laid_out(body))


def _line_end(text: str, place: int) -> int:
    """Behind a comment that ends the line; else the place itself."""
    rest = _TO_LINE_END.match(text, place)
    return rest.end() if rest else place


def _shares_a_line(qualname: str, method: Method) -> str:
    return f"forward of {qualname} (line {method.line}) shares a line with its body: put the body on lines of its own."


def _require_same(result: str, qualname: str, body: str) -> None:
    """Laying it out anew may not change it, and nothing else may have changed its meaning."""
    source = parse(result)
    found = next((node for node in class_nodes(source) if node.qualname == qualname), None)
    if found is None or found.forward is None or syntax_problem(result) is not None:
        raise EditRefusedError(_NOT_LAID_OUT)
    lead = read_method(source, found.forward).def_indent
    code = source.read(_function(found.forward))
    written = ast.parse(f"if True:\n{lead}{code}" if lead else code)
    function = next(node for node in ast.walk(written) if isinstance(node, ast.FunctionDef))
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    wanted = ast.parse(f"def f():\n{textwrap.indent(body, '    ')}").body[0]
    assert isinstance(wanted, ast.FunctionDef)
    if [ast.dump(node) for node in statements] != [ast.dump(node) for node in wanted.body]:
        raise EditRefusedError(_NOT_LAID_OUT)


def _function(node: Node) -> Node:
    return node.child_by_field_name("definition") or node if node.type == "decorated_definition" else node


def _docstring(source: Source, definition: Node) -> str:
    """The text of a class's or function's docstring, at the margin."""
    first = next(iter(statements_of(definition)), None)
    if first is None or not is_docstring(source, first):
        return ""
    try:
        return inspect.cleandoc(str(ast.literal_eval(source.read(first)))).strip()
    except (SyntaxError, ValueError):
        return ""


def _signature(source: Source, node: Node) -> str:
    """From `def` to before the colon, as it is written."""
    function = _function(node)
    method = read_method(source, node)
    text = source.text[source.span(function).start : method.header_end].replace("\r\n", "\n")
    return "\n".join(line.removeprefix(method.def_indent) for line in text.split("\n")).removesuffix(":")


def _constructor(source: Source, found: ClassNode) -> str:
    for statement in statements_of(found.definition):
        function = _function(statement)
        name = function.child_by_field_name("name") if function.type == "function_definition" else None
        if name is not None and source.read(name) == "__init__":
            return _signature(source, statement)
    return ""
