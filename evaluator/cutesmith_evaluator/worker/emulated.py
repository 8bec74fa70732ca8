"""A candidate on the emulated device, behind the face of any candidate: it takes and gives tensors on the CPU."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch.utils.weak import WeakIdKeyDictionary

from cutesmith_evaluator.emulator.device import Between, Device
from cutesmith_evaluator.emulator.faults import DependentError, EmulationError, OutOfTimeError
from cutesmith_evaluator.emulator.properties import properties_of
from cutesmith_evaluator.emulator.sampling import Budget
from cutesmith_evaluator.types import Finding, Profile
from cutesmith_evaluator.worker.candidate import LoadedCandidate
from cutesmith_evaluator.worker.checks_case import OUT_OF_TIME, WrongElement
from cutesmith_evaluator.worker.cudaless import cuda_without_build
from cutesmith_evaluator.worker.emulated_allocations import Allocations
from cutesmith_evaluator.worker.emulated_cuda import emulated_cuda
from cutesmith_evaluator.worker.emulated_dsl import emulated_compiles
from cutesmith_evaluator.worker.emulated_profile import kernel_counts
from cutesmith_evaluator.worker.emulated_stores import Answer, NotedStores, UnwrittenOutputError, own_line
from cutesmith_evaluator.worker.emulated_tensor import EmulatedMode, EmulatedTensor
from cutesmith_evaluator.worker.failures import TaskError, line_in, summary
from cutesmith_evaluator.worker.inputs import tensors, total_bytes
from cutesmith_evaluator.worker.kernel_names import function_name

NOT_EMULATED = "not-emulated"
_State = tuple[int, ...]


class EmulatedCandidate:
    """Calls of `candidate` run on one emulated device of the arch ("sm_90a").

    Of a large launch only some blocks run, where these are independent of one another; `judged` says of an output
    which elements they have written. `profile`: the counts of the first call. What the emulator finds, and what it does
    not know, is raised as TaskError with the line of the candidate.
    """

    def __init__(self, candidate: LoadedCandidate, arch: str, between: Between = lambda kernel, done: None) -> None:
        properties = properties_of(arch)
        if properties is None:
            raise TaskError(Finding(NOT_EMULATED, f"No device of {arch} is emulated yet; choose sm_80 or sm_90a."))
        self._candidate, self._arch, self._properties = candidate, arch, properties
        self.device = Device(between=between, count_traffic=False)
        self.device.budget = Budget()
        self.profile: Profile | None = None
        self._judged = WeakIdKeyDictionary()
        self._allocations = Allocations(self.device.memory)
        self._modules: WeakKeyDictionary[nn.Module, tuple[_State, nn.Module]] = WeakKeyDictionary()
        module = self.module
        if module is not None and isinstance(getattr(module, "PLAIN", None), tuple):
            plain = (*module.PLAIN, EmulatedTensor)  # these do hold memory that the kernel can read
            setattr(module, "PLAIN", plain)  # noqa: B010 - pyright knows no attribute of a module that was made at run time

    @property
    def path(self) -> Path:
        return self._candidate.path

    @property
    def module(self) -> ModuleType | None:
        """The candidate's own module; None for a `ModelNew`."""
        return getattr(self._candidate, "module", None)

    @property
    def launches(self) -> int:
        """A number that grows with every kernel that runs."""
        return self.device.launched

    def state_names(self, module: nn.Module) -> frozenset[str]:
        return self._candidate.state_names(module)

    def supports(self, module: nn.Module, *inputs: object) -> bool:
        return bool(self._call(self._candidate.supports, module, inputs))

    def explain(self, module: nn.Module, *inputs: object) -> str | None:
        return self._call(self._candidate.explain, module, inputs)

    def forward(self, module: nn.Module, *inputs: object) -> object:
        if self.profile is not None:
            return self._forward(module, inputs)
        self.device.count_traffic = True
        result = self._forward(module, inputs)
        self.device.count_traffic = False
        moved = total_bytes((*inputs, *module.parameters(), *module.buffers(), *tensors(result)))
        counts = self.device.counts.items()
        kernels = tuple(kernel_counts(function_name(name, self.path), each, self.path) for name, each in counts)
        self.profile = Profile(self._arch, moved, kernels)
        return result

    def warm_up(self, module: nn.Module, *inputs: object) -> None:
        self._call(self._candidate.warm_up, module, inputs)

    def bound(self, module: nn.Module) -> Callable[..., object]:
        return lambda *inputs: self.forward(module, *inputs)

    def judged(self, output: Tensor) -> Tensor | None:
        return self._judged.get(output)

    def line_of(self, module: nn.Module, inputs: tuple[object, ...], element: WrongElement) -> int | None:
        """The kernel is run once more, and it is noted which line stores what."""
        return own_line(
            self._stores_of(module, inputs, lambda result, noted: noted.place_of(result, element)), self.path
        )

    def _forward(self, module: nn.Module, inputs: tuple[object, ...]) -> Any:
        try:
            return self._call(self._candidate.forward, module, inputs)
        except TaskError as error:
            if not isinstance(error.__cause__, UnwrittenOutputError):
                raise
            raise TaskError(self._finding(self._explained(error.__cause__, module, inputs))) from error.__cause__

    def _explained(
        self, error: UnwrittenOutputError, module: nn.Module, inputs: tuple[object, ...]
    ) -> UnwrittenOutputError:
        """With the line that should have stored, as far as a second run tells."""
        why = self._stores_of(module, inputs, lambda result, noted: noted.why_unwritten(result, error.output))
        return error if why is None else error.with_reason(*why)

    def _stores_of(
        self, module: nn.Module, inputs: tuple[object, ...], ask: Callable[[object, NotedStores], Answer]
    ) -> Answer | None:
        """`ask` is given the result, and the stores that led to it. None where it cannot be run again."""
        noted = NotedStores(self.device.memory)
        answers: list[Answer] = []
        try:
            with noted:
                self._call(self._candidate.forward, module, inputs, lambda result: answers.append(ask(result, noted)))
        except TaskError:
            return None
        return answers[0]

    def _call(
        self,
        function: Callable[..., Any],
        module: nn.Module,
        inputs: tuple[object, ...],
        look_at: Callable[[object], None] | None = None,
    ) -> Any:
        """`look_at`: takes the result while its tensors are on the device."""
        scratch = os.environ.get("CUTESMITH_SCRATCH")
        with ExitStack() as stack:
            stack.enter_context(emulated_cuda(self._properties))
            stack.enter_context(cuda_without_build())
            compiles = emulated_compiles(self._arch, Path(scratch) if scratch else None, self.device, self._properties)
            stack.enter_context(compiles)
            placed = self._placed(module)
            arguments = tree_map(self._to_device, inputs)
            try:
                result = self._settled(lambda: function(placed, *arguments), look_at or self._look_at)
            except EmulationError as error:
                raise TaskError(self._finding(error)) from error
            except Exception as error:
                if not _wants_cuda(error):
                    raise
                raise TaskError(self._beyond(error)) from error
            return tree_map(lambda value: value.host if isinstance(value, EmulatedTensor) else value, result)

    def _settled(self, call: Callable[[], Any], look_at: Callable[[object], None]) -> Any:
        """The call's result; again, with a kernel in full, where it turns out that all of its blocks are wanted."""
        while True:
            self.device.counts = {}
            try:
                with EmulatedMode(self._allocations):
                    result = call()
                look_at(result)
                return result
            except DependentError as error:
                self.device.whole.add(error.kernel)

    def _to_device(self, value: object) -> object:
        if isinstance(value, Tensor) and not isinstance(value, EmulatedTensor):
            return EmulatedTensor(value, self._allocations)
        return value

    def _placed(self, module: nn.Module) -> nn.Module:
        """The module with its state on the device, in the same memory; made anew when a tensor was replaced."""
        state = [*module.parameters(), *module.buffers()]
        key = (*(id(tensor) for tensor in state), *(tensor.requires_grad for tensor in state), module.training)
        known = self._modules.get(module)
        if known is None or known[0] != key:
            memo: dict[int, Any] = {id(tensor): self._to_device(tensor) for tensor in state}
            known = (key, copy.deepcopy(module, memo))
            self._modules[module] = known
        return known[1]

    def _look_at(self, result: object) -> None:
        """Notes what was computed of the outputs. All of it, unless blocks were left out, or it is a fault."""
        for number, output in enumerate(tensors(result)):
            if not isinstance(output, EmulatedTensor):
                continue
            if (known := self._allocations.judged(output.host)) is not None:
                self._judged[output.host] = known
            elif missing := self._allocations.unwritten(output.host):
                size = output.host.untyped_storage().nbytes()
                words = f"output {number} is returned with {missing} of its {size} bytes never written"
                raise UnwrittenOutputError(words, number)

    def _beyond(self, error: Exception) -> Finding:
        """The candidate goes past `cute.compile` to CUDA itself: nothing is said about it."""
        line = line_in(error, self.path)
        where = f"{self.path.name}:{line}" if line else self.path.name
        message = (
            f"{where} asks for CUDA in a way that is not emulated yet ({_plain(summary(error))}); call what "
            "cute.compile returns, or run it on a machine with a CUDA device."
        )
        return Finding(NOT_EMULATED, message, line, str(self.path), "information")

    def _finding(self, error: EmulationError) -> Finding:
        line = own_line(error.place, self.path)
        where = f"{self.path.name}:{line}" if line else self.path.name
        if error.kind == NOT_EMULATED:
            message = f"{where}: {error.message}; run it on a machine with a CUDA device."
            return Finding(NOT_EMULATED, message, line, str(self.path), "information")
        if isinstance(error, OutOfTimeError):
            return Finding(OUT_OF_TIME, f"{where}: {error.message}.", None, str(self.path), "information")
        kernel = f" (kernel {function_name(error.kernel, self.path)})" if error.kernel else ""
        return Finding(error.kind, f"{where}: {error.message}{kernel}.", line, str(self.path))


def _plain(text: str) -> str:
    """Without the terminal's colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()


def _wants_cuda(error: Exception) -> bool:
    words = ("not compiled with CUDA", "not linked with support for cuda", "No CUDA GPUs", "NVIDIA driver")
    return type(error).__name__ == "DSLCudaRuntimeError" or any(each in str(error) for each in words)
