"""What the loop needs of an evaluator. `cutesmith_evaluator.client.Worker` is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from cutesmith_evaluator.probing import Probing
from cutesmith_evaluator.types import (
    Claim,
    Compilation,
    Confirmation,
    Environment,
    Inspection,
    Profile,
    Task,
    Timing,
    Validation,
)

Group = tuple[tuple[int, int], ...]  # of (argument position, dimension): an element of Graph.dynamic_dims
OnProgress = Callable[[str], None]


class Evaluator(Protocol):
    """Requests raise WorkerError when no answer came. `renew` ends the process that had candidates, the next request
    gets another, and `close` ends all. `expect_confirmation`: one is likely to be asked for soon."""

    def hello(self) -> Environment: ...

    def inspect(self, task: Task, *, on_progress: OnProgress | None = None) -> Inspection: ...

    def probe(
        self, task: Task, checks: Path | None = None, *, deadline_s: float = ..., on_progress: OnProgress | None = None
    ) -> Probing: ...

    def compile(
        self, task: Task, candidate: Path, archs: Sequence[str], *, on_progress: OnProgress | None = None
    ) -> Compilation: ...

    def validate(
        self,
        task: Task,
        candidate: Path,
        *,
        patched: Path | None = None,
        quick: bool = False,
        device: str = "auto",
        arch: str | None = None,
        time_s: float | None = None,
        dynamic_dims: Sequence[Group] = (),
        deadline_s: float = ...,
        on_progress: OnProgress | None = None,
    ) -> Validation: ...

    def time(
        self,
        task: Task,
        candidate: Path,
        *,
        arms: Sequence[str] = ("candidate", "eager", "compile"),
        patched: Path | None = None,
        quick: bool = False,
        deadline_s: float = ...,
        on_progress: OnProgress | None = None,
    ) -> Timing: ...

    def confirm(
        self,
        task: Task,
        candidate: Path,
        claim: Claim,
        *,
        device: str,
        arch: str | None = None,
        dynamic_dims: Sequence[Group] = (),
        deadline_s: float = ...,
        on_progress: OnProgress = ...,
    ) -> Confirmation: ...

    def profile(
        self, task: Task, candidate: Path, *, deadline_s: float = ..., on_progress: OnProgress | None = None
    ) -> Profile: ...

    def expect_confirmation(self) -> None: ...

    def renew(self) -> None: ...

    def close(self) -> None: ...
