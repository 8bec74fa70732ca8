"""Where a kernel's variables lie in their memories."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cutesmith_evaluator.emulator.ptx import Kernel, Module, Variable

SHARED_BASE = 1024  # the first address of shared memory: a pointer that was never set is caught
LOCAL_BASE = 1 << 20
SHARED_WINDOW = 1 << 56  # of the generic address space, beyond what a process has
LOCAL_WINDOW = 2 << 56
PARAM_WINDOW = 3 << 56
RANK_SHIFT = 24  # an address of shared memory in another block of the cluster has that one's rank plus 1 from here on


@dataclass(frozen=True)
class Layout:
    """Addresses by name, each in its own memory; sizes in bytes."""

    addresses: dict[str, int]
    shared_bytes: int
    dynamic_offset: int
    local_bytes: int


def lay_out(module: Module, kernel: Kernel, global_addresses: dict[str, int]) -> Layout:
    """Shared and local variables in the order of their declarations, the launch's dynamic memory last."""
    variables = (*module.variables, *kernel.variables)
    shared = [variable for variable in variables if variable.space == "shared"]
    addresses = dict(global_addresses) | {each.name: each.offset for each in kernel.parameters}
    static = _place(addresses, (each for each in shared if each.size), SHARED_BASE)
    dynamic = [each for each in shared if not each.size]
    align = max((each.align for each in dynamic), default=1)
    offset = -(-static // align) * align
    addresses |= {each.name: SHARED_BASE + offset for each in dynamic}
    local = _place(addresses, (each for each in variables if each.space == "local"), LOCAL_BASE)
    return Layout(addresses, static, offset, local)


def _place(addresses: dict[str, int], variables: Iterable[Variable], base: int) -> int:
    """The bytes that they take together."""
    end = 0
    for variable in variables:
        start = -(-end // variable.align) * variable.align
        addresses[variable.name] = base + start
        end = start + variable.size
    return end
