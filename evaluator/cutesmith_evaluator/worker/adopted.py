"""The user's file with both hunks in: its class gives the kernel's bits where the guard holds, else the original's."""

from __future__ import annotations

import copy
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.adopted_compiled import check_compiled
from cutesmith_evaluator.worker.candidate import LoadedCandidate, load_candidate
from cutesmith_evaluator.worker.checks import Outcome
from cutesmith_evaluator.worker.checks_call import guarded
from cutesmith_evaluator.worker.checks_guard import has_gradients, kernel_module
from cutesmith_evaluator.worker.failures import TaskError, user_code
from cutesmith_evaluator.worker.inputs import Inputs, draw, tensors, total_bytes
from cutesmith_evaluator.worker.inputs_plan import first_rows
from cutesmith_evaluator.worker.numerics import is_floating
from cutesmith_evaluator.worker.numerics_bits import equal_bits
from cutesmith_evaluator.worker.project import load_source
from cutesmith_evaluator.worker.reference import Reference

_BIG = 256 << 20  # bytes of inputs that the original code is not run on
TOO_BIG_TO_DRAW = 2 << 30  # bytes of inputs that are not even made on the CPU
_ROWS = 64  # of the inputs that the original code is compared on
_numbers = itertools.count()


class Adoption:
    """The patched class beside the original one, with one kernel module."""

    def __init__(self, reference: Reference, candidate: LoadedCandidate, patched: Path) -> None:
        """Raises TaskError when the patched file cannot be imported with this kernel."""
        kernel = kernel_module(candidate)
        if kernel is None:
            message = f"{candidate.path.name} keeps KernelBench's contract, which cannot be adopted into a file."
            raise TaskError(Finding("not-adoptable", message, None, str(candidate.path)))
        self.reference = reference
        self.candidate = candidate
        self.patched = patched
        self.kernel = kernel
        self.cls = _patched_class(reference, patched, kernel, _kernel_name(patched, candidate.path))

    def module(self, original: nn.Module) -> nn.Module:
        """The original module's copy, as an instance of the patched class: the same state, the other forward."""
        adopted = copy.deepcopy(original)
        adopted.__class__ = self.cls
        return adopted


def check_on_device(
    reference: Reference, candidate: LoadedCandidate, patched: Path, device: torch.device, outcome: Outcome
) -> None:
    """Adds what is wrong with the patched class: the kernel on `device`, the fallback there and on the CPU."""
    try:
        adoption = Adoption(reference, candidate, patched)
        original = reference.build(device)
        inputs = draw(reference, 0, device)
        with torch.no_grad():
            check_kernel_runs(adoption, original, inputs, device, outcome)
        few = first_rows(inputs, _ROWS)
        _check_fallback(adoption, original, few, outcome)
        on_cpu = tree_map(lambda value: value.cpu() if isinstance(value, Tensor) else value, few)
        _check_fallback(adoption, original.cpu(), on_cpu, outcome)
    except TaskError as error:
        outcome.findings.append(error.finding)


def check_on_cpu(reference: Reference, candidate: LoadedCandidate, patched: Path, outcome: Outcome) -> None:
    """Adds what is wrong with the patched class on the CPU, where the original code must run."""
    try:
        adoption = Adoption(reference, candidate, patched)
        outcome.checks.append("patched file: imported")
        if input_bytes(reference) > TOO_BIG_TO_DRAW:
            outcome.checks.append("patched class: not compared with the original on the CPU, the inputs are too big")
            return
        _check_fallback(adoption, reference.build("cpu"), first_rows(reference.inputs(0, "cpu"), _ROWS), outcome)
    except TaskError as error:
        outcome.findings.append(error.finding)


def check_kernel_runs(
    adoption: Adoption, original: nn.Module, inputs: Inputs, device: torch.device, outcome: Outcome
) -> None:
    adopted, file = adoption.module(original), adoption.patched
    wanted = tensors(adoption.candidate.forward(original, *inputs))
    with _counted(adoption.kernel) as calls:
        got = tensors(guarded(lambda: adopted(*inputs), "adopted-raises", "running its class", file, device))
    if not calls:
        _add(outcome, adoption, "did not call the kernel for the task's inputs")
    elif not all(map(equal_bits, got, wanted)):
        _add(outcome, adoption, "gave other values than the kernel for the task's inputs")
    outcome.checks.append("patched class: the kernel's bits")
    del got
    check_compiled(adopted, inputs, wanted, file, device, outcome)


def _check_fallback(adoption: Adoption, original: nn.Module, inputs: Inputs, outcome: Outcome) -> None:
    """The original's bits and gradients with autograd on; on the CPU, and when disabled, without it too."""
    on_cpu = not any(tensor.is_cuda for tensor in tensors(inputs))
    place = "on the CPU" if on_cpu else "on the device"
    if total_bytes(inputs) > _BIG:
        outcome.checks.append(f"patched class: not compared with the original {place}, the inputs are too big")
        return
    if has_gradients(original, tree_map(_with_grad, inputs)):
        _compare(adoption, original, inputs, f"with gradients {place}", True, outcome)
    if on_cpu:
        _compare(adoption, original, inputs, place, False, outcome)
    with _disabled():
        fresh = load_candidate(adoption.candidate.path, adoption.reference)
        disabled = Adoption(adoption.reference, fresh, adoption.patched)
        _compare(disabled, original, inputs, f"{place} with CUTESMITH_DISABLE=1", False, outcome)


