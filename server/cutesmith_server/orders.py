"""What a job is to do: all that is needed to start it, once more too, after a pause or in a later server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

Kind = Literal["optimize", "check", "revalidate"]


class Priority(IntEnum):
    """Of jobs that wait for one device: the lowest number first."""

    ASKED = 0  # the user's command
    SAVED = 1  # watching: the kernel of a class that was saved is validated again
    IDLE = 2  # watching: a new kernel is made; gives way to what the user asks for


@dataclass(frozen=True)
class Order:
    """`candidates`: absolute paths of the kernels that a check is about, or the one that is validated again.
    `with_model`: a language model goes on from what the recipes found. `allow_lowered`: as in the agent's job."""

    kind: Kind = "optimize"
    candidates: tuple[str, ...] = ()
    with_model: bool = False
    allow_lowered: bool = False
    priority: Priority = Priority.ASKED
