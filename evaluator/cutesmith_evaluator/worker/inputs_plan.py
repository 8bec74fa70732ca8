"""Which inputs a candidate is checked on, in which order."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from cutesmith_evaluator.worker.checks_case import Case
from cutesmith_evaluator.worker.inputs import (
    DISTRIBUTIONS,
    IMPRECISE,
    STRICT,
    Group,
    Inputs,
    cut,
    draw,
    odd_sizes,
    redraw,
    resized,
    tensors,
    total_bytes,
)
from cutesmith_evaluator.worker.reference import Reference

BIG = 2 << 30  # bytes of inputs from which only some distributions are drawn
_SMALL = 64 << 20  # bytes of inputs that a float64 run on the host fits
_TRIED = 64 << 20  # bytes of inputs that a trial run on the CPU may have
_BIG_DISTRIBUTIONS = ("normal", "wide range", "NaN sprinkled", "±Inf sprinkled")


@dataclass(frozen=True)
class Plan:
    """`quick`: for rounds of tuning. `groups`: dimensions to resize; empty: the first and the last one are tried.
    `elements`: the most that an input of another size may have; None: any number."""

    quick: bool = False
    groups: tuple[Group, ...] = ()
    elements: int | None = None


def own_cases(reference: Reference, own: Inputs, plan: Plan) -> Iterator[Case]:
    """The task's inputs. `own`: those with seed 0, left as they are. Raises TaskError."""
    yield Case("the task's inputs, seed 0", own, own=True, strict=True)
    if not plan.quick and total_bytes(own) <= BIG:
        yield Case("the task's inputs, seed 1", draw(reference, 1, _device(own)), own=True, strict=True)


def other_cases(
    module: nn.Module, own: Inputs, plan: Plan, measurable: Callable[[Inputs], bool] = lambda inputs: True
) -> Iterator[Case | str]:
    """Other sizes and distributions, and sentences on those that were left out.

    `own` is overwritten, so a case's tensors change when the next one is taken. `measurable`: whether inputs of such
    shapes fit a float64 run; where they do not, other distributions are drawn in fewer rows.
    """
    yield from _other_sizes(own, plan)
    if not measurable(own):
        own = _fewer_rows(own)
        yield f"of the distributions only {_largest(own):,} elements of the largest input, as float64 does not fit more"
    big = total_bytes(own) > BIG
    if not any(tensor.is_floating_point() for tensor in tensors(own)):
        yield "no other distributions: no input is floating"
        return
    if big and not plan.quick:
        yield f"of the distributions only {', '.join(_BIG_DISTRIBUTIONS)}: the inputs are big"
    yield from _distributions(module, own, _chosen(plan, big))


def groups_of(inputs: Inputs) -> tuple[Group, ...]:
    """The first dimension, then the last one, each of all tensors that have the first tensor's length there."""
    first = next((value for value in inputs if isinstance(value, Tensor) and value.dim()), None)
    if first is None:
        return ()
    heads = tuple((place, 0) for place, value in enumerate(inputs) if _length(value, 0) == first.shape[0])
    tails = tuple(
        (place, value.dim() - 1)
        for place, value in enumerate(inputs)
        if isinstance(value, Tensor) and _length(value, -1) == first.shape[-1]
    )
    return tuple(dict.fromkeys((heads, tails)))


def first_rows(inputs: Inputs, count: int) -> Inputs:
    """Views of the inputs in which the first dimension is at most so long."""
    groups = groups_of(inputs)
    return cut(inputs, tuple(place for place, _ in groups[0]), 0, count) if groups else inputs


def _other_sizes(own: Inputs, plan: Plan) -> Iterator[Case | str]:
    for number, group in enumerate(plan.groups or groups_of(own)):
        position, dimension = group[0]
        first = own[position]
        if not isinstance(first, Tensor):
            continue
        for size in odd_sizes(first.shape[dimension])[: 1 if plan.quick else None]:
            label = f"size {size} in dimension {dimension} of input {position}"
            if plan.elements is not None and _largest(own) * size > plan.elements * first.shape[dimension]:
                yield f"{label}: left out, it is too large"
                continue
            try:
                other = resized(own, group, size, start=7 * size)
            except torch.OutOfMemoryError:
                yield f"{label}: left out, the device's memory does not suffice"
                continue
            yield Case(label, other, strict=True, resized=True)
            del other
        if plan.quick and number == 0:
            return


def _distributions(module: nn.Module, own: Inputs, names: tuple[str, ...]) -> Iterator[Case | str]:
    trial = Trial(module, own)
    for seed, name in enumerate(names, start=2):
        if trial.refuses(name):
            yield f"no {name} inputs: the module itself refuses such values"
            continue
        redraw(own, name, seed)
        yield Case(f"{name} inputs", own, strict=name in STRICT, precise=name not in IMPRECISE)


def _fewer_rows(own: Inputs) -> Inputs:
    """Views of the first rows, so many that the inputs are small, but at least one."""
    rows = next((tensor.shape[0] for tensor in tensors(own) if tensor.dim()), 1)
    while rows > 1 and total_bytes(first_rows(own, rows)) > _SMALL:
        rows //= 2
    return first_rows(own, rows)


def _chosen(plan: Plan, big: bool) -> tuple[str, ...]:
    if plan.quick:
        return ("normal",)
    return _BIG_DISTRIBUTIONS if big else tuple(DISTRIBUTIONS)


class Trial:
    """The module on the CPU with a few rows: there a refused value is an exception, on a GPU it ends the process."""

    def __init__(self, module: nn.Module, own: Inputs) -> None:
        self._inputs: Inputs | None = None
        if not any(tensor.is_cuda for tensor in tensors(own)):
            return  # eager itself will say
        few = first_rows(own, 2)
        if total_bytes(few) <= _TRIED:
            self._inputs = tree_map(lambda value: value.cpu() if isinstance(value, Tensor) else value, few)
            self._module = copy.deepcopy(module).cpu()

    def refuses(self, distribution: str | None = None) -> bool:
        """Whether it raises on inputs of this distribution; None: on those given."""
        if self._inputs is None:
            return False
        if distribution is not None:
            redraw(self._inputs, distribution, seed=0)
        try:
            with torch.no_grad():
                self._module(*self._inputs)
        except Exception as error:  # noqa: BLE001 - the user's code
            return "not implemented for" not in str(error)  # a CPU lacks some half-precision ops
        return False


def _device(inputs: Inputs) -> torch.device:
    return next((tensor.device for tensor in tensors(inputs)), torch.device("cpu"))


def _largest(inputs: Inputs) -> int:
    return max((tensor.numel() for tensor in tensors(inputs)), default=0)


def _length(value: object, dimension: int) -> int | None:
    return value.shape[dimension] if isinstance(value, Tensor) and value.dim() else None
