"""PTX types as NumPy types, and the words of an opcode taken one by one, so that none goes unread."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from cutesmith_evaluator.emulator.faults import UnsupportedError
from cutesmith_evaluator.emulator.ptx import Instruction

U8, U16, U32, U64 = (np.dtype(f"u{size}") for size in (1, 2, 4, 8))
I32 = np.dtype("i4")
BOOL = np.dtype(bool)

# Half formats travel as their bits.
DTYPES: dict[str, np.dtype] = {
    **{f"{letter}{8 * size}": np.dtype(f"u{size}") for letter in "bu" for size in (1, 2, 4, 8)},
    **{f"s{8 * size}": np.dtype(f"i{size}") for size in (1, 2, 4, 8)},
    "f16": U16,
    "bf16": U16,
    "f16x2": U32,
    "bf16x2": U32,
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "pred": BOOL,
}
INTEGERS = tuple(kind for kind in DTYPES if kind[0] in "us")
BITS = tuple(kind for kind in DTYPES if re.fullmatch(r"b\d+", kind))
HALVES = ("f16", "bf16", "f16x2", "bf16x2")
ROUNDINGS = ("rn", "rz", "rm", "rp")


def bits_dtype(width: int) -> np.dtype:
    """The dtype in which a register of this many bits is kept."""
    return BOOL if width == 1 else np.dtype(f"u{width // 8}")


def unsupported(instruction: Instruction, what: str = "") -> UnsupportedError:
    """The error for an instruction that is not emulated. The machine adds the kernel's name."""
    words = f"the instruction {instruction.opcode} is not emulated yet"
    return UnsupportedError(f"{words} ({what})" if what else words, place=instruction.place)


@contextmanager
def understood(instruction: Instruction | None = None) -> Iterator[None]:
    """What no compiler writes (operands that are missing or of another kind, sizes of zero) ends like what is not
    emulated: nothing is said about the kernel."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        if instruction is None:
            raise UnsupportedError("the PTX is not understood") from error
        raise unsupported(instruction, "with such operands") from error


class Words:
    """The words of an opcode after its name, which is the first `named` of them."""

    def __init__(self, instruction: Instruction, named: int = 1) -> None:
        self.instruction = instruction
        self.name = ".".join(instruction.words[:named])
        self._left = instruction.words[named:]

    def flag(self, word: str) -> bool:
        """Whether the word is there; takes it."""
        if word in self._left:
            self._left.remove(word)
            return True
        return False

    def one_of(self, words: Sequence[str], default: str | None = None) -> str:
        """The first of the words that is there; takes it. Without a default it has to be there."""
        for word in self._left:
            if word in words:
                self._left.remove(word)
                return word
        if default is None:
            raise unsupported(self.instruction)
        return default

    def kind(self, kinds: Sequence[str] = tuple(DTYPES)) -> str:
        """The next type, which has to be one of these."""
        for word in self._left:
            if word in DTYPES:
                if word not in kinds:
                    break
                self._left.remove(word)
                return word
        raise unsupported(self.instruction)

    def space(self, spaces: Sequence[str]) -> str:
        """The memory that is meant; all of the cluster's shared memory is one, by its addresses."""
        found = self.one_of((*spaces, "shared::cta", "shared::cluster"), "generic")
        return found.partition("::")[0]

    def number(self) -> int | None:
        """What is left of a vector's word, "v4" → 4."""
        word = self.one_of(("v2", "v4", "v8"), "")
        return int(word[1:]) if word else None

    def done(self) -> None:
        """Raises UnsupportedError when a word is left that nobody took."""
        if self._left:
            raise unsupported(self.instruction, f".{self._left[0]}")
