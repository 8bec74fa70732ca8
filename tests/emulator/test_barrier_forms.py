"""bar.red, bar.arrive, barriers for part of a block and under predicates; asynchronous copies handed over by them."""

from __future__ import annotations

import numpy as np
import pytest

from cutesmith_evaluator.emulator.faults import FaultError
from ptx_kernels import kernel_text, run_kernel

SHARED = ".shared .align 16 .b8 s[4096];"
STORE = "mad.wide.u32 %o, %t, 4, %a0; st.global.b32 [%o], %r0;"
MINE = "mov.u32 %r3, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r1, %r3, 4, %r2;"


def results(body: str, *, block: int = 64, grid: int = 2) -> np.ndarray:
    out = np.zeros((grid, block), np.uint32)
    run_kernel(kernel_text(f"{MINE} {body} {STORE}", 1, before=SHARED), [out], block=block, grid=grid)
    return out


@pytest.mark.parametrize(
    ("form", "to", "wanted"),
    [("popc.u32", "%r0", 20), ("and.pred", "%p0", 0), ("or.pred", "%p0", 1)],
)
def test_red_tells_all_threads_what_their_predicates_were(form: str, to: str, wanted: int) -> None:
    """20 threads of each block have one below 20; the second block's are all above 100."""
    predicate = "mad.lo.u32 %r4, %b, 100, %r3; setp.lt.u32 %p1, %r4, 20;"
    back = "" if to == "%r0" else "selp.b32 %r0, 1, 0, %p0;"
    got = results(f"{predicate} bar.red.{form} {to}, 0, %p1; {back}")
    assert set(got[0].tolist()) == {wanted}
    assert set(got[1].tolist()) == {0}
    complement = results(f"{predicate} bar.red.{form} {to}, 0, !%p1; {back}")
    assert set(complement[0].tolist()) == {{"popc.u32": 44, "and.pred": 0, "or.pred": 1}[form]}
    assert set(complement[1].tolist()) == {{"popc.u32": 64, "and.pred": 1, "or.pred": 1}[form]}


def test_red_is_a_barrier() -> None:
    body = "st.shared.b32 [%r1], %r3; setp.eq.u32 %p1, %r3, 0; bar.red.or.pred %p2, 0, %p1; xor.b32 %r4, %r3, 63;"
    got = results(f"{body} mad.lo.u32 %r5, %r4, 4, %r2; ld.shared.b32 %r0, [%r5];")
    assert got[0].tolist() == list(range(63, -1, -1))


# The first warp fills shared memory, twice; the second one takes it.
PRODUCER = """
    setp.ge.u32 %p1, %r3, 32; @%p1 bra CONSUMER;
    mov.u32 %r6, 0;
PRODUCE: st.shared.b32 [%r1], %r6; {filled} {emptied} add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 2; @%p2 bra PRODUCE;
    mov.u32 %r0, 7; bra DONE;
CONSUMER: mov.u32 %r6, 0; mov.u32 %r0, 0;
CONSUME: {wait} sub.u32 %r7, %r1, 128; xor.b32 %r7, %r7, 4; ld.shared.b32 %r8, [%r7]; {taken}
    mad.lo.u32 %r0, %r0, 10, %r8; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 2; @%p2 bra CONSUME;
DONE:
"""
PIPELINE = {
    "filled": "bar.arrive 1, 64;",
    "emptied": "bar.sync 2, 64;",
    "wait": "bar.sync 1, 64;",
    "taken": "bar.arrive 2, 64;",
}


def test_arrive_does_not_wait_and_counts() -> None:
    got = results(PRODUCER.format(**PIPELINE))
    assert set(got[:, :32].reshape(-1).tolist()) == {7}
    assert set(got[:, 32:].reshape(-1).tolist()) == {1}, "0, then 1"


@pytest.mark.parametrize("form", ["barrier.cta.sync.aligned", "barrier.sync", "bar.cta.sync"])
def test_other_names_of_sync(form: str) -> None:
    words = PIPELINE | {"wait": f"{form} 1, 64;"}
    assert set(results(PRODUCER.format(**words))[:, 32:].reshape(-1).tolist()) == {1}


@pytest.mark.parametrize("left_out", ["filled", "wait"])
def test_a_pipeline_without_one_of_its_ends_hangs_or_races(left_out: str) -> None:
    with pytest.raises(FaultError) as caught:
        results(PRODUCER.format(**PIPELINE | {left_out: ""}))
    assert caught.value.kind in ("deadlock", "race", "uninitialised-read")


def test_a_barrier_under_a_predicate_is_for_those_alone() -> None:
    body = "setp.lt.u32 %p1, %r3, 32; @%p1 bar.sync 3, 32; mov.u32 %r0, 5;"
    assert set(results(body).reshape(-1).tolist()) == {5}
    with pytest.raises(FaultError) as caught:
        results("setp.lt.u32 %p1, %r3, 32; @%p1 bar.sync 3, 64; mov.u32 %r0, 5;")
    assert caught.value.kind == "deadlock"


def test_a_barrier_that_is_not_aligned_may_be_met_in_two_places() -> None:
    body = """
    and.b32 %r4, %r3, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra EVEN;
    {form} 0; mov.u32 %r0, 1; bra JOIN;
EVEN: {form} 0; mov.u32 %r0, 2; JOIN:
"""
    assert set(results(body.format(form="barrier.sync")).reshape(-1).tolist()) == {1, 2}
    with pytest.raises(FaultError, match="another barrier") as caught:
        results(body.format(form="bar.sync"))
    assert caught.value.kind == "barrier-divergence"


def test_copies_are_handed_over_by_a_barrier_of_some_warps() -> None:
    """One warp fetches, another takes: the wait has to come before the arrival."""
    source, out = np.arange(128, dtype=np.uint32), np.zeros(64, np.uint32)
    body = """
    mad.wide.u32 %x0, %r3, 4, %a0; setp.ge.u32 %p1, %r3, 32; @%p1 bra TAKE;
    cp.async.ca.shared.global [%r1], [%x0], 4; cp.async.commit_group; {first} {second} bra OUT;
TAKE: bar.sync 1, 64; sub.u32 %r7, %r1, 128; xor.b32 %r7, %r7, 4; ld.shared.b32 %r8, [%r7];
    mad.wide.u32 %x1, %r3, 4, %a1; st.global.b32 [%x1], %r8; OUT:
"""
    right = body.format(first="cp.async.wait_group 0;", second="bar.arrive 1, 64;")
    run_kernel(kernel_text(MINE + right, 2, before=SHARED), [source, out], block=64)
    assert out[32:].tolist() == [lane ^ 1 for lane in range(32)]
    wrong = body.format(first="bar.arrive 1, 64;", second="cp.async.wait_group 0;")
    with pytest.raises(FaultError) as caught:
        run_kernel(kernel_text(MINE + wrong, 2, before=SHARED), [source, out], block=64)
    assert caught.value.kind == "race"
