"""What can stop an emulated launch: a fault of the kernel, or something that the emulator does not know."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A line of source, as the compiler noted it in the PTX. `opcode`: of an instruction whose line is not known."""

    file: str
    line: int  # 1-based; 0: not known
    opcode: str = ""


@dataclass(frozen=True)
class Culprit:
    """The thread that was caught, and the block it belongs to."""

    block: tuple[int, int, int]
    thread: tuple[int, int, int]

    def __str__(self) -> str:
        return f"thread {self.thread} of block {self.block}"


class EmulationError(Exception):
    """Ends a launch. `kind`: a finding's code; `place`: where in the candidate, None where the PTX does not say."""

    def __init__(self, kind: str, message: str, kernel: str = "", place: Place | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.kernel = kernel
        self.place = place


class FaultError(EmulationError):
    """The kernel does something wrong."""

    def __init__(
        self,
        kind: str,
        message: str,
        kernel: str = "",
        place: Place | None = None,
        culprit: Culprit | None = None,
        address: int | None = None,
    ) -> None:
        super().__init__(kind, message, kernel, place)
        self.culprit = culprit
        self.address = address


class UnsupportedError(EmulationError):
    """The emulator does not know an instruction, or a form of it: nothing is said about the kernel."""

    def __init__(self, message: str, kernel: str = "", place: Place | None = None) -> None:
        super().__init__("not-emulated", message, kernel, place)


class DependentError(EmulationError):
    """A value is wanted that blocks of `kernel` would have given which were left out: it has to run in full."""

    def __init__(self, kernel: str) -> None:
        super().__init__("dependent-blocks", f"blocks of {kernel} depend on one another, or later work on all of them")
        self.kernel = kernel


class OutOfTimeError(EmulationError):
    """The time for emulation is up. `done`: how much of the launch had run."""

    def __init__(self, kernel: str, done: float) -> None:
        super().__init__("out-of-time", f"the time was up when {done:.0%} of a launch had run", kernel)
        self.kernel = kernel
