"""The machine around the arithmetic: memory, divergence, lanes, atomics, counts, the reader's refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_evaluator.emulator.device import Device
from cutesmith_evaluator.emulator.faults import FaultError, UnsupportedError
from cutesmith_evaluator.emulator.memory import Allocation
from ptx_kernels import apply, kernel_text, run_kernel

STORE = "mad.wide.u32 %o, %t, 4, %a0; st.global.b32 [%o], %r0;"


def results(body: str, *, grid: int = 1, block: int = 32, shared: int = 0, before: str = "") -> np.ndarray:
    """%r0 of every thread."""
    out = np.zeros(grid * block, np.uint32)
    run_kernel(kernel_text(f"{body}\n{STORE}", 1, before=before), [out], grid=grid, block=block, shared=shared)
    return out


def source_lane(mode: str, lane: int, by: int, clamp: int, segment: int) -> int:
    """From the manual's pseudo code, a lane at a time."""
    last = (lane & segment) | (clamp & ~segment & 31)
    first = lane & segment
    if mode == "up":
        other, inside = lane - by, lane - by >= last
    elif mode == "down":
        other, inside = lane + by, lane + by <= last
    elif mode == "bfly":
        other, inside = lane ^ by, lane ^ by <= last
    else:
        other, inside = first | (by & ~segment & 31), first | (by & ~segment & 31) <= last
    return other if inside else lane


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("width", [32, 16, 8])
@pytest.mark.parametrize("by", [0, 1, 5, 16])
def test_shuffles(mode: str, width: int, by: int) -> None:
    segment = 32 - width
    clamp = 0 if mode == "up" else 31
    packed = segment << 8 | clamp
    got = results(f"mul.lo.u32 %r1, %t, 10; shfl.sync.{mode}.b32 %r0, %r1, {by}, {packed}, -1;", block=64)
    want = [10 * (warp * 32 + source_lane(mode, lane, by, clamp, segment)) for warp in (0, 1) for lane in range(32)]
    assert got.tolist() == want


