"""Instructions for which the lanes of a warp wait for each other."""

from __future__ import annotations

from cutesmith_evaluator.emulator.ptx import Immediate, Instruction, Operand

_NAMED = ("shfl", "vote", "match", "redux", "elect")  # their last operand says which lanes
_ALIGNED = ("mma", "ldmatrix", "stmatrix", "movmatrix", "wgmma", "setmaxnreg")
_ALL_LANES = Immediate(0xFFFFFFFF, "int")


def members_of(instruction: Instruction) -> Operand | None:
    """The mask of the lanes that have to come; None for an instruction of single threads."""
    first, *rest = instruction.words
    if (first in _NAMED and "sync" in rest) or [first, *rest[:2]] == ["bar", "warp", "sync"]:
        return instruction.operands[-1]
    whole = (first in _ALIGNED or rest[:1] == ["cluster"]) and "aligned" in rest
    return _ALL_LANES if whole else None
