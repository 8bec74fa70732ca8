"""What is said of a kernel's counts and measurements: its limiter, its place under the roofline, hints with lines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.arithmetic import least, operations
from cutesmith_agent.profiling.analysis import analysed
from cutesmith_agent.refine.profile import figures
from cutesmith_evaluator.types import (
    AccessCounts,
    Arm,
    Candidate,
    Graph,
    GraphInput,
    KernelCounts,
    KernelMeasures,
    Node,
    Profile,
    Ref,
    Resources,
    TensorSpec,
    Timing,
)

ROWS, COLUMNS = 8192, 4096
SPEC = TensorSpec((ROWS, COLUMNS), "float32", (COLUMNS, 1))
BYTES = 2 * 4 * ROWS * COLUMNS
GRAPH = Graph(
    (GraphInput("x", "argument", SPEC, 0),),
    (Node("y", "aten.relu.default", (Ref("x"),), {}, (SPEC,)),),
    (Ref("y"),), False, (), (), "pointwise", ROWS * COLUMNS, BYTES,
)  # fmt: skip
SOURCE = "import torch\n\n\ndef helper():\n    pass\n\n\nclass K:\n    def relu_kernel(self):\n        pass\n"


def access(what: Any, line: int | None, width: int, *, times: float = 1.0, conflicts: int = 0) -> AccessCounts:
    """Of all of the task's elements; `times` as many sectors as they fill."""
    moved = BYTES // 2
    sectors = 0 if what.startswith("shared") else round(times * moved / 32)
    return AccessCounts(what, line, width, moved // width // 32, moved, sectors, conflicts)


def counts(*accesses: AccessCounts, **more: Any) -> Profile:
    sectors = sum(each.sectors for each in accesses)
    moved = sum(each.bytes for each in accesses if not each.what.startswith("shared"))
    kernel = KernelCounts("relu_kernel_0", 32768, 10**8, moved, sectors, 0, 0, 2**23, accesses)
    return Profile("sm_90a", BYTES, (replace(kernel, **more),))


def told(profile: Profile | None, **more: Any) -> Profile:
    candidate = Candidate("0" * 12, "llm", "time", True, profile=profile, **more)
    found = analysed(candidate, GRAPH, "sm_90a", SOURCE).profile
    assert found is not None
    return found


def timed(ms: float) -> Timing:
    fraction = BYTES / ms / 1e6 / 4200
    return Timing("NVIDIA H200", (Arm("candidate", ms, ms, ms, 99),), 4200.0, BYTES, fraction, 0.01)


WIDE = (access("global load", 20, 16), access("global store", 24, 16))


def test_narrow_stores_are_named_with_their_line_and_what_is_possible():
    found = told(counts(access("global load", 20, 16), access("global store", 24, 4)))
    assert [(hint.line, hint.message) for hint in found.hints] == [
        (24, "Stores are 4 bytes wide; 16 possible: rows are 4096 long.")
    ]


@pytest.mark.parametrize(("columns", "width"), [(4096, 16), (4098, 8), (4097, 4)])
def test_no_wider_access_is_asked_for_than_rows_allow(columns: int, width: int):
    spec = TensorSpec((ROWS, columns), "float32", (columns, 1))
    graph = replace(
        GRAPH, inputs=(GraphInput("x", "argument", spec, 0),), nodes=(replace(GRAPH.nodes[0], outputs=(spec,)),)
    )
    for width_now in (4, 8, 16):
        profile = counts(access("global store", 24, width_now))
        candidate = Candidate("0" * 12, "llm", "time", True, profile=profile)
        found = analysed(candidate, graph, "sm_90a", SOURCE).profile
        assert found is not None
        assert [hint.message for hint in found.hints if "possible" in hint.message] == (
            [f"Stores are {width_now} bytes wide; {width} possible: rows are {columns} long."]
            if width_now < width
            else []
        )


def test_scattered_loads_come_before_narrow_stores():
    found = told(counts(access("global load", 20, 4, times=8), access("global store", 24, 4)))
    assert [hint.line for hint in found.hints] == [20, 24]
    assert "touch 8.0 times the bytes that they use" in found.hints[0].message
    assert found.hints[0].gain > found.hints[1].gain


def test_bank_conflicts_are_named():
    conflicted = access("shared load", 31, 4, conflicts=31 * (BYTES // 2 // 4 // 32))
    found = told(counts(*WIDE, conflicted, shared_passes=2**25, bank_conflicts=2**24))
    assert found.limiter == "shared memory"
    assert found.hints[0].line == 31
    assert "take 32.0 passes for their bank conflicts" in found.hints[0].message


def test_bytes_that_move_twice_are_named_at_the_heaviest_load():
    found = told(counts(*WIDE, access("global load", 22, 16)))
    (hint,) = found.hints
    assert hint.line == 20
    assert "1.5 times the fewest bytes" in hint.message


def test_spills_and_registers_point_at_the_kernel():
    used = (Resources("kernel_cutlass_relu_kernel_tensorptr_0", "sm_90a", 168, 0, 64),)
    found = told(counts(*WIDE), resources=used, timing=timed(0.4))
    assert found.limiter == "latency"
    assert [hint.line for hint in found.hints] == [9, 9]
    assert "spills 64 bytes" in found.hints[0].message
    assert "leaves 384 of 2048 threads" in found.hints[1].message


def test_a_kernel_at_the_roofline_has_no_hints():
    found = told(counts(*WIDE), timing=timed(0.064))
    assert found.limiter == "memory"
    assert found.hints == ()
    assert found.roofline is not None
    assert found.roofline.reached == pytest.approx(0.999, abs=0.002)
    assert found.roofline.intensity == pytest.approx(1 / 8)


def test_the_roofline_is_an_estimate_where_nothing_was_timed():
    found = told(counts(*WIDE)).roofline
    assert found is not None
    assert found.reached is None
    assert found.basis == "the bandwidth of H200 (device-to-device copy, measured)"
    assert found.floor_ms == pytest.approx(BYTES / 4.2e9)


def product(dtype: str) -> Graph:
    """4096 × 4096 × 4096."""
    square = TensorSpec((4096, 4096), dtype, (4096, 1))
    inputs = tuple(GraphInput(name, "argument", square, place) for place, name in enumerate("ab"))
    nodes = (Node("y", "aten.mm.default", (Ref("a"), Ref("b")), {}, (square,)),)
    size = 3 * 4096**2 * (4 if dtype == "float32" else 2)
    return Graph(inputs, nodes, (Ref("y"),), False, (), (), "matmul", 2 * 4096**3, size)


@pytest.mark.parametrize(("dtype", "products"), [("float32", 3), ("float16", 1)])
def test_products_are_held_against_tensor_cores(dtype: str, products: int):
    graph = product(dtype)
    tensor_cores_ms = products * graph.flops / (132 * 1.98e9 * 4096) * 1e3
    found = analysed(Candidate("0" * 12, "llm", "time", True), graph, "sm_90a", SOURCE).profile
    assert found is not None
    assert found.roofline is not None
    assert found.roofline.floor_ms == pytest.approx(tensor_cores_ms)
    assert "tensor cores" in found.roofline.basis
    guess = least(graph, "sm_90a")
    assert guess is not None
    assert guess.ms == pytest.approx(tensor_cores_ms)
    assert "137.4 billion operations" in guess.basis


def test_a_convolution_that_is_only_averaged_is_not_held_against_a_kernel():
    whole, mean = TensorSpec((64, 64, 8, 8), "float32", (4096, 64, 8, 1)), TensorSpec((64, 64), "float32", (64, 1))
    weight = TensorSpec((64, 64, 3, 3), "float32", (576, 9, 3, 1))
    each = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
    nodes = (
        Node("c", "aten.convolution.default", (Ref("x"), Ref("w"), None, *each), {}, (whole,)),
        Node("r", "aten.relu.default", (Ref("c"),), {}, (whole,)),
        Node("y", "aten.mean.dim", (Ref("c"), (2, 3)), {}, (mean,)),
    )
    inputs = (GraphInput("x", "argument", whole, 0), GraphInput("w", "parameter", weight, path="w"))
    graph = Graph(inputs, (nodes[0], nodes[2]), (Ref("y"),), False, (), (), "conv", 2 * 64**3 * 576 + 64**3, 1 << 20)
    rectified = replace(graph, nodes=(*nodes[:2], replace(nodes[2], args=(Ref("r"), (2, 3)))))
    assert operations(graph) == 64**3
    assert operations(rectified) == graph.flops


def test_operations_without_a_namespace_have_a_roofline():
    graph = replace(GRAPH, category="mixed", nodes=(replace(GRAPH.nodes[0], op="getitem"), *product("float32").nodes))
    assert analysed(Candidate("0" * 12, "llm", "time", True), graph, "sm_90a", SOURCE).profile is not None


def test_without_any_tool_little_is_said():
    found = told(None)
    assert (found.limiter, found.hints, found.kernels) == (None, (), ())


MEASURES = KernelMeasures(
    "relu_kernel_0", 1, 130.0, 8192, 256, 2.7e8, 0.4, 0.3, 0.2, 0.1, 0.3, "registers", 128, 0, 4.0, 16.0, 0.0, 0.0,
    (("global memory", 9.0),),
)  # fmt: skip


def test_nsight_computes_figures_decide_where_they_are():
    found = told(Profile("sm_90a", 0, (), (MEASURES,)), timing=timed(0.13))
    assert found.limiter == "latency"
    assert [hint.line for hint in found.hints] == [9] * len(found.hints)
    messages = " ".join(hint.message for hint in found.hints)
    assert "9.0 warps wait for global memory" in messages
    assert "keeps 30% of the warps busy; registers limit them" in messages
    assert "touch 4 sectors, 4 bytes a thread; 16 may be possible" in messages


@pytest.mark.parametrize(
    ("share", "limiter"),
    [({"dram_share": 0.9}, "memory"), ({"l1_share": 0.95}, "caches"), ({"sm_share": 0.8}, "instructions")],
)
def test_what_is_busiest_limits(share: dict[str, float], limiter: str):
    assert told(Profile("sm_90a", 0, (), (replace(MEASURES, **share),))).limiter == limiter


def test_few_blocks_are_named():
    found = told(Profile("sm_90a", 0, (), (replace(MEASURES, blocks=33),)))
    assert any("33 blocks for 132 multiprocessors" in hint.message for hint in found.hints)


numbers = st.integers(0, 10**9)
accesses = st.builds(
    AccessCounts,
    st.sampled_from(["global load", "global store", "atomic", "shared load", "shared store"]),
    st.none() | st.integers(1, 99), st.sampled_from([1, 2, 4, 8, 16]), numbers, numbers, numbers, numbers,
)  # fmt: skip
kernels = st.builds(
    KernelCounts, st.text(max_size=8), numbers, numbers, numbers, numbers, numbers, numbers, numbers,
    st.lists(accesses, max_size=16).map(tuple),
)  # fmt: skip


@given(st.lists(kernels, max_size=3).map(tuple), numbers, st.sampled_from(["sm_90a", "sm_75"]))
def test_any_counts_give_at_most_five_hints_best_first(found: tuple[KernelCounts, ...], moved: int, arch: str):
    candidate = Candidate("0" * 12, "llm", "validate", True, profile=Profile(arch, moved, found))
    profile = analysed(candidate, GRAPH, arch, SOURCE).profile
    assert profile is not None
    gains = [hint.gain for hint in profile.hints]
    assert len(gains) <= 5
    assert gains == sorted(gains, reverse=True)
    assert len({hint.message for hint in profile.hints}) == len(gains)


def test_the_model_is_told_the_lines():
    candidate = Candidate("0" * 12, "llm", "time", True, timing=timed(0.13))
    profile = replace(counts(access("global load", 20, 16), access("global store", 24, 4)), measured=(MEASURES,))
    text = figures(analysed(replace(candidate, profile=profile), GRAPH, "sm_90a", SOURCE), GRAPH, "sm_90a")
    assert "- hint (line 24): Stores are 4 bytes wide; 16 possible: rows are 4096 long." in text
    assert "- what limits it most: latency" in text
    assert "Nsight Compute: 130 µs" in text
