"""Kernels from the recipes, as the GPU tests use them: through a worker, and accepted into a file of this process."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import nn

from cutesmith_agent.recipes import Draft, Target, propose
from cutesmith_agent.source.naming import snake_case
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Task
from pipeline import write_accepted
from suite import Case

_numbers = itertools.count()


def drafts_of(worker: Worker, task: Task) -> tuple[Draft, ...]:
    """What the recipes propose for the task on the worker's device; fails with their reasons when that is nothing."""
    inspection = worker.inspect(task)
    assert inspection.graph is not None, inspection.findings
    arch = inspection.environment.arch
    assert arch is not None, "the worker sees no CUDA device"
    proposal = propose(inspection, Target(task.qualname, Path(task.file), arch))
    assert proposal.drafts, proposal.findings
    return proposal.drafts


def write(case: Case, folder: Path) -> Path:
    """The case's file under a name no other has: modules in one process go by their files' names."""
    file = case.write(folder)
    return file.rename(file.with_stem(f"{file.stem}_{next(_numbers)}"))


@dataclass(frozen=True)
class Kernel:
    """A case's class with the recipes' first kernel accepted, next to the original, both on the CUDA device."""

    name: str
    original: nn.Module
    accepted: nn.Module
    module: ModuleType  # the kernel's file
    inputs: tuple[torch.Tensor, ...]  # of the case

    def supports(self, *inputs: torch.Tensor) -> bool:
        """The guard's answer, which must agree with `explain`."""
        answer = self.module.supports(self.accepted, *inputs)
        assert (self.module.explain(self.accepted, *inputs) is None) == answer
        return answer


def accepted_kernel(worker: Worker, case: Case, folder: Path) -> Kernel:
    """Proposes for the case and accepts the first draft, unproved: proving it is what the tests do."""
    file = write(case, folder)
    kernel = f"{snake_case(case.qualname)}_cute"
    draft = drafts_of(worker, Task(str(file), case.qualname))[0]
    copy = write_accepted(file, case.qualname, kernel, draft.source, folder / "accepted")
    module = load(copy.file.with_name(f"{kernel}.py"), kernel)
    plain, patched = load(file, f"plain_{file.stem}"), load(copy.file, f"patched_{file.stem}")
    torch.manual_seed(0)
    original = getattr(plain, case.qualname)(*plain.get_init_inputs()).eval().cuda()
    accepted = getattr(patched, case.qualname)(*patched.get_init_inputs()).eval().cuda()
    randomize(original)
    accepted.requires_grad_(False).load_state_dict(original.state_dict())
    return Kernel(case.name, original, accepted, module, tuple(tensor.cuda() for tensor in plain.get_inputs()))


def randomize(module: nn.Module) -> None:
    """Gives every parameter values that a kernel cannot ignore unnoticed."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, mean=1.0, std=0.5)
        parameter.requires_grad_(False)


def assert_like_eager(kernel: Kernel, *inputs: torch.Tensor) -> None:
    """The accepted module gives what the original gives: shapes, dtypes, strides, and values to a few roundings.

    How precise a kernel is against fp64 is for the worker's validation to say."""
    with torch.no_grad():
        pairs = zip(flat(kernel.accepted(*inputs)), flat(kernel.original(*inputs)), strict=True)
    for ours, eager in pairs:
        assert ours.stride() == eager.stride()
        eps = torch.finfo(eager.dtype).eps
        largest = eager[eager.isfinite()].abs().amax().item() if eager.isfinite().any() else 0.0
        torch.testing.assert_close(ours, eager, rtol=8 * eps, atol=2 * eps * largest, equal_nan=True)


def flat(result: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def load(file: Path, name: str) -> ModuleType:
    """The file as a new module of that name."""
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
