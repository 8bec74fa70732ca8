"""A candidate file, loaded: both contracts behind one face.

Ours: module-level `supports`, `explain`, `forward`, `warm_up`. KernelBench's: a class `ModelNew` with the
reference's constructor and forward.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from cutesmith_evaluator.text import MESSAGE_LIMIT
from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.checks_case import WrongElement
from cutesmith_evaluator.worker.checks_state import named_state
from cutesmith_evaluator.worker.failures import TaskError, user_code
from cutesmith_evaluator.worker.placement import place
from cutesmith_evaluator.worker.project import load_source
from cutesmith_evaluator.worker.reference import Reference

_FUNCTIONS = ("supports", "explain", "forward", "warm_up")
_VALUES = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
_numbers = itertools.count()


class LoadedCandidate(Protocol):
    """The four functions of a candidate. All take the reference's module and forward's arguments."""

    @property
    def path(self) -> Path: ...
    def supports(self, module: nn.Module, *inputs: object) -> bool: ...
    def explain(self, module: nn.Module, *inputs: object) -> str | None: ...
    def forward(self, module: nn.Module, *inputs: object) -> object: ...
    def warm_up(self, module: nn.Module, *inputs: object) -> None: ...

    def bound(self, module: nn.Module) -> Callable[..., object]:
        """What is called with the inputs alone: forward without any work of the evaluator's."""
        ...

    def state_names(self, module: nn.Module) -> frozenset[str]:
        """The module's parameters and buffers whose values reach the candidate."""
        ...

    def judged(self, output: Tensor) -> Tensor | None:
        """Which elements of one of its outputs were computed, a bool each; None: all. The others are zero."""
        ...

    def line_of(self, module: nn.Module, inputs: tuple[object, ...], element: WrongElement) -> int | None:
        """The line of the candidate that stores a wrong element of its output; None where that is not known."""
        ...


def load_candidate(path: Path, reference: Reference | None = None) -> LoadedCandidate:
    """Runs the file under a module name of its own, so that every load starts fresh.

    `reference` is needed for `ModelNew`. Raises TaskError when the file cannot be loaded or keeps neither contract.
    """
    with user_code("candidate-import-error", "being imported", path):
        module = load_source(path, f"_candidate_{next(_numbers)}_{path.stem.replace('-', '_')}")
        missing = [name for name in _FUNCTIONS if not callable(getattr(module, name, None))]
        model = getattr(module, "ModelNew", None)
    if not missing:
        return _Functions(path, module)
    if isinstance(model, type) and issubclass(model, nn.Module) and reference is not None:
        return KernelBenchCandidate(path, model, reference)
    message = f"{path.name} lacks {', '.join(missing)} and has no ModelNew(nn.Module); a candidate needs either."
    raise TaskError(Finding("not-a-candidate", message, 1, str(path)))


@dataclass(frozen=True)
class _Functions:
    path: Path
    module: ModuleType

    def supports(self, module: nn.Module, *inputs: object) -> bool:
        return bool(self.module.supports(module, *inputs))

    def explain(self, module: nn.Module, *inputs: object) -> str | None:
        why = self.module.explain(module, *inputs)
        return str.__getitem__(why, slice(0, MESSAGE_LIMIT)) if isinstance(why, str) else None

    def forward(self, module: nn.Module, *inputs: object) -> object:
        return _plain(self.module.forward(module, *inputs))

    def warm_up(self, module: nn.Module, *inputs: object) -> None:
        self.module.warm_up(module, *inputs)

    def bound(self, module: nn.Module) -> Callable[..., object]:
        forward = self.module.forward
        return lambda *inputs: forward(module, *inputs)

    def state_names(self, module: nn.Module) -> frozenset[str]:
        return frozenset(name for name, _ in named_state(module))

    def judged(self, output: Tensor) -> Tensor | None:
        return None

    def line_of(self, module: nn.Module, inputs: tuple[object, ...], element: WrongElement) -> int | None:
        return None


def _plain(result: object) -> object:
    """What a judge may look at: any other object answers questions about itself by code of the candidate's.

    Raises TypeError."""
    for leaf in tree_leaves(result):
        if not issubclass(type(leaf), Tensor) and type(leaf) not in _VALUES:
            raise TypeError(f"forward returned an object of class {type(leaf).__name__[:100]}; return tensors")
    return result


class KernelBenchCandidate:
    """`ModelNew`, built once per reference module with its constructor arguments and its weights."""

    def __init__(self, path: Path, model: type[nn.Module], reference: Reference) -> None:
        self.path = path
        self._model = model
        self._reference = reference
        self._built: WeakKeyDictionary[nn.Module, tuple[_Versions, nn.Module]] = WeakKeyDictionary()

    def supports(self, module: nn.Module, *inputs: object) -> bool:
        return True

    def explain(self, module: nn.Module, *inputs: object) -> str | None:
        return None

    def forward(self, module: nn.Module, *inputs: object) -> object:
        return _plain(self.bound(module)(*inputs))

    def warm_up(self, module: nn.Module, *inputs: object) -> None:
        self.forward(module, *inputs)

    def bound(self, module: nn.Module) -> nn.Module:
        versions = _versions(module)
        known = self._built.get(module)
        if known is None or known[0] != versions:
            known = (versions, self._build(module))
            self._built[module] = known
        return known[1]

    def state_names(self, module: nn.Module) -> frozenset[str]:
        state = module.state_dict()
        return frozenset(state) if self.bound(module).state_dict().keys() == state.keys() else frozenset()

    def judged(self, output: Tensor) -> Tensor | None:
        return None

    def line_of(self, module: nn.Module, inputs: tuple[object, ...], element: WrongElement) -> int | None:
        return None

    def _build(self, module: nn.Module) -> nn.Module:
        built = self._reference.construct(self._model)
        state = module.state_dict()
        same = (
            built.state_dict().keys() == state.keys()
        )  # else KernelBench's rule holds: the same seed, the same weights
        if same and any(type(tensor) not in (Tensor, nn.Parameter) for tensor in state.values()):
            built.load_state_dict(state, assign=True)  # on the emulated device: nothing can be moved there
            return built.train(module.training)
        if same:
            built.load_state_dict(state)
        device = next((tensor.device for tensor in state.values()), None)
        return (place(built, device) if device else built).train(module.training)


_Versions = tuple[tuple[int, int], ...]


def _versions(module: nn.Module) -> _Versions:
    """Changes whenever a weight is replaced or written."""
    return tuple((id(tensor), tensor._version) for tensor in module.state_dict(keep_vars=True).values())
