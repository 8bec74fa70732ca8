"""What a candidate does besides giving a result: launches, PyTorch's own ops, functions it replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs, tensors
from cutesmith_evaluator.worker.integrity import Integrity, integrity
from cutesmith_evaluator.worker.observed import Declared, Observer, declared

Launches = Callable[[], int | None]


@dataclass
class Conduct:
    """Of one candidate's calls. `launches`: how many kernels it has launched so far; None: nobody counts."""

    path: Path
    declared: Declared
    integrity: Integrity
    launches: Launches = lambda: None
    called: int = 0  # calls of forward that gave something

    def watch(self, module: nn.Module) -> None:
        """The module that it is called with must stay as it is, too."""
        self.integrity.watch_module(module)

    def require_integrity(self, doing: str) -> None:
        """Raises TaskError when something the judge uses was replaced; it is put back."""
        finding = self.integrity.finding(doing, str(self.path))
        if finding is not None:
            raise TaskError(finding)

    @contextmanager
    def launching(self, label: str, found: list[Finding]) -> Iterator[list[Tensor]]:
        """Around one call of forward, whose outputs go into the list: they must come of a launch."""
        before, outputs = self.launches(), list[Tensor]()
        yield outputs
        after = self.launches()
        self.called += any(output.numel() for output in outputs)
        if before is None or after is None or not self.declared.launches_always:
            return
        known = {finding.kind for finding in found}
        if after == before and "no-launch" not in known and any(output.numel() for output in outputs):
            message = (
                f"forward on {label} launched no kernel: its result is an older one, or nobody's; launch in every call."
            )
            found.append(Finding("no-launch", message, None, str(self.path)))

    @contextmanager
    def preparing(self, doing: str) -> Iterator[None]:
        """Around what is asked of a candidate before its forward, which is what is timed. Raises TaskError where that
        launches a kernel."""
        before = self.launches()
        yield
        after = self.launches()
        if after is not None and after > (before or 0):
            message = (
                f"{self.path.name} launched a kernel while {doing}: the work belongs into forward, where it is timed."
            )
            raise TaskError(Finding("launches-early", message, None, str(self.path)))

    @contextmanager
    def observing(self, found: list[Finding]) -> Iterator[None]:
        """Around calls whose ops are looked at, where the file has kernels of its own."""
        if not self.declared.has_kernels:
            yield
            return
        observer = Observer(self.path)
        with observer:
            yield
        found += observer.findings(self.declared)

    def final_findings(self) -> list[Finding]:
        """What only shows once all checks have run."""
        if self.declared.has_kernels and self.launches() == 0 and self.called:
            message = f"{self.path.name} launched none of its kernels in any check; a library did all the work."
            return [Finding("no-launch", message, None, str(self.path))]
        return []


def conduct_of(path: Path) -> Conduct:
    """To be made before the candidate is imported."""
    known = integrity()
    known.look_around()
    return Conduct(path, declared(path), known)


def elsewhere(inputs: Inputs) -> Inputs:
    """The inputs at new addresses, with their rows in the opposite order where that is known to be allowed."""
    return tree_map(lambda value: _turned(value) if isinstance(value, Tensor) else value, inputs)


def _turned(tensor: Tensor) -> Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    return made.copy_(tensor.flip(0) if tensor.dim() and tensor.is_floating_point() else tensor)


def may_be_doubled(inputs: Inputs, limit: int) -> bool:
    """Whether no input is expanded, and all together take less than `limit` bytes."""
    found = tensors(inputs)
    sizes = sum(tensor.numel() * tensor.element_size() for tensor in found)
    return sizes <= limit and all(0 not in tensor.stride() or tensor.numel() < 2 for tensor in found)