def _compare(adoption: Adoption, original: nn.Module, inputs: Inputs, words: str, grad: bool, outcome: Outcome) -> None:
    """The patched class must give the original's bits, as far as these are repeatable, without calling the kernel."""
    adopted = adoption.module(original)
    with torch.set_grad_enabled(grad), _counted(adoption.kernel) as calls:
        wanted = _results(original, inputs, adoption.reference.file, grad)
        again = _results(original, inputs, adoption.reference.file, grad)
        got = _results(adopted, inputs, adoption.patched, grad)
    if calls:
        _add(outcome, adoption, f"called the kernel {words}, where the original code has to run")
    repeatable = [equal_bits(one, other) for one, other in zip(wanted, again, strict=True)]
    same = len(got) == len(wanted) and all(
        equal_bits(mine, theirs) for mine, theirs, fixed in zip(got, wanted, repeatable, strict=True) if fixed
    )
    if not same:
        _add(outcome, adoption, f"gave other {'values or gradients' if grad else 'values'} than the original {words}")
    outcome.checks.append(f"patched class: the original's bits {words}")


def _results(module: nn.Module, inputs: Inputs, file: Path, grad: bool) -> list[Tensor]:
    """The outputs and, with `grad`, the gradients of all floating inputs and parameters."""
    module.zero_grad(set_to_none=True)
    own = tree_map(_with_grad if grad else _detached, inputs)
    device = next((tensor.device for tensor in tensors(own)), torch.device("cpu"))

    def run() -> list[Tensor]:
        outputs = tensors(module(*own))
        rooted = [output for output in outputs if output.requires_grad]
        if rooted:
            torch.autograd.backward(rooted, [torch.ones_like(output) for output in rooted])
        leaves = [*tensors(own), *module.parameters()]
        gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
        return [*(output.detach() for output in outputs), *gradients]

    return guarded(run, "adopted-raises", f"running {type(module).__name__}", file, device)


def _detached(value: object) -> object:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _with_grad(value: object) -> object:
    if not isinstance(value, Tensor) or not is_floating(value):
        return value
    return value.detach().clone().requires_grad_()


def input_bytes(reference: Reference) -> int:
    """Without making them; 0 where only making them would tell."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            return total_bytes(reference.inputs(0, "cpu"))
    except TaskError:
        return 0


def _add(outcome: Outcome, adoption: Adoption, words: str) -> None:
    message = f"{adoption.reference.cls.__qualname__} of {adoption.patched.name}, patched, {words}."
    outcome.findings.append(Finding("adopted-differs", message, None, str(adoption.patched)))


def _kernel_name(patched: Path, candidate: Path) -> str:
    """The module name of the candidate's copy beside the patched file. Raises TaskError without one."""
    source = candidate.read_bytes()
    names = [
        file.stem for file in sorted(patched.parent.glob("*.py")) if file != patched and file.read_bytes() == source
    ]
    if names:
        return names[0]
    message = (
        f"No file beside {patched.name} has the source of {candidate.name}; what was validated would not be adopted."
    )
    raise TaskError(Finding("adopted-kernel-missing", message, None, str(patched)))


def _patched_class(reference: Reference, patched: Path, kernel: ModuleType, name: str) -> type[nn.Module]:
    """The class of the patched file, imported in the original's package with `kernel` under the name it imports."""
    package = sys.modules[reference.cls.__module__].__package__ or ""
    stem = f"{patched.stem}_patched_{next(_numbers)}"
    with _importable(kernel, name, package), user_code("import-error", "being imported", patched):
        module = load_source(patched, f"{package}.{stem}" if package else stem)
    if not any(value is kernel for value in vars(module).values()):
        message = f"{patched.name} does not import {name}, so its class cannot call the kernel."
        raise TaskError(Finding("adopted-kernel-missing", message, None, str(patched)))
    found: object = module
    for part in reference.task.qualname.split("."):
        found = getattr(found, part)
    assert isinstance(found, type)
    return found


@contextmanager
def _importable(kernel: ModuleType, name: str, package: str) -> Iterator[None]:
    """`import name` and `from . import name` give `kernel`, whatever else has this name."""
    names = {name, f"{package}.{name}" if package else name}
    parent = sys.modules.get(package)
    old = {each: sys.modules.get(each) for each in names}
    had, attribute = parent is not None and hasattr(parent, name), getattr(parent, name, None)
    try:
        sys.modules.update(dict.fromkeys(names, kernel))
        if parent is not None:
            setattr(parent, name, kernel)
        yield
    finally:
        for each, module in old.items():
            if module is None:
                sys.modules.pop(each, None)
            else:
                sys.modules[each] = module
        if had:
            setattr(parent, name, attribute)
        elif parent is not None:
            delattr(parent, name)


@contextmanager
def _counted(kernel: ModuleType) -> Iterator[list[str]]:
    """Collects one entry for every call of the kernel's forward."""
    forward: Callable[..., object] = kernel.forward
    calls: list[str] = []

    def counting(*arguments: object) -> object:
        calls.append("forward")
        return forward(*arguments)

    kernel.forward = counting  # type: ignore[attr-defined]
    try:
        yield calls
    finally:
        kernel.forward = forward  # type: ignore[attr-defined]


@contextmanager
def _disabled() -> Iterator[None]:
    old = os.environ.get("CUTESMITH_DISABLE")
    os.environ["CUTESMITH_DISABLE"] = "1"
    try:
        yield
    finally:
        if old is None:
            del os.environ["CUTESMITH_DISABLE"]
        else:
            os.environ["CUTESMITH_DISABLE"] = old
