"""Wrong modules made of right ones, to see whether checks tell them apart."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

_CALLS = 12  # remembered calls: enough to see that a wrong module differs
_ELEMENTS = 1 << 20  # of one remembered call's inputs


@dataclass(frozen=True)
class Wrong:
    """`change` is what becomes of every tensor that the right module returns."""

    name: str
    change: Callable[[Tensor], Tensor]


def _zeros(result: Tensor) -> Tensor:
    return torch.zeros_like(result)


def _another_shape(result: Tensor) -> Tensor:
    return result.unsqueeze(0)


def _a_bit_off(result: Tensor) -> Tensor:
    if result.dtype == torch.bool:
        return ~result
    return result * 1.03 + 0.01 if result.is_floating_point() else result + 1


def _negative(result: Tensor) -> Tensor:
    return ~result if result.dtype == torch.bool else -result


def _reversed(result: Tensor) -> Tensor:
    return result.flip(-1) if result.dim() else result


def _all_its_mean(result: Tensor) -> Tensor:
    if result.is_floating_point() and result.numel():
        return torch.full_like(result, float(result.double().mean()))
    return torch.full_like(result, int(result.flatten()[0])) if result.numel() else result


WRONGS: tuple[Wrong, ...] = (
    Wrong("one that returns zeros", _zeros),
    Wrong("one whose result has another shape", _another_shape),
    Wrong("one whose result is 3 % and 0.01 off", _a_bit_off),
    Wrong("one whose result has the other sign", _negative),
    Wrong("one whose result is reversed along its last dimension", _reversed),
    Wrong("one that returns its result's mean everywhere", _all_its_mean),
)


def planted(module: nn.Module, wrong: Wrong) -> nn.Module:
    """The module with `wrong` in it; its state and attributes are as they were."""
    right = module.forward

    def forward(*args: object, **kwargs: object) -> object:
        return _changed(right(*args, **kwargs), wrong)

    module.forward = forward
    return module


def _changed(result: object, wrong: Wrong) -> object:
    return tree_map(lambda leaf: wrong.change(leaf) if isinstance(leaf, Tensor) else leaf, result)


@dataclass
class Recorder:
    """Remembers what modules were called with."""

    calls: list[tuple[nn.Module, tuple[object, ...]]] = field(default_factory=list)

    def watched(self, module: nn.Module) -> nn.Module:
        right = module.forward

        def forward(*args: object, **kwargs: object) -> object:
            if len(self.calls) < _CALLS and not kwargs and _is_small(args):
                self.calls.append((_plain(module), args))
            return right(*args, **kwargs)

        module.forward = forward
        return module


def _plain(module: nn.Module) -> nn.Module:
    """A copy as it is at this moment, unwatched."""
    made = copy.copy(module)
    made.__dict__ = {name: value for name, value in vars(module).items() if name != "forward"}
    return copy.deepcopy(made)


def _is_small(args: tuple[object, ...]) -> bool:
    return sum(leaf.numel() for leaf in tree_leaves(args) if isinstance(leaf, Tensor)) <= _ELEMENTS


def distinct(recorder: Recorder, wrong: Wrong) -> bool:
    """Whether the wrong module differs from the right one where it was called, or on other values there: an input of
    zeros may hide what any other shows."""
    return any(_differs(module, args, wrong) for module, args in recorder.calls)


def _differs(module: nn.Module, args: tuple[object, ...], wrong: Wrong) -> bool:
    with torch.no_grad():
        for inputs in (args, tree_map(_redrawn, args)):
            try:
                right = tree_leaves(module(*inputs))
            except Exception:  # noqa: BLE001 - a model's code on values it was not made for
                continue
            if any(_unlike(one, wrong.change(one)) for one in right if isinstance(one, Tensor)):
                return True
    return False


def _redrawn(value: object) -> object:
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    generator = torch.Generator().manual_seed(1)
    return torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value.dtype)


def _unlike(one: Tensor, other: Tensor) -> bool:
    """By more than rounding."""
    if one.shape != other.shape:
        return True
    if not one.is_floating_point():
        return not torch.equal(one, other)
    return not torch.allclose(one.double(), other.double(), rtol=5e-3, atol=1e-6, equal_nan=True)
