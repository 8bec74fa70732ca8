"""Whether a call launches what its file declares, by what the driver found in the call's CUDA graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cutesmith_evaluator.confirmation import KIND
from cutesmith_evaluator.guards.static import judge
from cutesmith_evaluator.types import Finding

_LONGEST = 60  # characters of a symbol
_SHOWN = 4


def launch_check(kernels: Sequence[str], file: str) -> tuple[str, Finding | None]:
    """What was launched, in words, and a finding where a file whose kernels make the result launches none of them.

    A library's part may be all that one call needs, so a file that declares one gets none."""
    source = Path(file).read_text(encoding="utf-8")
    judged = judge(source, Path(file))
    own = [kernel.name for kernel in judged.kernels]
    count = sum(any(name in symbol for name in own) for symbol in kernels)
    words = f"a call launches {len(kernels)} kernels, {count} of them of {Path(file).name}"
    if count or not own or judged.library_lines:
        return words, None
    said = ", ".join(_shown(kernels)) or "nothing"
    message = (
        f"{Path(file).name} launches none of its kernels ({', '.join(own)[:200]}) in a process of its own, but {said}, "
        "as CUDA's driver tells; its own kernels must make the result."
    )
    return words, Finding(KIND, message, None, file)


def _shown(kernels: Sequence[str]) -> list[str]:
    found = Counter(symbol[:_LONGEST] for symbol in kernels)
    return [f"{symbol} ({times})" for symbol, times in found.most_common(_SHOWN)]
