"""The module in float64: what every output is measured against.

It runs on the device in one go where that fits; else slice by slice along dimension 0 where the function is separable
(tried, in float64, on a few rows); else on the host.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from cutesmith_evaluator.worker.failures import summary
from cutesmith_evaluator.worker.inputs import Inputs, cut, redraw, tensors
from cutesmith_evaluator.worker.memory import free_memory
from cutesmith_evaluator.worker.modes import Mode, kept_from_dynamo

_DOUBLE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_LIVE = 6  # float64 copies of inputs and outputs that a chain of ops may hold at once
_TRIED_ROWS = (7, 11)  # odd, so that what goes by pairs or by a power of two of rows does not split
_SAME = 1e-11  # relative: far above float64's rounding, far below what another batch's statistics change


class NoFloat64Error(Exception):
    """The module cannot be run in float64; `str()` says why."""


class NoRoomError(Exception):
    """Inputs of these shapes fit neither the device nor the host in float64."""


class _InDouble(Mode):
    """Runs each op in double precision, whatever narrower type the module asks for in between."""

    @kept_from_dynamo
    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        args = tree_map(_doubled, args)
        if func in (torch.ops.aten._softmax.default, torch.ops.aten._log_softmax.default):
            args = (*args[:2], False)  # no half_to_float: nothing is half any more
        return func(*args, **tree_map(_doubled, kwargs or {}))


def _doubled(value: object) -> object:
    if isinstance(value, torch.dtype):
        return _DOUBLE.get(value, value)
    if isinstance(value, Tensor) and value.dtype in _DOUBLE:
        return value.to(_DOUBLE[value.dtype])
    return value


@dataclass(frozen=True)
class _Plan:
    """How to run one set of input shapes. `positions`: the arguments that are sliced along dimension 0."""

    host: bool = False
    fits: bool = True
    positions: tuple[int, ...] = ()
    rows: int = 0  # a slice's; 0: whole
    length: int = 0  # of dimension 0

    def __str__(self) -> str:
        if not self.fits:
            return "none at the task's own sizes, for which neither the device nor the host has the memory"
        if self.host:
            return "on the host, as neither the whole nor slices of it fit the device"
        return f"on the device in slices of {self.rows} of {self.length} rows" if self.rows else "on the device"


class Float64:
    """A double-precision copy of a module on a device."""

    def __init__(
        self, module: nn.Module, device: torch.device, memory: int | None = None, host: int | None = None
    ) -> None:
        """`memory`: bytes that one run may take; by default what the device has free (on a CPU: no limit).
        `host`: bytes that a run on the host may take; by default what is free there."""
        self._device = device
        self._memory = memory
        self._host = host
        self._module = _double_module(module, device)
        self._plans: dict[tuple[tuple[int, ...], ...], _Plan] = {}

    def where(self, inputs: Inputs) -> str | None:
        """In words how these inputs were run; None before the first run."""
        plan = self._plans.get(_shapes(inputs))
        return str(plan) if plan else None

    def slices(self, inputs: Inputs, outputs: list[Tensor]) -> Iterator[tuple[slice | None, list[Tensor]]]:
        """(rows, the outputs' float64 values in these rows), rows None when the outputs are whole.

        `outputs`: eager's, whose shapes the plan needs. Raises NoFloat64Error, NoRoomError.
        """
        plan = self._settled(inputs, outputs)
        if plan.host:
            self._require_room(inputs, outputs)
            yield None, [output.to(self._device) for output in self._run_on_host(inputs)]
        elif not plan.rows:
            yield None, self._run(inputs)
        else:
            for start in range(0, plan.length, plan.rows):
                rows = slice(start, min(start + plan.rows, plan.length))
                yield rows, self._run(cut(inputs, plan.positions, rows.start, rows.stop))

    def distrust_slices(self, inputs: Inputs) -> bool:
        """Runs such inputs on the host from now on, where they were run in slices; False where they were not."""
        plan = self._plans.get(_shapes(inputs))
        if plan is None or not plan.rows:
            return False
        self._plans[_shapes(inputs)] = _Plan(host=True)
        return True

    def has_room(self, inputs: Inputs) -> bool:
        """False for inputs of shapes that NoRoomError was raised for."""
        plan = self._plans.get(_shapes(inputs))
        return plan is None or plan.fits

    def _require_room(self, inputs: Inputs, outputs: list[Tensor]) -> None:
        """Raises NoRoomError where the host's memory, or the device's for the result, is too small."""
        room = free_memory() if self._host is None else self._host
        on_device = 8 * sum(output.numel() for output in outputs)
        if _need(inputs, outputs) > room or (self._device.type == "cuda" and on_device > self._free()):
            self._plans[_shapes(inputs)] = _Plan(host=True, fits=False)
            raise NoRoomError

    def _settled(self, inputs: Inputs, outputs: list[Tensor]) -> _Plan:
        """The plan for inputs of these shapes; a new one is tried and made smaller until it fits."""
        key = _shapes(inputs)
        if key not in self._plans:
            plan = self._first_plan(inputs, outputs)
            while not plan.host and not self._fits(plan, inputs):
                plan = self._smaller(plan, inputs, outputs)
            self._plans[key] = plan
        return self._plans[key]

    def _first_plan(self, inputs: Inputs, outputs: list[Tensor]) -> _Plan:
        share = self._free() / max(_need(inputs, outputs), 1)
        if share >= 1:
            return _Plan()
        length = outputs[0].shape[0] if outputs[0].dim() else 0
        rows = max(1, int(length * share))
        positions = self._separable(inputs, outputs, rows)
        if positions:
            return _Plan(positions=positions, rows=rows, length=length)
        return _Plan() if self._memory is None else _Plan(host=True)  # the estimate is a generous one: it is tried

    def _fits(self, plan: _Plan, inputs: Inputs) -> bool:
        try:
            self._run(cut(inputs, plan.positions, 0, plan.rows) if plan.rows else inputs)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return False
        return True

    def _smaller(self, plan: _Plan, inputs: Inputs, outputs: list[Tensor]) -> _Plan:
        if plan.rows > 1:
            return replace(plan, rows=plan.rows // 2)
        length = outputs[0].shape[0] if outputs[0].dim() else 0
        positions = () if plan.rows else self._separable(inputs, outputs, length)
        return _Plan(positions=positions, rows=(length + 1) // 2, length=length) if positions else _Plan(host=True)

    def _free(self) -> float:
        if self._memory is not None:
            return self._memory
        if self._device.type != "cuda":
            return math.inf
        cached = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        return torch.cuda.mem_get_info(self._device)[0] + cached

    def _separable(self, inputs: Inputs, outputs: list[Tensor], fitting: int) -> tuple[int, ...]:
        """Positions whose slices along dimension 0 give the outputs' slices; empty when there are none.

        `fitting`: rows that the memory suffices for.
        """
        length = outputs[0].shape[0] if outputs[0].dim() else 0
        if length < 2 or any(output.shape[:1] != (length,) for output in outputs):
            return ()
        batched = tuple(place for place, each in enumerate(inputs) if _has_length(each, length))
        numbers = dict.fromkeys(min(length, max(2, fitting), rows) for rows in _TRIED_ROWS)
        for positions in dict.fromkeys((batched, *((place,) for place in batched))):
            if positions and all(self._splits(inputs, positions, rows) for rows in numbers):
                return positions
        return ()

    def _splits(self, inputs: Inputs, positions: tuple[int, ...], rows: int) -> bool:
        """Tries the given values, and uniform ones in case those hide a dependence between rows."""
        few = cut(inputs, positions, 0, rows)
        drawn = tuple(
            each.clone() if place in positions and isinstance(each, Tensor) else each for place, each in enumerate(few)
        )
        redraw(tuple(drawn[place] for place in positions), "uniform [0, 1)", seed=1)
        return all(self._same_in_halves(values, positions, rows) for values in (few, drawn))

    def _same_in_halves(self, values: Inputs, positions: tuple[int, ...], rows: int) -> bool:
        middle = rows // 2
        try:
            whole = self._run(values)
            upper = self._run(cut(values, positions, 0, middle))
            lower = self._run(cut(values, positions, middle, rows))
        except (NoFloat64Error, torch.OutOfMemoryError):  # the module does not take such a slice
            return False
        return all(map(_joins, upper, lower, whole))

    def _run(self, inputs: Inputs) -> list[Tensor]:
        try:
            with torch.no_grad(), _InDouble():
                return tensors(tree_map(_doubled, self._module(*tree_map(_doubled, inputs))))
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # the user's code, on types that it may not know
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)  # a device fault is nobody's to swallow
            raise NoFloat64Error(summary(error)) from error

    def _run_on_host(self, inputs: Inputs) -> list[Tensor]:
        moved = tree_map(lambda value: value.cpu() if isinstance(value, Tensor) else value, inputs)
        self._module.cpu()
        try:
            return self._run(moved)
        finally:
            self._module.to(self._device)


def _need(inputs: Inputs, outputs: list[Tensor]) -> int:
    """Bytes that one run in float64 may take."""
    return _LIVE * 8 * sum(tensor.numel() for tensor in (*tensors(inputs), *outputs))


def _double_module(module: nn.Module, device: torch.device) -> nn.Module:
    try:
        return copy.deepcopy(module).double().to(device)
    except Exception as error:  # a module of the user's may refuse to be copied
        raise NoFloat64Error(summary(error)) from error


def _shapes(inputs: Inputs) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(tensor.shape) for tensor in tensors(inputs))


def _has_length(value: object, length: int) -> bool:
    return isinstance(value, Tensor) and value.dim() > 0 and value.shape[0] == length


def _joins(upper: Tensor, lower: Tensor, whole: Tensor) -> bool:
    """True where the two parts, one above the other, are the whole up to float64's rounding."""
    if not (upper.dim() == lower.dim() == whole.dim() > 0) or upper.shape[1:] != lower.shape[1:]:
        return False
    joined = torch.cat((upper, lower))
    if joined.shape != whole.shape or not (whole.is_floating_point() or whole.is_complex()):
        return torch.equal(joined, whole)
    largest = float(whole.abs().nan_to_num(0.0, 0.0, 0.0).max()) if whole.numel() else 0.0
    return torch.allclose(joined, whole, rtol=_SAME, atol=_SAME * largest, equal_nan=True)
