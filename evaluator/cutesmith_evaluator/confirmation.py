"""What the client and the two processes of a confirmation agree on. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

KIND = "not-confirmed"  # of the finding where the two processes disagree, or nothing can be said

PART = 1 << 18  # elements of an output that have a digest of their own
BIG = 1 << 30  # bytes of inputs from which no second set of tensors is made
PING, REHEARSE, JUDGE = "ping", "rehearse", "judge"  # the methods of the process that judges
TAKE, DRAW, RUN, REPEAT, HAND_OVER, FORGET = "take", "draw", "run", "repeat", "hand-over", "forget"  # of the other one
CAPTURE, REPLAY = "capture", "replay"
STEPS = (PING, REHEARSE, JUDGE, TAKE, DRAW, RUN, REPEAT, CAPTURE, REPLAY, HAND_OVER, FORGET)


@dataclass(frozen=True)
class Call:
    """One call of a candidate, known by its name. Both processes draw what it is given, each for itself, in order.

    `seed`: of get_inputs. `into`: an earlier call whose tensors get the new values, in place. `state_seed`: of new
    values for the module's parameters and buffers, in place; None: they stay.
    """

    name: str
    label: str
    seed: int
    into: str | None = None
    state_seed: int | None = None


@dataclass(frozen=True)
class Given:
    """An output as it was handed over. `path`: a file with its elements in logical order, no gaps between them.

    `blocks`: (first, count) of the elements that are in the file; None: all. `mask`: a file with a byte for each of
    these, 0 where it was not computed; None: all were. `word`: what its process had said of it while the clock ran,
    the `word_of` of `digests`, which it says of each PART of it when it hands it over.
    """

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    path: str
    blocks: tuple[tuple[int, int], ...] | None = None
    mask: str | None = None
    digests: tuple[int, ...] | None = None
    word: int | None = None


@dataclass(frozen=True)
class Answer:
    """A call with all its outputs."""

    call: Call
    outputs: tuple[Given, ...]


ODD = 0x9E3779B97F4A7C15  # 2**64 / golden ratio


def word_of(digests: Iterable[int]) -> int:
    """One signed 64-bit word for all, in this order: a sum weighted by place."""
    total = sum(each * (place * ODD | 1) for place, each in enumerate(digests, 1)) % (1 << 64)
    return total - (1 << 64) if total >> 63 else total


def call_of(values: dict[str, Any]) -> Call:
    return Call(**values)


def answer_of(values: dict[str, Any]) -> Answer:
    """From JSON values."""
    return Answer(call_of(values["call"]), tuple(map(_given, values["outputs"])))


def _given(values: dict[str, Any]) -> Given:
    blocks = values["blocks"]
    return Given(
        **values
        | {
            "shape": tuple(values["shape"]),
            "strides": tuple(values["strides"]),
            "digests": None if values["digests"] is None else tuple(values["digests"]),
            "blocks": None if blocks is None else tuple((first, count) for first, count in blocks),
        }
    )
