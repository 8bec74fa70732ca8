"""Whether a candidate's outputs are tensors like eager's: structure, shape, dtype, device, strides, aliasing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from torch import Tensor
from torch.utils._pytree import tree_flatten

from cutesmith_evaluator.types import Finding


def layout_findings(got: object, eager: object, sources: Sequence[Tensor], file: str) -> list[Finding]:
    """Every difference between the outputs' layouts. `sources`: the inputs and the module's state."""
    got_leaves, eager_leaves = tree_flatten(got)[0], tree_flatten(eager)[0]
    if len(got_leaves) != len(eager_leaves) or isinstance(got, Tensor) != isinstance(eager, Tensor):
        message = f"forward returns {_kind(got)}; the module returns {_kind(eager)}."
        return [Finding("wrong-structure", message, None, file)]
    found: list[Finding] = []
    for place, pair in enumerate(zip(got_leaves, eager_leaves, strict=True)):
        found += [
            Finding(kind, f"{name_of(place, len(eager_leaves))} {words}", None, file)
            for kind, words in _leaf(*pair, sources)
        ]
    return found + [
        Finding(
            "aliases-output",
            f"Outputs {one} and {other} share memory; return a tensor of its own for each.",
            None,
            file,
        )
        for one, other in combinations(range(len(eager_leaves)), 2)
        if _shared(got_leaves[one], got_leaves[other]) and not _shared(eager_leaves[one], eager_leaves[other])
    ]


def _shared(one: object, other: object) -> bool:
    return isinstance(one, Tensor) and isinstance(other, Tensor) and share_memory(one, other)


def name_of(place: int, count: int) -> str:
    return "The output" if count == 1 else f"Output {place}"


def share_memory(one: Tensor, other: Tensor) -> bool:
    """Whether their elements lie in overlapping ranges of one storage."""
    if not one.numel() or not other.numel() or one.device != other.device:
        return False
    if one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr():
        return False
    (one_start, one_end), (other_start, other_end) = _range(one), _range(other)
    return one_start < other_end and other_start < one_end


def _leaf(got: object, eager: object, sources: Sequence[Tensor]) -> Iterator[tuple[str, str]]:
    if not isinstance(eager, Tensor):
        if got != eager:
            yield "wrong-structure", f"is {got!r}; the module's is {eager!r}."
        return
    if type(got) is not type(eager) or not isinstance(got, Tensor):
        yield "wrong-structure", f"is a {type(got).__name__}; the module's is a {type(eager).__name__}."
        return
    for kind, attribute in (("wrong-shape", "shape"), ("wrong-dtype", "dtype"), ("wrong-device", "device")):
        if getattr(got, attribute) != getattr(eager, attribute):
            mine, theirs = _words(getattr(got, attribute)), _words(getattr(eager, attribute))
            yield kind, f"has {attribute} {mine}; the module's has {theirs}."
    if got.shape == eager.shape and _strides(got) != _strides(eager):
        yield "wrong-strides", f"has strides {got.stride()}; the module's has {eager.stride()}, another memory format."
    if any(share_memory(got, source) and not share_memory(eager, source) for source in sources):
        yield "aliases-input", "shares memory with an input or the module's state; return a new tensor."


def _strides(tensor: Tensor) -> list[int]:
    """The strides that matter: of dimensions with more than one element."""
    return (
        [stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]
        if tensor.numel()
        else []
    )


def _range(tensor: Tensor) -> tuple[int, int]:
    """First byte and the byte after the last one."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + (last + 1) * tensor.element_size()


def _words(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value).removeprefix("torch.")


def _kind(value: object) -> str:
    if isinstance(value, Tensor):
        return "a tensor"
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{type(value).__name__}"
