"""Results as JSON values: dataclasses become objects, `Ref` becomes `{"ref", "index"}`."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from cutesmith_evaluator.types import Ref


def encode(value: object) -> object:
    if isinstance(value, Ref):
        return {"ref": value.name, "index": value.index}
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    return value
