"""What a kernel must leave alone: its inputs, the module's state, the random generators and PyTorch's settings."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.inputs import Inputs, tensors
from cutesmith_evaluator.worker.numerics_bits import fingerprint

Settings = dict[str, object]


@dataclass(frozen=True)
class State:
    """Fingerprints at one moment; two are compared with `changes`."""

    inputs: tuple[int, ...]
    module: dict[str, tuple[int, int]]  # name → (address, fingerprint)
    generators: tuple[object, ...]
    settings: Settings
    kept: tuple[torch.UntypedStorage, ...]  # the module's memory: freed, it could come back at the same address


def state(module: nn.Module, inputs: Inputs, device: torch.device) -> State:
    return State(
        tuple(fingerprint(tensor) for tensor in tensors(inputs)),
        {name: (tensor.data_ptr(), fingerprint(tensor)) for name, tensor in named_state(module)},
        generators(device),
        settings(device),
        tuple(tensor.untyped_storage() for _, tensor in named_state(module)),
    )


def changes(before: State, after: State, doing: str, file: str) -> list[Finding]:
    """One finding for each kind of thing that `doing` changed."""
    found: list[Finding] = []
    changed = [place for place, pair in enumerate(zip(before.inputs, after.inputs, strict=True)) if pair[0] != pair[1]]
    if changed:
        which = " and ".join(f"input {place}" for place in changed)
        found.append(
            Finding("mutates-input", f"{which} changed during {doing}; a kernel must not write its inputs.", None, file)
        )
    names = [name for name, value in before.module.items() if after.module.get(name) != value]
    if names:
        message = (
            f"{', '.join(names)} of the module changed during {doing}; a kernel must not write the module's state."
        )
        found.append(Finding("mutates-module", message, None, file))
    if before.generators != after.generators:
        message = (
            f"A global random generator advanced during {doing}; use no random numbers, or a generator of your own."
        )
        found.append(Finding("changes-rng", message, None, file))
    return found + settings_changes(before.settings, after.settings, doing, file)


def settings_changes(before: Settings, after: Settings, doing: str, file: str) -> list[Finding]:
    names = [name for name, value in before.items() if after[name] != value]
    if not names:
        return []
    message = f"PyTorch's settings ({', '.join(names)}) changed during {doing}; a kernel must leave them as they are."
    return [Finding("changes-settings", message, None, file)]


def generators(device: torch.device) -> tuple[object, ...]:
    """The states of all global random generators."""
    states: list[object] = [bytes(torch.get_rng_state().numpy()), random.getstate()]
    if device.type == "cuda":
        states.append(bytes(torch.cuda.get_rng_state(device).numpy()))
    if "numpy" in sys.modules:
        name, keys, *rest = sys.modules["numpy"].random.get_state()
        states.append((name, bytes(keys), *rest))
    return tuple(states)


def settings(device: torch.device) -> Settings:
    """PyTorch's process-wide settings that change results or speed."""
    found: Settings = {name: read() for name, (read, _) in _SWITCHES.items()}
    for place, (owner, names) in _FLAGS.items():
        found |= {f"{place}.{name}": _flag(owner, name) for name in names}
    if device.type == "cuda":
        found["current stream"] = torch.cuda.current_stream(device).cuda_stream
    return found


def restore_settings(before: Settings) -> None:
    """Undoes what a candidate changed: the next one is judged under the same settings."""
    for name, (read, write) in _SWITCHES.items():
        if read() != before[name]:
            write(before[name])
    for place, (owner, names) in _FLAGS.items():
        for name in names:
            if _flag(owner, name) != before[f"{place}.{name}"]:
                setattr(owner, name, before[f"{place}.{name}"])


@contextmanager
def without_tf32() -> Iterator[None]:
    """float32 products and convolutions in float32, restored afterwards."""
    switches = _tf32_switches()
    old = [(owner, name, getattr(owner, name)) for owner, name, _ in switches]
    try:
        for owner, name, off in switches:
            setattr(owner, name, off)
        yield
    finally:
        for owner, name, value in old:
            setattr(owner, name, value)


def tf32_possible(device: torch.device) -> bool:
    """Whether eager, as it is set now, may use TF32 there."""
    if device.type != "cuda":
        return False
    return any(getattr(owner, name) != off for owner, name, off in _tf32_switches())


def _tf32_switches() -> list[tuple[object, str, object]]:
    """(owner, attribute, value that means off). The older names refuse to be read once the newer ones were set."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    try:
        if all(isinstance(owner.allow_tf32, bool) for owner in (matmul, cudnn)):
            return [(matmul, "allow_tf32", False), (cudnn, "allow_tf32", False)]
    except RuntimeError:
        pass
    return [(owner, "fp32_precision", "ieee") for owner in (matmul, cudnn.conv, cudnn.rnn)]  # type: ignore[attr-defined]


def named_state(module: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """The module's parameters and buffers, each once."""
    yield from module.named_parameters()
    yield from module.named_buffers()


def _flag(owner: object, name: str) -> object:
    try:
        return getattr(owner, name, None)
    except RuntimeError as error:
        return str(error)


_SWITCHES: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {  # name → (read, write)
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "deterministic algorithms": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    "float32 matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "threads": (torch.get_num_threads, torch.set_num_threads),
}
_FLAGS: dict[str, tuple[object, tuple[str, ...]]] = {
    "torch.backends.cuda.matmul": (
        torch.backends.cuda.matmul,
        ("allow_tf32", "allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"),
    ),
    "torch.backends.cudnn": (torch.backends.cudnn, ("enabled", "benchmark", "deterministic", "allow_tf32")),
}
