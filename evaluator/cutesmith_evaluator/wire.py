"""The one converter between the wire's JSON and the types."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin

from cattrs import Converter
from cattrs.gen import make_dict_structure_fn

from cutesmith_evaluator.text import printable
from cutesmith_evaluator.types import Arg, Finding, Ref


@cache
def converter() -> Converter:
    """Structures worker replies and unstructures anything of `types` into what `json.dumps` takes."""
    made = Converter()
    made.register_unstructure_hook(Ref, _ref_to_json)
    made.register_structure_hook(Ref, lambda value, _: _ref_from_json(value))
    finding = make_dict_structure_fn(Finding, made)
    made.register_structure_hook(Finding, lambda value, kind: _told(finding(value, kind)))
    made.register_unstructure_hook_func(_is_arg, lambda value: _arg_to_json(value))
    made.register_structure_hook_func(_is_arg, lambda value, _: _arg_from_json(value))
    return made


def _told(finding: Finding) -> Finding:
    """Its words are often a candidate's: they end in terminals, in the store and in prompts."""
    return replace(finding, message=printable(finding.message))


def _is_arg(kind: Any) -> bool:
    """`Arg` however far its recursion is resolved: the only union that holds `Ref`."""
    return Ref in get_args(kind) and get_origin(kind) in (Union, UnionType)


def _ref_to_json(ref: Ref) -> dict[str, object]:
    return {"ref": ref.name, "index": ref.index}


def _ref_from_json(value: dict[str, Any]) -> Ref:
    return Ref(value["ref"], value["index"])


def _arg_to_json(value: Arg) -> object:
    if isinstance(value, Ref):
        return _ref_to_json(value)
    return [_arg_to_json(item) for item in value] if isinstance(value, tuple) else value


def _arg_from_json(value: Any) -> Arg:
    if isinstance(value, dict):
        return _ref_from_json(value)
    return tuple(_arg_from_json(item) for item in value) if isinstance(value, list) else value
