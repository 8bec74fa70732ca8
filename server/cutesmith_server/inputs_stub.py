"""The example inputs a class lacks, as a stub at the end of its file for the developer to fill in.

`get_inputs()` and `get_init_inputs()` in a file with one module class, `get_<class>_inputs()` beside other classes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cutesmith_agent.source.edits import Edit, EditRefusedError
from cutesmith_agent.source.methods import Method, Parameter, read_method
from cutesmith_agent.source.outline import class_nodes
from cutesmith_evaluator.names import snake_case
from cutesmith_server.outlines import Outline

_DEFINED = re.compile(r"^(?:def[ \t]+(get_\w*inputs)\b|(get_\w*inputs)[ \t]*=)", re.MULTILINE)
_IMPORTS_TORCH = re.compile(r"^import torch(?:[ \t]*$|[ \t]*[,;#])", re.MULTILINE)


@dataclass(frozen=True)
class _Function:
    name: str
    comment: str
    parameters: tuple[Parameter, ...]


def lacks_inputs(outline: Outline, qualname: str) -> bool:
    """Whether the file does not say how to build and call the class."""
    return bool(_missing(outline, qualname))


def add_inputs(outline: Outline, qualname: str) -> tuple[Edit, ...]:
    """The edit that adds what is missing. Raises EditRefusedError when nothing is, or forward cannot be read."""
    missing = _missing(outline, qualname)
    if not missing:
        raise EditRefusedError(f"The file already says how to build and call {qualname}.")
    text = outline.source.text
    end_of_line = outline.source.lines.line_end(0) or "\n"
    imports_torch = _IMPORTS_TORCH.search(_lines(text)) is not None
    stubs = [_stub(function, imports_torch=imports_torch) for function in missing]
    body = ("" if text.endswith(("\n", "\r")) or not text else "\n") + "".join(f"\n\n{stub}" for stub in stubs)
    return (Edit(len(text), len(text), body.replace("\n", end_of_line)),)


def _missing(outline: Outline, qualname: str) -> tuple[_Function, ...]:
    found = outline.named(qualname)
    if found is None or found.forward is None:
        raise EditRefusedError(f"{qualname} has no forward of its own in this file: write it first.")
    init = _constructor(outline, qualname)
    wanted = [_Function("inputs", f"# Example arguments of {qualname}.forward.", _required(found.forward))]
    if init is not None and _required(init):
        wanted.append(_Function("init_inputs", f"# Arguments of {qualname}(...).", _required(init)))
    defined = {match[1] or match[2] for match in _DEFINED.finditer(_lines(outline.source.text))}
    return tuple(
        _Function(_name(outline, qualname, function.name), function.comment, function.parameters)
        for function in wanted
        if not defined & _accepted_names(qualname, function.name)
    )


def _lines(text: str) -> str:
    """The text for patterns that look for line starts."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _accepted_names(qualname: str, suffix: str) -> set[str]:
    stems = {snake_case(qualname), snake_case(qualname.rpartition(".")[2])}
    return {f"get_{suffix}", *(f"get_{stem}_{suffix}" for stem in stems)}


def _name(outline: Outline, qualname: str, suffix: str) -> str:
    return f"get_{suffix}" if len(outline.classes) == 1 else f"get_{snake_case(qualname)}_{suffix}"


def _constructor(outline: Outline, qualname: str) -> Method | None:
    for found in class_nodes(outline.source):
        body = found.definition.child_by_field_name("body")
        if found.qualname != qualname or body is None:
            continue
        for statement in body.named_children:
            function = statement.child_by_field_name("definition") or statement
            if function.type == "function_definition":
                method = read_method(outline.source, statement)
                if method.name == "__init__":
                    return method
    return None


def _required(method: Method) -> tuple[Parameter, ...]:
    return tuple(each for each in method.inputs if each.kind == "positional" and each.default is None)


def _stub(function: _Function, *, imports_torch: bool) -> str:
    values = [_example(parameter) for parameter in function.parameters]
    lines = [f"def {function.name}():", f"    {function.comment} Set the shapes, dtypes and values that you use."]
    if not imports_torch and any("torch." in value for value in values):
        lines.append("    import torch\n")
    lines += [f"    {each.name} = {value}" for each, value in zip(function.parameters, values, strict=True)]
    names = ", ".join(each.name for each in function.parameters)
    return "\n".join([*lines, f"    return [{names}]"]) + "\n"


_SIMPLE = {"int": "128", "float": "1.0", "bool": "True", "str": '""', "None": "None"}
_WORDS = re.compile(r"[a-z]+")


def _example(parameter: Parameter) -> str:
    annotation = (parameter.annotation or "").strip("\"' ")
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if re.match(r"(Optional\[|.*\|\s*None$)", annotation) and "Tensor" not in annotation:
        return "None"
    if re.match(r"(?i)(typing\.)?(list|tuple|sequence)\b", annotation) and "Tensor" not in annotation:
        return "[]"
    return _example_tensor(parameter.name)


def _example_tensor(name: str) -> str:
    words = set(_WORDS.findall(name.lower()))
    if "mask" in words:
        return "torch.ones(8, 128, dtype=torch.bool)"
    if words & {"ids", "idx", "index", "indices", "target", "targets", "labels", "label"}:
        return "torch.randint(0, 128, (8, 128))"
    return "torch.randn(8, 128)"
