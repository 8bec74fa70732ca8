"""What is known to be otherwise: both sets have to be exactly what is found."""

from __future__ import annotations

from corpus.matrix_values import VARIANTS

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
TO_RECORD = frozenset(
    (
        "mul.rn.ftz.f32 below the least normal number",
        "mul.rp.ftz.f32 below the least normal number",
        "fma.rn.f64 of NaNs",
        *(
            f"mma.sync.aligned.m16n8k{depth}.row.col.f16.e4m3.e4m3.f16 {variant}"
            for depth in (16, 32)
            for variant in VARIANTS
        ),
    )
)
