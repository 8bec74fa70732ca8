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
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from cutesmith_evaluator.worker.failures import summary
from cutesmith_evaluator.worker.inputs import Inputs, cut, redraw, tensors

_DOUBLE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_LIVE = 6  # float64 copies of inputs and outputs that a chain of ops may hold at once
_SAME = 1e-11  # relative: far above float64's rounding, far below what another batch's statistics change


class NoFloat64Error(Exception):
    """The module cannot be run in float64; `str()` says why."""


class _InDouble(TorchDispatchMode):
    """Runs each op in double precision, whatever narrower type the module asks for in between."""

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
    positions: tuple[int, ...] = ()
    rows: int = 0  # a slice's; 0: whole
    length: int = 0  # of dimension 0

    def __str__(self) -> str:
        if self.host:
            return "on the host, as neither the whole nor slices of it fit the device"
        return f"on the device in slices of {self.rows} of {self.length} rows" if self.rows else "on the device"


class Float64:
    """A double-precision copy of a module on a device."""

    def __init__(self, module: nn.Module, device: torch.device, memory: int | None = None) -> None:
        """`memory`: bytes that one run may take; by default what the device has free (on a CPU: no limit)."""
        self._device = device
        self._memory = memory
        self._module = _double_module(module, device)
        self._plans: dict[tuple[tuple[int, ...], ...], _Plan] = {}

    def where(self, inputs: Inputs) -> str | None:
        """In words how these inputs were run; None before the first run."""
        plan = self._plans.get(_shapes(inputs))
        return str(plan) if plan else None

    def slices(self, inputs: Inputs, outputs: list[Tensor]) -> Iterator[tuple[slice | None, list[Tensor]]]:
        """(rows, the outputs' float64 values in these rows), rows None when the outputs are whole.

        `outputs`: eager's, whose shapes the plan needs. Raises NoFloat64Error.
        """
        plan = self._settled(inputs, outputs)
        if plan.host:
            yield None, [output.to(self._device) for output in self._run_on_host(inputs)]
        elif not plan.rows:
            yield None, self._run(inputs)
        else:
            for start in range(0, plan.length, plan.rows):
                rows = slice(start, min(start + plan.rows, plan.length))
                yield rows, self._run(cut(inputs, plan.positions, rows.start, rows.stop))

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
        need = _LIVE * 8 * sum(tensor.numel() for tensor in (*tensors(inputs), *outputs))
        share = self._free() / max(need, 1)
        if share >= 1:
            return _Plan()
        positions = self._separable(inputs, outputs)
        if not positions:
            return _Plan()
        length = outputs[0].shape[0]
        return _Plan(False, positions, max(1, int(length * share)), length)

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
        positions = () if plan.rows else self._separable(inputs, outputs)
        if not positions:
            return _Plan(host=True)
        length = outputs[0].shape[0]
        return _Plan(False, positions, (length + 1) // 2, length)

    def _free(self) -> float:
        if self._memory is not None:
            return self._memory
        if self._device.type != "cuda":
            return math.inf
        cached = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        return torch.cuda.mem_get_info(self._device)[0] + cached

    def _separable(self, inputs: Inputs, outputs: list[Tensor]) -> tuple[int, ...]:
        """Positions whose slices along dimension 0 give the outputs' slices; empty when there are none."""
        length = outputs[0].shape[0] if outputs[0].dim() else 0
        if length < 2 or any(output.shape[:1] != (length,) for output in outputs):
            return ()
        batched = tuple(place for place, each in enumerate(inputs) if _has_length(each, length))
        for positions in dict.fromkeys((batched, *((place,) for place in batched))):
            if positions and self._splits(inputs, positions, min(length, 4)):
                return positions
        return ()

    def _splits(self, inputs: Inputs, positions: tuple[int, ...], rows: int) -> bool:
        """Tries the given values, and uniform ones in case those hide a dependence between rows."""
        few = cut(inputs, positions, 0, rows)
        drawn = tree_map(lambda value: value.clone() if isinstance(value, Tensor) else value, few)
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
