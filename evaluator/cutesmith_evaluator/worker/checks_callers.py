"""Whether a candidate is right however it is called: in other modes of autograd, and on views of larger tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks_call import guarded
from cutesmith_evaluator.worker.checks_case import Case
from cutesmith_evaluator.worker.checks_run import Examiner
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Group, Inputs, cut, distinct, redraw, tensors, total_bytes
from cutesmith_evaluator.worker.inputs_plan import groups_of

Within = Callable[[nn.Module], AbstractContextManager[Any]]
Shift = Callable[[Tensor], int]

_ALIGNMENT = 16  # bytes: the widest access of most kernels
_ROWS, _ELEMENTS = 16, 4096  # of the inputs, at least: a block or two of a pointwise kernel
_WHOLE = {"cuda": 1 << 28, "cpu": 1 << 20}  # bytes of inputs that are tried whole where fewer rows are not supported


def called_otherwise(
    examiner: Examiner, own: Inputs, groups: tuple[Group, ...]
) -> Iterator[tuple[Examiner, Case] | str]:
    """Checks with values of their own on a few rows, each with the examiner for it; or why there are none.

    `own`: inputs of the task's shapes, of any values. `groups`: dimensions that may change; empty: not known.
    """
    few = few_of(examiner, own, groups)
    if few is None:
        yield "other modes of autograd, and views of larger tensors: left out, the inputs are too big"
        return
    for seed, caller in enumerate(_CALLERS, start=101):
        if caller.shift is not None and not any(caller.shift(tensor) for tensor in tensors(few)):
            continue
        with torch.inference_mode(caller.within is _inferring):
            inputs = fresh(few, caller.shift) if caller.shift else fresh(few)
            redraw(inputs, "uniform [0, 1)", seed)  # whatever a module asks of its inputs, these are likely to have
        yield _examiner_within(examiner, caller.within), Case(caller.label, inputs, strict=True)


class _CalledWithin:
    """A candidate of which everything is asked inside a context."""

    def __init__(self, candidate: LoadedCandidate, within: Within) -> None:
        self._candidate, self._within = candidate, within

    def supports(self, module: nn.Module, *inputs: object) -> bool:
        with self._within(module):
            return self._candidate.supports(module, *inputs)

    def explain(self, module: nn.Module, *inputs: object) -> str | None:
        with self._within(module):
            return self._candidate.explain(module, *inputs)

    def warm_up(self, module: nn.Module, *inputs: object) -> None:
        with self._within(module):
            self._candidate.warm_up(module, *inputs)

    def forward(self, module: nn.Module, *inputs: object) -> object:
        with self._within(module):
            return self._candidate.forward(module, *inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._candidate, name)


def _examiner_within(examiner: Examiner, within: Within) -> Examiner:
    candidate: Any = _CalledWithin(examiner.candidate, within)
    return Examiner(examiner.module, examiner.source, candidate, examiner.device, examiner.comparer, examiner.conduct)


def few_of(examiner: Examiner, own: Inputs, groups: tuple[Group, ...]) -> Inputs | None:
    """The fewest of these inputs that are supported; None where that is too much."""
    places = tuple(place for group in groups or groups_of(own)[:1] for place, dimension in group if dimension == 0)
    rows = cut(own, places, 0, _enough_rows(own))
    if _is_supported(examiner, rows):
        return rows
    return own if total_bytes(own) <= _WHOLE[examiner.device.type] else None


def _enough_rows(own: Inputs) -> int:
    largest = max(tensors(own), key=Tensor.numel, default=None)
    in_row = largest.numel() // largest.shape[0] if largest is not None and largest.numel() else _ELEMENTS
    return -(-max(_ROWS, _ELEMENTS // max(in_row, 1)) // _ROWS) * _ROWS


@torch.no_grad()
def _is_supported(examiner: Examiner, inputs: Inputs) -> bool:
    call, doing = examiner.candidate, "asked whether it supports fewer rows"
    try:
        return bool(
            guarded(
                lambda: call.supports(examiner.module, *inputs), "candidate-raises", doing, call.path, examiner.device
            )
        )
    except TaskError:
        return False


@contextmanager
def _without_gradients(module: nn.Module) -> Iterator[None]:
    with torch.no_grad():
        yield


@contextmanager
def _inferring(module: nn.Module) -> Iterator[None]:
    with torch.inference_mode():
        yield


@contextmanager
def _all_frozen(module: nn.Module) -> Iterator[None]:
    """Autograd is on and has nothing to do."""
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        with torch.enable_grad():
            yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


def fresh(inputs: Inputs, shift: Shift = lambda tensor: 0) -> Inputs:
    """The same in new memory, where each tensor starts so many elements behind the beginning."""
    return tree_map(lambda value: _copied(value, shift(value)) if isinstance(value, Tensor) else value, inputs)


def _copied(tensor: Tensor, shift: int) -> Tensor:
    if not _is_plain(tensor):
        return tensor.clone()
    room = torch.empty(_span(tensor) + shift, dtype=tensor.dtype, device=tensor.device)
    made = room.as_strided(tensor.shape, tensor.stride(), shift)
    distinct(made).copy_(distinct(tensor))
    return made


def _is_plain(tensor: Tensor) -> bool:
    """Whether it is of ordinary memory, each element in a place of its own but for expanded ones."""
    return tensor.layout is torch.strided and tensor.numel() > 0 and distinct(tensor).numel() <= _span(tensor)


def _span(tensor: Tensor) -> int:
    """Elements of memory from the first to the last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _aligned(tensor: Tensor) -> int:
    return max(1, _ALIGNMENT // tensor.element_size()) if _is_plain(tensor) else 0


def _unaligned(tensor: Tensor) -> int:
    return int(_is_plain(tensor) and tensor.element_size() < _ALIGNMENT)


@dataclass(frozen=True)
class _Caller:
    """`within`: around all that is asked of the candidate. `shift`: elements that each input starts behind the
    beginning of its memory."""

    label: str
    within: Within
    shift: Shift | None = None


_CALLERS = (
    _Caller("inputs under torch.inference_mode()", _inferring),
    _Caller("inputs with autograd on and every parameter frozen", _all_frozen),
    _Caller("views that start at another multiple of 16 bytes", _without_gradients, _aligned),
    _Caller("views that start at no multiple of 16 bytes", _without_gradients, _unaligned),
)
