"""What is known to be otherwise: both sets have to be exactly what is found."""

from __future__ import annotations

# The emulated device says of these that they use something which is not emulated yet.
NOT_EMULATED = frozenset(
    (
        "generic addresses of shared memory",
        "generic addresses of local memory",
        "brx.idx",
        "atom.global.exch.b128",
        "what one thread sees of a barrier's phases",
        "mapa.u64 and getctarank",
    )
)

# Added or corrected since the recording: `record.py --new` on an H200 records these alone. Then they leave this set.
TO_RECORD: frozenset[str] = frozenset()
