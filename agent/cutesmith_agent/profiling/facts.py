"""All that is known of a kernel when its profile is read."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from cutesmith_evaluator.types import AccessCounts, Graph, Limiter, Profile, Resources, TensorSpec, Timing

SECTOR = 32  # bytes
WIDEST = 16  # bytes that a thread moves at once
_SIZES = {"64": 8, "32": 4, "16": 2, "8": 1, "bool": 1}  # by the end of a dtype's name


@dataclass(frozen=True)
class Facts:
    profile: Profile
    resources: tuple[Resources, ...]
    timing: Timing | None
    graph: Graph
    arch: str
    source: str
    limiter: Limiter | None = None

    @property
    def accesses(self) -> tuple[AccessCounts, ...]:
        return tuple(access for kernel in self.profile.kernels for access in kernel.accesses)

    @property
    def sectors(self) -> int:
        """Of global memory, of all kernels."""
        return sum(kernel.sectors for kernel in self.profile.kernels)

    def used(self) -> tuple[Resources, ...]:
        """The compiler's figures for this arch."""
        return tuple(used for used in self.resources if used.arch == self.arch)

    def rows(self, what: str) -> tuple[int, int] | None:
        """(the length in elements, the bytes) that all rows of what is loaded or stored are multiples of."""
        specs = self._stored() if what.endswith("store") else self._loaded()
        specs = [spec for spec in specs if spec.shape and spec.shape[-1] > 1]
        if not specs:
            return None
        length = math.gcd(*(spec.shape[-1] for spec in specs))
        return length, math.gcd(*(spec.shape[-1] * item_bytes(spec) for spec in specs))

    def line_of(self, kernel: str) -> int | None:
        """The line that the kernel's function begins on. `kernel`: as a compiler or a profiler names it."""
        names = re.finditer(r"^[ \t]*def (\w+)\(", self.source, re.MULTILINE)
        found = [name for name in names if re.search(rf"(^|_){re.escape(name[1])}(_|$)", kernel)]
        if not found:
            return None
        longest = max(found, key=lambda name: len(name[1]))
        return self.source.count("\n", 0, longest.start()) + 1

    def _stored(self) -> list[TensorSpec]:
        produced = {node.name: node.outputs for node in self.graph.nodes}
        return [produced[ref.name][ref.index] for ref in self.graph.outputs if ref.name in produced]

    def _loaded(self) -> list[TensorSpec]:
        return [each.spec for each in self.graph.inputs if each.kind == "argument"]


def item_bytes(spec: TensorSpec) -> int:
    return next((size for end, size in _SIZES.items() if spec.dtype.endswith(end)), 1)
