"""What `supports` must refuse, so that accepting a kernel breaks no training, no CPU test and no other dtype."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from types import ModuleType

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks_call import guarded
from cutesmith_evaluator.worker.checks_state import generators
from cutesmith_evaluator.worker.inputs import Inputs, tensors, total_bytes
from cutesmith_evaluator.worker.inputs_plan import first_rows
from cutesmith_evaluator.worker.numerics_bits import equal_bits, mark

_ROWS, _COPIED = 64, 1 << 30  # of the inputs, and bytes with the module's state, that are tried in training mode
OTHER_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def kernel_module(candidate: LoadedCandidate) -> ModuleType | None:
    """The module of a candidate of our contract; None for KernelBench's `ModelNew`, which has no guard."""
    return getattr(candidate, "module", None)


def guard_findings(
    candidate: LoadedCandidate, module: nn.Module, inputs: Inputs, device: torch.device
) -> list[Finding]:
    """A finding for each kind of call that belongs to the original code and that `supports` takes or cannot explain."""
    found: list[Finding] = []
    for words, prepared, grad in _refused(module, inputs, device):
        with torch.set_grad_enabled(grad):
            wrong = _refusal_findings(candidate, *prepared, words, device)
            found += wrong if not (wrong and grad) or has_gradients(*prepared) else []
    return found


def has_gradients(module: nn.Module, inputs: Inputs) -> bool:
    """Whether autograd has to do with the module's results: not where nothing that requires gradients is read."""
    try:
        with torch.enable_grad():
            return any(tensor.requires_grad for tensor in tensors(module(*inputs)))
    except Exception:  # noqa: BLE001 - the user's code, perhaps out of memory: the guard is to be strict then
        return True


def other_dtypes(inputs: Inputs) -> Iterator[tuple[torch.dtype, Inputs]]:
    """The inputs in each other floating dtype: a candidate refuses them or is right on them."""
    mine = {tensor.dtype for tensor in tensors(inputs) if tensor.is_floating_point()}
    if mine:
        for dtype in OTHER_DTYPES:
            if dtype not in mine:
                yield dtype, _mapped(lambda tensor, to=dtype: _cast(tensor, to), inputs)


def other_in_training(module: nn.Module, inputs: Inputs, device: torch.device) -> nn.Module | None:
    """The module in training mode, where it draws random numbers, writes its state or gives other values then; None
    where the mode makes no difference, where it fails, and where it is too big to be copied."""
    few = first_rows(inputs, _ROWS)
    if total_bytes((*few, *module.parameters(), *module.buffers())) > _COPIED:
        return None
    trained = copy.deepcopy(module).train()
    before, others = generators(device), list(trained.buffers())
    marks = list(map(mark, others))
    with torch.no_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            wanted, got = tensors(module(*few)), tensors(trained(*few))
        except Exception:  # noqa: BLE001 - the user's code, which may not take so few rows
            return None
        drawn = generators(device) != before
    alike = len(wanted) == len(got) and all(map(equal_bits, wanted, got))
    return None if alike and not drawn and marks == list(map(mark, others)) else trained


def training_findings(
    candidate: LoadedCandidate, trained: nn.Module, inputs: Inputs, device: torch.device
) -> list[Finding]:
    """What is wrong with a `supports` that takes `trained`, a module that computes something else in training mode."""
    with torch.no_grad():
        return _refusal_findings(candidate, trained, inputs, "the module in training mode", device)


def _refused(
    module: nn.Module, inputs: Inputs, device: torch.device
) -> Iterator[tuple[str, tuple[nn.Module, Inputs], bool]]:
    """(what is different, (module, inputs), whether autograd is on)"""
    if device.type != "cpu":
        yield "tensors on the CPU", (copy.deepcopy(module).cpu(), _mapped(_empty_on_cpu, inputs)), False
    if any(tensor.is_floating_point() for tensor in tensors(inputs)):
        yield "inputs that require gradients", (module, _mapped(_with_grad, inputs)), True
    if any(parameter.requires_grad for parameter in module.parameters()):
        yield "parameters that require gradients", (module, inputs), True


def _refusal_findings(
    candidate: LoadedCandidate, module: nn.Module, inputs: Inputs, words: str, device: torch.device
) -> list[Finding]:
    doing = f"asked whether it supports {words}"
    call: Callable[[Callable[..., object]], object] = lambda function: guarded(  # noqa: E731
        lambda: function(module, *inputs), "candidate-raises", doing, candidate.path, device
    )
    if call(candidate.supports):
        message = f"supports is true for {words}; the original code has to run there, so return False."
        return [Finding("supports-too-much", message, None, str(candidate.path))]
    why = call(candidate.explain)
    if isinstance(why, str) and why.strip():
        return []
    message = f"explain gives no reason for {words}, which supports refuses; return the condition that fails, in words."
    return [Finding("explains-nothing", message, None, str(candidate.path))]


def _mapped(change: Callable[[Tensor], Tensor], inputs: Inputs) -> Inputs:
    return tree_map(lambda value: change(value) if isinstance(value, Tensor) else value, inputs)


def _empty_on_cpu(tensor: Tensor) -> Tensor:
    """Never written: the memory of a big one is not taken."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")


def _with_grad(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_() if tensor.is_floating_point() else tensor


def _cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor
