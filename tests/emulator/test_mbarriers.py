"""Barriers in shared memory: phases, who waits, who learns of whose writes; clusters and their shared memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_evaluator.emulator.faults import FaultError
from ptx_kernels import kernel_text, run_kernel

SHARED = ".shared .align 16 .b8 s[1024]; .shared .align 8 .b8 m[64];"
STORE = "mad.wide.u32 %o, %t, 4, %a0; st.global.b32 [%o], %r0;"
WARP = "shr.u32 %r70, %t, 5; setp.eq.u32 %p1, %r70, 0; setp.ne.u32 %p2, %t, 0;"
BEGIN = f"""{WARP}
mov.u32 %r60, m; mov.u32 %r61, s; mad.lo.u32 %r62, %t, 4, %r61;
@%p2 bra READY; mbarrier.init.shared.b64 [%r60], {{count}}; mbarrier.init.shared.b64 [%r60+8], {{count}};
READY: bar.sync 0;
"""


def wait(name: str, place: str, parity: str) -> str:
    return f"{name}: mbarrier.try_wait.parity.shared.b64 %p9, [{place}], {parity}; @!%p9 bra {name};"


def results(body: str, *, count: int = 32, block: int = 64) -> np.ndarray:
    out = np.zeros(block, np.uint32)
    text = kernel_text(f"{BEGIN.format(count=count)}\n{body}\n{STORE}", 1, before=SHARED)
    run_kernel(text, [out], block=block)
    return out


# Warp 0 writes, warp 1 waits for it and reads what it wrote.
HANDED_OVER = """
@!%p1 bra READER;
mov.u32 %r0, 7; st.shared.b32 [%r62], %t; mbarrier.arrive.shared.b64 _, [%r60]; bra OUT;
READER: WAIT
ld.shared.b32 %r0, [%r62+-128];
OUT:
"""


def test_a_warp_waits_for_what_another_has_written() -> None:
    got = results(HANDED_OVER.replace("WAIT", wait("W", "%r60", "0")))
    assert got.tolist() == [7] * 32 + [*range(32)]


def test_a_wrong_parity_waits_for_ever_once_the_phase_is_over() -> None:
    with pytest.raises(
        FaultError, match="a phase of parity 1 at the mbarrier at offset 1024, where in phase 1"
    ) as caught:
        results(HANDED_OVER.replace("WAIT", wait("W", "%r60", "1")))
    assert caught.value.kind == "deadlock"


def test_a_missing_wait_is_a_race() -> None:
    """The reader comes later here, and would see the right values."""
    with pytest.raises(FaultError, match="which warp 0 wrote with no wait") as caught:
        results(HANDED_OVER.replace("WAIT", ""))
    assert caught.value.kind == "race"
    assert "thread (32, 0, 0)" in caught.value.message


def test_a_place_used_again_before_its_reader_is_done() -> None:
    body = f"""
@!%p1 bra READER;
st.shared.b32 [%r62], %t; mbarrier.arrive.shared.b64 _, [%r60]; {{again}} st.shared.b32 [%r62], %t; bra OUT;
READER: {wait("W", "%r60", "0")}
ld.shared.b32 %r0, [%r62+-128]; mbarrier.arrive.shared.b64 _, [%r60+8];
OUT:
"""
    results(body.format(again=wait("V", "%r60+8", "0")))
    with pytest.raises(FaultError, match="which warp 0 wrote"):
        results(body.format(again=""))


@given(rounds=st.integers(1, 9), stages=st.integers(1, 2))
@settings(max_examples=8, deadline=None)
def test_a_ring_of_stages(rounds: int, stages: int) -> None:
    """Full at `8 * stage`, empty at `16 + 8 * stage`; the reader adds up what the writer sends."""
    body = f"""
@%p2 bra READY2; mbarrier.init.shared.b64 [%r60+16], 32; mbarrier.init.shared.b64 [%r60+24], 32;
READY2: bar.sync 0; mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;
LOOP: mad.lo.u32 %r4, %r2, 8, %r60; mad.lo.u32 %r5, %r2, 128, %r62;
@!%p1 bra READER;
xor.b32 %r6, %r3, 1; {wait("V", "%r4+16", "%r6")} add.u32 %r7, %r1, 5; st.shared.b32 [%r5], %r7;
mbarrier.arrive.release.cta.shared::cta.b64 _, [%r4]; bra NEXT;
READER: {wait("W", "%r4", "%r3")}
ld.shared.b32 %r7, [%r5+-128]; add.u32 %r0, %r0, %r7; mbarrier.arrive.shared.b64 %d0, [%r4+16];
NEXT: add.u32 %r1, %r1, 1; add.u32 %r2, %r2, 1; setp.eq.u32 %p3, %r2, {stages}; @%p3 mov.u32 %r2, 0;
@%p3 xor.b32 %r3, %r3, 1; setp.lt.u32 %p4, %r1, {rounds}; @%p4 bra LOOP;
"""
    assert results(body)[32:].tolist() == [sum(range(5, 5 + rounds))] * 32


def test_phases_by_their_state_and_what_a_test_says() -> None:
    body = """
