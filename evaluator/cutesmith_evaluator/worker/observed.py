"""Which of PyTorch's ops a candidate runs, seen below whatever names its code gives them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from cutesmith_evaluator.guards.static import judge
from cutesmith_evaluator.types import Finding

# Ops that allocate, fill, copy or show memory differently; views are known by their schemas.
_HARMLESS = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "new_zeros", "new_ones",
    "new_full", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like", "zero_", "fill_", "copy_", "clone",
    "_to_copy", "contiguous", "detach", "detach_", "lift_fresh", "lift", "_unsafe_view", "record_stream", "resize_",
    "set_", "_local_scalar_dense", "is_same_size", "scalar_tensor", "is_pinned", "_has_compatible_shallow_copy_type",
}  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """What a candidate's source says: that it has kernels, and the lines on which it calls a library."""

    has_kernels: bool
    library_lines: frozenset[int]

    @property
    def launches_always(self) -> bool:
        return self.has_kernels and not self.library_lines


def declared(path: Path) -> Declared:
    """Nothing of a file that cannot be read or parsed: loading it will say so."""
    try:
        judged = judge(path.read_text(encoding="utf-8"), path)
    except (OSError, SyntaxError, ValueError):
        return Declared(False, frozenset())
    return Declared(bool(judged.kernels), judged.library_lines)


@dataclass
class Observer(TorchDispatchMode):
    """Inside, ops that compute and come from `path` are noted: (op, line)."""

    path: Path
    seen: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if isinstance(func, OpOverload) and _computes(func):
            line = _line_in(sys._getframe(1), str(self.path))
            if line is not None:
                self.seen.append((func._schema.name.replace("::", "."), line))
        return func(*args, **(kwargs or {}))

    def findings(self, known: Declared) -> list[Finding]:
        """One for each line that computes and does not say so."""
        by_line = {line: name for name, line in reversed(self.seen) if line not in known.library_lines}
        return [self._finding(name, line) for line, name in sorted(by_line.items())]

    def _finding(self, name: str, line: int) -> Finding:
        message = (
            f"{self.path.name}:{line} computes with {name} on the way to the result, as was seen when it ran; let a "
            "kernel do it, or name the call in LIBRARY_CALLS."
        )
        return Finding("torch-compute", message, line, str(self.path))


def _computes(func: OpOverload) -> bool:
    if func.namespace not in ("aten", "prims", "quantized", "mkldnn", "_c10d_functional"):
        return False  # an op of a library's own, or the candidate's
    returns = [each.alias_info for each in func._schema.returns]
    is_view = any(info is not None and not info.is_write for info in returns)
    return not is_view and func._schema.name.partition("::")[2] not in _HARMLESS and bool(func._schema.returns)


def _line_in(frame: FrameType | None, file: str) -> int | None:
    while frame is not None:
        if frame.f_code.co_filename == file:
            return frame.f_lineno
        frame = frame.f_back
    return None


def has_elements(outputs: list[Tensor]) -> bool:
    return any(output.numel() for output in outputs)