def test_lanes_that_diverge_come_together_again() -> None:
    """A loop whose number of rounds differs by lane, then a warp-wide sum."""
    body = """
    mov.u32 %r0, 0; mov.u32 %r1, 0;
LOOP: setp.ge.u32 %p1, %r1, %t; @%p1 bra OUT;
    add.u32 %r0, %r0, %r1; add.u32 %r1, %r1, 1; bra LOOP;
OUT:
""" + "\n".join(f"shfl.sync.bfly.b32 %r2, %r0, {by}, 31, -1; add.u32 %r0, %r0, %r2;" for by in (16, 8, 4, 2, 1))
    assert set(results(body).tolist()) == {sum(n * (n - 1) // 2 for n in range(32))}


@given(st.lists(st.integers(0, 7), min_size=64, max_size=64))
@settings(max_examples=20, deadline=None)
def test_branches_take_each_thread_its_way(ways: list[int]) -> None:
    """A ladder of branches with two joins, against a Python interpreter of it."""
    given_ways, out = np.array(ways, np.uint32), np.zeros(64, np.uint32)
    body = """
    mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r1, [%x0]; mov.u32 %r0, 1;
    and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
    mul.lo.u32 %r0, %r0, 3; bra JOIN;
EVEN: add.u32 %r0, %r0, 5; @!%p1 bra JOIN; setp.gt.u32 %p2, %r1, 3; @%p2 add.u32 %r0, %r0, 100;
JOIN: setp.eq.u32 %p3, %r1, 7; @%p3 exit; mul.lo.u32 %r0, %r0, 2;
    mad.wide.u32 %o, %t, 4, %a1; st.global.b32 [%o], %r0;
"""
    run_kernel(kernel_text(body, 2), [given_ways, out], block=32, grid=2)

    def walk(way: int) -> int:
        value = 3 if way % 2 else 6 + (100 if way > 3 else 0)
        return 0 if way == 7 else 2 * value

    assert out.tolist() == [walk(way) for way in ways]


def test_votes_and_special_registers() -> None:
    odd = "and.b32 %r1, %t, 1; setp.ne.u32 %p1, %r1, 0;"
    assert set(results(f"{odd} vote.sync.ballot.b32 %r0, %p1, -1;").tolist()) == {0xAAAAAAAA}
    assert results("mov.u32 %r0, %laneid;", block=48, grid=2).tolist() == 2 * [*range(32), *range(16)]
    assert results("mov.u32 %r0, %ctaid.x;", block=32, grid=3).tolist() == [n for n in range(3) for _ in range(32)]
    assert set(results("mov.u32 %r0, %nctaid.x;", grid=3).tolist()) == {3}


def test_atomics_count_every_thread() -> None:
    total, old = np.zeros(1, np.uint32), np.zeros(128, np.uint32)
    body = """
    atom.global.add.u32 %r0, [%a0], 2;
    mad.wide.u32 %o, %t, 4, %a1; st.global.b32 [%o], %r0;
"""
    run_kernel(kernel_text(body, 2), [total, old], block=64, grid=2)
    assert total[0] == 256
    assert sorted(old.tolist()) == list(range(0, 256, 2))


def test_red_by_place_and_compare_and_swap() -> None:
    largest, lock = np.full(4, 3, np.int32), np.zeros(1, np.uint32)
    body = """
    and.b32 %r1, %t, 3; mad.wide.u32 %x0, %r1, 4, %a0; red.global.max.s32 [%x0], %t;
    add.u32 %r2, %t, 1; atom.global.cas.b32 %r0, [%a1], 0, %r2;
"""
    run_kernel(kernel_text(body, 2), [largest, lock], block=32)
    assert largest.tolist() == [28, 29, 30, 31]
    assert lock[0] == 1, "the first thread alone finds 0"


def test_shared_memory_is_of_the_block() -> None:
    before = ".shared .align 16 .b8 s[256];"
    body = """
    mov.u32 %r1, s; mov.u32 %r2, %tid.x; shl.b32 %r3, %r2, 2; add.u32 %r4, %r1, %r3;
    st.shared.b32 [%r4], %t; bar.sync 0; xor.b32 %r3, %r3, 12; add.u32 %r4, %r1, %r3; ld.shared.b32 %r0, [%r4];
"""
    assert results(body, block=64, grid=2, before=before).tolist() == [n ^ 3 for n in range(128)]


def test_blocks_that_wait_run_what_follows_later_and_harm_nobody() -> None:
    """Block 0 waits at a barrier in a branch while block 1 goes on: the load after the join runs twice."""
    array = np.arange(64, dtype=np.uint32)
    out = np.zeros(64, np.uint32)
    body = """
    mad.wide.u32 %x0, %t, 4, %a0; setp.ne.u32 %p1, %b, 0; @%p1 bra JOIN;
    bar.sync 0;
JOIN: ld.global.b32 %r1, [%x0]; bar.sync 0; add.u32 %r0, %r1, 7;
    mad.wide.u32 %o, %t, 4, %a1; st.global.b32 [%o], %r0;
"""
    run_kernel(kernel_text(body, 2), [array, out], block=32, grid=2)
    assert out.tolist() == [n + 7 for n in range(64)]


def test_every_access_is_checked_against_the_allocations() -> None:
    array = np.zeros(8, np.uint32)
    with pytest.raises(
        FaultError, match=r"thread \(8, 0, 0\) of block \(0, 0, 0\) reads 4 bytes .* 0 bytes past the end"
    ):
        run_kernel(kernel_text("mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r0, [%x0];", 1), [array], block=32)
    with pytest.raises(FaultError, match="no multiple of 8") as caught:
        run_kernel(kernel_text("add.u64 %x0, %a0, 4; ld.global.b64 %d0, [%x0];", 1), [array], block=1)
    assert caught.value.kind == "misaligned-access"
    with pytest.raises(FaultError, match="over the end"):
        run_kernel(kernel_text("ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%a0+16];", 1), [array[:6]], block=1)


def test_fresh_memory_holds_no_value_until_it_is_written() -> None:
    out = np.zeros(64, np.uint8)
    device = Device()
    device.memory.add(allocation := Allocation(out.ctypes.data, 64, "fresh", initialised=False))
    loaded = device.load(kernel_text("st.global.b8 [%a0], 1; ld.global.b8 %r0, [%a0]; ld.global.b16 %h0, [%a0];", 1))
    from cutesmith_evaluator.emulator.launch import Launch

    config = Launch((1, 1, 1), (1, 1, 1), 0, out.ctypes.data.to_bytes(8, "little"))
    with pytest.raises(FaultError, match="reads 2 bytes of fresh") as caught:
        device.launch(loaded, "k", config)
    assert caught.value.kind == "uninitialised-read"
    assert allocation.unwritten() == 63


@pytest.mark.parametrize(
    ("instruction", "named"),
    [
        ("tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::ld.sync.aligned"),
        ("fns.b32 %r0, %r1, %r2, %r3;", "fns.b32"),
        ("cvt.rn.satfinite.e2m1x2.f32 %h0, %r1, %r2;", "e2m1x2"),
        ("mov.u32 %r0, %smid;", "%smid"),
        ("mul.wide.u64 %d0, %d1, %d2;", "mul.wide.u64"),
        ("add.f32 %r0, %r1;", "add.f32"),
    ],
)
def test_what_is_not_known_is_named_and_nothing_runs(instruction: str, named: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        run_kernel(kernel_text(instruction, 0), [])
    assert named in caught.value.message
    assert caught.value.kernel == "k"


def test_counts_of_a_strided_and_a_dense_load() -> None:
    array = np.zeros(1024, np.uint32)
    body = "mad.wide.u32 %x0, %t, {step}, %a0; ld.global.b32 %r0, [%x0];"
    sectors = {}
    for step in (4, 32, 128):
        counts = run_kernel(kernel_text(body.format(step=step), 1), [array], block=32).counts["k"]
        assert counts.traffic["global load"].bytes == 128
        assert counts.instructions["load"] == 32
        sectors[step] = counts.traffic["global load"].sectors - (1 if step == 4 and array.ctypes.data % 32 else 0)
    assert sectors == {4: 4, 32: 32, 128: 32}


def test_counts_of_bank_conflicts() -> None:
    before = ".shared .align 16 .b8 s[8192];"
    body = "mov.u32 %r1, s; mad.lo.u32 %r2, %t, {step}, %r1; st.shared.b32 [%r2], %t;"
    for step, passes in ((4, 0), (8, 1), (128, 31)):
        counts = run_kernel(kernel_text(body.format(step=step), 0, before=before), [], block=32).counts["k"]
        assert counts.traffic["shared store"].extra_passes == passes


# (instruction, function, error relative to the result, absolute error): the bounds of the PTX manual
APPROXIMATE = [
    ("ex2.approx.ftz.f32", lambda v: 2.0**v, 2.0**-22, 0.0),
    ("lg2.approx.f32", lambda v: math.log2(abs(v)), 2.0**-22, 2.0**-22),
    ("rcp.approx.ftz.f32", lambda v: 1 / v, 2.0**-23, 0.0),
    ("rsqrt.approx.f32", lambda v: 1 / math.sqrt(abs(v)), 2.0**-22.4, 0.0),
    ("tanh.approx.f32", math.tanh, 2.0**-10.987, 0.0),
    ("sin.approx.f32", math.sin, 0.0, 2.0**-20.5),
    ("cos.approx.f32", math.cos, 0.0, 2.0**-20.5),
]


@pytest.mark.parametrize(("name", "function", "relative", "absolute"), APPROXIMATE, ids=[row[0] for row in APPROXIMATE])
def test_approximations_keep_to_the_documented_error(name, function, relative: float, absolute: float) -> None:
    values = np.random.default_rng(0).uniform(-3, 3, 4096).astype(np.float32)
    values = np.abs(values) if name.startswith(("lg2", "rsqrt")) else values
    got = apply(f"{name} {{}}, {{}}", values, result=np.float32)
    for value, result in zip(values.tolist(), got.tolist(), strict=True):
        exact = function(value)
        assert abs(result - exact) <= abs(exact) * relative + absolute, value