mbarrier.arrive.shared.b64 %d0, [%r60]; mbarrier.test_wait.shared.b64 %p3, [%r60], %d0;
selp.u32 %r0, 1, 0, %p3; mbarrier.test_wait.parity.shared.b64 %p4, [%r60+8], 1; @%p4 add.u32 %r0, %r0, 2;
mbarrier.test_wait.parity.shared.b64 %p5, [%r60+8], 0; @%p5 add.u32 %r0, %r0, 4;
"""
    assert results(body, count=64).tolist() == [3] * 64, "nothing has arrived at the second; the phase before is over"


def test_nobody_comes() -> None:
    with pytest.raises(FaultError, match=r"parity 0 at the mbarrier at offset 1024.* 31 of 32 arrivals") as caught:
        results(
            f"setp.eq.u32 %p3, %t, 5; @!%p3 mbarrier.arrive.shared.b64 _, [%r60]; {wait('W', '%r60', '0')}", block=32
        )
    assert caught.value.kind == "deadlock"


def test_bytes_that_never_come() -> None:
    body = f"@!%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r60], 64; {wait('W', '%r60', '0')}"
    with pytest.raises(FaultError, match="1 of 1 arrivals have come, 64 more bytes are expected"):
        results(body, count=1)
    done = body.replace(";", "; @!%p2 mbarrier.complete_tx.shared::cta.relaxed.cta.b64 [%r60], 64;", 1)
    results(done.replace("shared::cta.relaxed.cta", "relaxed.cta.shared::cta"), count=1)


def test_misuse() -> None:
    with pytest.raises(FaultError, match="wants 1 arrivals a phase and has all"):
        results("@!%p2 mbarrier.arrive.shared.b64 _, [%r60], 2;", count=1)
    with pytest.raises(FaultError, match="nothing has initialised"):
        results("mbarrier.arrive.shared.b64 _, [%r60+32];")


CLUSTER = """
mov.u32 %r1, %cluster_ctarank; mov.u32 %r61, s; mad.lo.u32 %r62, %t, 4, %r61; mov.u32 %r10, %tid.x;
mad.lo.u32 %r62, %r10, 4, %r61; st.shared.b32 [%r62], %t;
ARRIVE barrier.cluster.wait.acquire.aligned;
xor.b32 %r2, %r1, 1; mapa.shared::cluster.u32 %r3, %r62, %r2; ld.shared::cluster.b32 %r0, [%r3];
barrier.cluster.arrive; barrier.cluster.wait;
"""


def in_clusters(arrive: str, cluster: tuple[int, int, int], grid: int = 4) -> list[int]:
    out = np.zeros(32 * grid, np.uint32)
    text = kernel_text(f"{CLUSTER.replace('ARRIVE', arrive)}\n{STORE}", 1, before=SHARED)
    run_kernel(text, [out], grid=grid, cluster=cluster)
    return out.tolist()


def test_blocks_of_a_cluster_read_each_other() -> None:
    assert in_clusters("barrier.cluster.arrive.aligned;", (2, 1, 1)) == [n ^ 32 for n in range(128)]


def test_what_the_cluster_has_to_wait_for() -> None:
    with pytest.raises(FaultError, match="block 1 of the cluster wrote") as caught:
        in_clusters("barrier.cluster.arrive.relaxed.aligned;", (2, 1, 1))
    assert caught.value.kind == "race"
    assert in_clusters("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed;", (2, 1, 1), 2)[0] == 32
    with pytest.raises(FaultError, match="maps an address to block 1 of a cluster of 1 blocks"):
        in_clusters("barrier.cluster.arrive;", (1, 1, 1))
    with pytest.raises(FaultError, match=r"clusters of \(3, 1, 1\) do not divide"):
        in_clusters("barrier.cluster.arrive;", (3, 1, 1))


def test_a_cluster_whose_block_does_not_come() -> None:
    body = """
mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; mov.u32 %r60, m; mov.u32 %r0, 1; @!%p1 bra WAIT;
mov.u32 %r2, 0; SPIN: mbarrier.init.shared.b64 [%r60], 1;
V: mbarrier.try_wait.parity.shared.b64 %p9, [%r60], 0; @!%p9 bra V;
WAIT: barrier.cluster.arrive; barrier.cluster.wait;
"""
    out = np.zeros(64, np.uint32)
    with pytest.raises(FaultError, match="32 threads wait for") as caught:
        run_kernel(kernel_text(f"{body}\n{STORE}", 1, before=SHARED), [out], grid=2, cluster=(2, 1, 1))
    assert caught.value.kind == "deadlock"


@pytest.mark.parametrize(("register", "axis"), [("%ctaid", 0), ("%cluster_ctaid", 1), ("%clusterid", 2)])
def test_registers_of_a_cluster(register: str, axis: int) -> None:
    """A grid of 4 by 4 in clusters of 2 by 2: every block finds its own place."""
    out = np.zeros((16, 2), np.uint32)
    body = f"""
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mad.lo.u32 %r2, %r1, 4, %r0; mad.wide.u32 %o, %r2, 8, %a0;
mov.u32 %r3, {register}.x; mov.u32 %r4, {register}.y; st.global.v2.b32 [%o], {{%r3, %r4}};
mov.u32 %r5, %cluster_ctarank; mad.lo.u32 %r6, %r1, 2, %r0;
"""
    run_kernel(kernel_text(body, 1), [out], grid=(4, 4, 1), cluster=(2, 2, 1), block=1)
    want = [((x, y), (x % 2, y % 2), (x // 2, y // 2))[axis] for y in range(4) for x in range(4)]
    assert [tuple(row) for row in out.tolist()] == want
