"""What is refused of a candidate before anything of it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutesmith_agent.estimate import MEMORY, estimate
from cutesmith_agent.guards import static_findings
from cutesmith_evaluator.types import KernelCounts, Profile

KERNEL = "import functools\nimport torch\nfrom torch import nn\n\n" + "".join(
    f"def {name}(module, *inputs):\n    import cutlass\n\n" for name in ("supports", "explain", "forward", "warm_up")
)


def kinds(source: str) -> list[tuple[str, int | None]]:
    found = static_findings(source, Path("/k/a_cute.py"))
    return [(finding.kind, finding.line) for finding in found if finding.severity == "error"]


def test_a_kernel_file_that_keeps_the_contract_passes():
    assert kinds(KERNEL) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def (", [("syntax-error", 1)]),
        ("x = '\0'", [("hidden-text", 1)]),
        ("\ufeff" + KERNEL + "# \u200d\n", []),
        (KERNEL + "# \u202e\n", [("hidden-text", 17)]),
        ("x = " + " + ".join(["1"] * 20_000), [("too-deep", 1)]),
        (KERNEL + "supports = len\n", [("not-a-candidate", 17)]),
        (KERNEL + "for forward in []:\n    pass\n", [("not-a-candidate", 17)]),
        (KERNEL.replace("def explain", "def explained"), [("not-a-candidate", 1)]),
        (KERNEL + "import cutlass.cute as cute\n", [("early-import", 17)]),
        (KERNEL + "from . import sibling\n", [("early-import", 17)]),
        (KERNEL + "try:\n    import numpy\nexcept ImportError:\n    pass\n", [("early-import", 18)]),
        (KERNEL + "class A:\n    import requests\n", [("early-import", 18)]),
        ("from __future__ import annotations\n" + KERNEL, [("future-import", 1)]),
    ],
)
def test_a_breach_is_named_with_its_line(source: str, found: list[tuple[str, int | None]]):
    assert kinds(source) == found


def test_kernelbenchs_contract_has_no_such_rules():
    assert kinds("import triton\nimport torch\n\nclass ModelNew(torch.nn.Module): ...\n") == []


@pytest.mark.parametrize("source", ["x = '\\d'\n" + KERNEL, KERNEL + "if x is 1: pass\n"])
def test_warnings_of_the_parser_are_no_findings(source: str, recwarn: pytest.WarningsRecorder):
    assert kinds(source) == []
    assert not recwarn.list


def test_an_estimate_says_what_it_rests_on():
    guess = estimate(8192 * 4096 * 4 * 2, "sm_90a")
    assert guess is not None
    assert guess.ms == pytest.approx(0.0639, abs=1e-4)
    assert guess.basis == "an estimate: 268.4 MB at 4.2 TB/s (H200, device-to-device copy, measured)"
    assert estimate(1, "sm_75") is None
    assert all(memory.source for memory in MEMORY.values())


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"instructions": 10**6}, "an estimate: 268.4 MB at 4.2 TB/s"),
        ({"instructions": 10**8}, "an estimate: 25.6 billion thread-level instructions, 128 a clock"),
        ({"sectors": 3 * 10**5}, "an estimate: 76.8 million sectors of global memory, 2 a clock"),
        ({"shared_passes": 10**5}, "an estimate: 25.6 million passes of shared memory, 1 a clock"),
    ],
)
def test_counts_of_the_emulated_device_raise_an_estimate_in_proportion_to_the_bytes(counts: dict[str, int], words: str):
    none = {"blocks": 1, "instructions": 0, "global_bytes": 0, "sectors": 0, "shared_passes": 0, "bank_conflicts": 0}
    profile = Profile("sm_90a", 2**20, (KernelCounts("k", **none | counts),))
    guess = estimate(2**28, "sm_90a", profile)
    assert guess is not None
    assert guess.basis.startswith(words)
    assert guess.ms >= 2**28 / 4.2e12 * 1e3
