"""The archs that the CuTe DSL compiles for; tests/evaluator/test_dsl_adapter.py holds them against its own."""

from __future__ import annotations

ARCHS = (
    *("sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"),
    *("sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a", "sm_103f", "sm_107", "sm_107a", "sm_107f"),
    *("sm_110", "sm_110a", "sm_110f", "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f"),
)
USUAL = ("sm_90a", "sm_80", "sm_100a")  # where there is no device to ask
