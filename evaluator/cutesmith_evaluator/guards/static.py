"""All static guards over one candidate."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cutesmith_evaluator.guards.base import Base, Signature
from cutesmith_evaluator.guards.kernels import KernelDefinition, kernels_of
from cutesmith_evaluator.guards.statements import Statements
from cutesmith_evaluator.guards.values import (
    NOTHING,
    Array,
    Class,
    Function,
    Instance,
    Reference,
    Scope,
    Values,
    arrays,
)
from cutesmith_evaluator.types import Finding

_NUMBERS = ("int", "float", "bool", "str", "torch.dtype", "int | None", "float | None", "tuple")
_QUESTIONS = ("supports", "explain", "warm_up")
DECLARATION = "LIBRARY_CALLS"


@dataclass(frozen=True)
class Judgement:
    """`kernels`: the file's own; `library_lines`: where it calls a library, as it declares."""

    findings: tuple[Finding, ...]
    kernels: tuple[KernelDefinition, ...]
    library_lines: frozenset[int]


def judge(source: str, path: Path, signature: Signature | None = None) -> Judgement:
    """Both contracts alike. Severity "information" is a label, never a rejection. Raises SyntaxError, ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    analysis = Statements(tree, path, signature or Signature(), _declared(tree))
    result: Values = NOTHING
    try:
        result = _analyse(analysis)
    except RecursionError:
        analysis.report("too-deep", tree, "is nested too deeply to be judged; write it in smaller steps")
    kernels = kernels_of(tree)
    analysis.findings.sort(key=lambda finding: (finding.severity != "error", finding.line or 0))
    _judge_kernels(analysis, kernels, result)
    _judge_narrowing(analysis)
    return Judgement(tuple(analysis.findings), kernels, frozenset(analysis.library_lines))


def _analyse(analysis: Statements) -> Values:
    """What forward returns."""
    scope = Scope()
    analysis.run(analysis.tree.body, scope)
    entries = [*_functions(scope.names.get("forward", NOTHING)), *_models(analysis, scope)]
    result = frozenset().union(*(_run_on_path(analysis, function) for function in entries))
    for function in _rooted(analysis):
        _run_on_path(analysis, function, is_op=True)
    for name in _QUESTIONS:
        for function in _functions(scope.names.get(name, NOTHING)):
            analysis.enter(function, _arguments(analysis, function), {})
    analysis.scan()
    return result


def _rooted(analysis: Statements) -> Iterator[Function]:
    """Implementations of ops, also those that are registered while others run."""
    done: set[ast.AST] = set()
    while analysis.roots:
        function = analysis.roots.pop()
        if function.node not in done:
            done.add(function.node)
            yield function


def _functions(values: Values) -> list[Function]:
    return [value for value in values if isinstance(value, Function)]


def _models(analysis: Statements, scope: Scope) -> Iterator[Function]:
    for value in scope.names.get("ModelNew", NOTHING):
        if isinstance(value, Class):
            instance = analysis.instance(value, [], {}, value.node)
            yield from _functions(analysis.attribute(instance, "forward", value.node))


def _run_on_path(analysis: Statements, function: Function, *, is_op: bool = False) -> Values:
    analysis.on_path = True
    given = _arguments(analysis, function, is_op=is_op)
    result = analysis.enter(function, [*function.before, *given], {})
    analysis.on_path = False
    return result


def _arguments(analysis: Base, function: Function, *, is_op: bool = False) -> list[Values]:
    """The module where the contract has one, then tensors where the reference takes them."""
    formal = function.node.args
    names = [*formal.posonlyargs, *formal.args][len(function.before) :]
    defaults = [None] * max(0, len(names) - len(formal.defaults)) + list(formal.defaults)[-len(names) or None :]
    has_module = not is_op and not any(isinstance(each, Instance) for values in function.before for each in values)
    inputs = list(zip(names, defaults, strict=False))[has_module:]
    given: list[Values] = [frozenset({Reference()})] if has_module else []
    for place, (argument, default) in enumerate(inputs):
        is_tensor = _may_be_tensor(argument, default)
        if analysis.signature.tensors is not None and not is_op:
            is_tensor = place in analysis.signature.tensors
        other = analysis.evaluate(default, function.scope) if default is not None else NOTHING
        given.append(frozenset({Array("input")}) if is_tensor else other)
    if formal.vararg:
        given += [frozenset({Array("input")})] * 4
    return given


def _may_be_tensor(argument: ast.arg, default: ast.expr | None) -> bool:
    if argument.annotation is not None and ast.unparse(argument.annotation) in _NUMBERS:
        return False
    return not (isinstance(default, ast.Constant) and default.value is not None)


def _declared(tree: ast.Module) -> frozenset[str]:
    """The last names of `LIBRARY_CALLS = ("torch.mm", …)`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == DECLARATION for t in node.targets):
            constants = [each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
            return frozenset(each.rpartition(".")[2] for each in constants if isinstance(each, str))
    return frozenset()


def _judge_kernels(analysis: Statements, kernels: tuple[KernelDefinition, ...], result: Values) -> None:
    place = ast.Pass()
    for kernel in kernels:
        if not kernel.reached:
            place.lineno = kernel.line
            words = f"defines the kernel {kernel.name}, which forward never launches; launch it or remove it"
            analysis.report("unused-kernel", place, words)
    if kernels or any(finding.severity == "error" for finding in analysis.findings):
        return
    place.lineno = 1
    if analysis.library_lines:
        words = "leaves everything to a library: it has no kernel of its own; write one for a part"
        analysis.report("library-only", place, words)
    elif arrays(result):
        words = "has no kernel: its result is an allocation or a view, right only where that is all the module does"
        analysis.report("no-kernel", place, words, "information")


def _judge_narrowing(analysis: Statements) -> None:
    """A narrower dtype is an error unless the same function takes what was cut off along (a split product)."""
    for each in analysis.narrowed:
        if each.function is not None and _keeps_rest(each.function):
            words = f"computes in {each.name} and in the rest that it cuts off: what precision that keeps is measured"
            analysis.report("split-precision", each.node, words, "information")
        else:
            words = (
                f"computes in {each.name}, narrower than the module's own dtype; keep that dtype, or add up the parts "
                "that the conversion cuts off"
            )
            analysis.report("narrower-dtype", each.node, words)


def _keeps_rest(function: ast.AST) -> bool:
    """Whether something widened is subtracted from something: `rest = x - x.to(narrow).to(wide)`."""
    wide = {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _is_widened(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and (_is_widened(node.right) or (isinstance(node.right, ast.Name) and node.right.id in wide))
        for node in ast.walk(function)
    )


def _is_widened(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    text = ast.unparse(node)
    return text.endswith((".float()", ".double()")) or "loat32" in text or "loat64" in text


__all__ = ["Judgement", "Signature", "judge"]
