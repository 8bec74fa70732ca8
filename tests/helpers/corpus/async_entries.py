"""mbarrier, bulk copies and clusters: what Hopper does beside the threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from corpus.entry import Entry, threads, words

_SHARED = ".shared .align 128 .b8 s[8192];\n.shared .align 8 .b8 bar[64];\n"
_BASE = "mov.u32 %r5, s; mov.u32 %r4, bar; and.b32 %r6, %t, 127; setp.eq.u32 %p8, %r6, 0;"
_LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
_FRESH = "fence.mbarrier_init.release.cluster; fence.proxy.async;"


def entries() -> Iterator[Entry]:
    yield from _barriers()
    yield from _bulk_loads()
    yield from _bulk_stores()
    yield from _clusters()
    yield from _cluster_copies()


def _init(count: int) -> str:
    return f"{_BASE} @%p8 mbarrier.init.shared.b64 [%r4], {count}; {_FRESH} bar.sync 0;"


def _wait(parity: int | str, label: str, form: str = "mbarrier.try_wait.parity.shared.b64") -> str:
    return f"{label}: {form} %p7, [%r4], {parity}; @!%p7 bra {label};"


def _barriers() -> Iterator[Entry]:
    inputs = [words("mbarrier", 128)]
    publish = (
        "mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r1, [%x0]; mad.lo.u32 %r7, %r6, 4, %r5; st.shared.b32 [%r7], %r1;"
    )
    read = "xor.b32 %r8, %r6, 93; mad.lo.u32 %r8, %r8, 4, %r5; ld.shared.b32 %r0, [%r8];"
    for form in ("mbarrier.try_wait.parity.shared.b64", "mbarrier.test_wait.parity.shared.b64"):
        body = f"{_init(128)} {publish} mbarrier.arrive.shared.b64 %d1, [%r4]; {_wait(0, 'W0', form)} {read}"
        yield threads(f"all arrive, {form}", body, inputs=inputs, before=_SHARED)
    for form in ("mbarrier.try_wait.shared.b64", "mbarrier.test_wait.shared.b64"):
        body = f"{_init(128)} {publish} mbarrier.arrive.shared.b64 %d1, [%r4]; {_wait('%d1', 'W0', form)} {read}"
        yield threads(f"all arrive, {form} on the state", body, inputs=inputs, before=_SHARED)
    body = f"""{_init(4)} {publish} bar.warp.sync -1; and.b32 %r9, %t, 31; setp.eq.u32 %p1, %r9, 0;
    @%p1 mbarrier.arrive.shared.b64 _, [%r4]; {_wait(0, "W0")} {read}"""
    yield threads("one lane of each warp arrives", body, inputs=inputs, before=_SHARED)
    body = f"""{_init(256)} {publish} mbarrier.arrive.shared.b64 %d1, [%r4], 2; {_wait(0, "W0")} {read}"""
    yield threads("mbarrier.arrive with a count", body, inputs=inputs, before=_SHARED)
    yield _phases(publish, read)
    body = f"""{_init(3)} mov.u32 %r0, 0; @!%p8 bra OUT;
    mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 1; mbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0;
    mbarrier.arrive.shared.b64 %d1, [%r4]; mbarrier.arrive.noComplete.shared.b64 %d2, [%r4], 1;
    mbarrier.test_wait.shared.b64 %p3, [%r4], %d2; mbarrier.pending_count.b64 %r1, %d2;
    mbarrier.pending_count.b64 %r2, %d1;
    mbarrier.arrive_drop.shared.b64 %d3, [%r4]; mbarrier.test_wait.shared.b64 %p4, [%r4], %d3;
    mbarrier.arrive.shared.b64 %d1, [%r4]; mbarrier.test_wait.parity.shared.b64 %p5, [%r4], 1;
    mbarrier.arrive.shared.b64 %d1, [%r4]; mbarrier.test_wait.parity.shared.b64 %p6, [%r4], 1;
    {"".join(f"selp.u32 %r9, {1 << n}, 0, %p{n}; or.b32 %r0, %r0, %r9;" for n in range(1, 7))}
    shl.b32 %r1, %r1, 8; or.b32 %r0, %r0, %r1; shl.b32 %r2, %r2, 16; or.b32 %r0, %r0, %r2; OUT:"""
    yield threads("what one thread sees of a barrier's phases", body, before=_SHARED, block=32)
    copies = "mad.wide.u32 %x0, %t, 4, %a0; mad.lo.u32 %r7, %r6, 4, %r5; cp.async.ca.shared.global [%r7], [%x0], 4;"
    for tail, count in (("", 128), (".noinc", 128)):
        more = "" if tail else "mbarrier.arrive.shared.b64 _, [%r4];"
        body = (
            f"{_init(count)} {copies} cp.async.mbarrier.arrive{tail}.shared.b64 [%r4]; {more} {_wait(0, 'W0')} {read}"
        )
        yield threads(f"cp.async.mbarrier.arrive{tail}.shared.b64", body, inputs=inputs, before=_SHARED)


def _phases(publish: str, read: str) -> Entry:
    """Full and empty barriers between two halves of the block, six rounds over two stages."""
    body = f"""{_BASE} @%p8 mbarrier.init.shared.b64 [%r4], 64; @%p8 mbarrier.init.shared.b64 [%r4+8], 64;
    @%p8 mbarrier.init.shared.b64 [%r4+16], 64; @%p8 mbarrier.init.shared.b64 [%r4+24], 64; {_FRESH} bar.sync 0;
    mov.u32 %r0, 0; mov.u32 %r10, 0; and.b32 %r11, %t, 63; setp.ge.u32 %p1, %r6, 64; @%p1 bra CONSUME;
PRODUCE: and.b32 %r12, %r10, 1; shr.u32 %r13, %r10, 1; and.b32 %r13, %r13, 1; xor.b32 %r14, %r13, 1;
mad.lo.u32 %r15, %r12, 8, %r4;
EMPTY: mbarrier.try_wait.parity.shared.b64 %p2, [%r15+16], %r14; @!%p2 bra EMPTY;
    mad.lo.u32 %r16, %r12, 64, %r11; mad.lo.u32 %r16, %r16, 4, %r5; mad.lo.u32 %r17, %r10, 1000, %r11;
    st.shared.b32 [%r16], %r17;
    mbarrier.arrive.shared.b64 _, [%r15]; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 6; @%p3 bra PRODUCE; bra OUT;
CONSUME: and.b32 %r12, %r10, 1; shr.u32 %r13, %r10, 1; and.b32 %r13, %r13, 1; mad.lo.u32 %r15, %r12, 8, %r4;
FULL: mbarrier.try_wait.parity.shared.b64 %p2, [%r15], %r13; @!%p2 bra FULL;
    xor.b32 %r16, %r11, 21; mad.lo.u32 %r16, %r12, 64, %r16; mad.lo.u32 %r16, %r16, 4, %r5; ld.shared.b32 %r17, [%r16];
    mad.lo.u32 %r0, %r0, 3, %r17; mbarrier.arrive.shared.b64 _, [%r15+16];
    add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 6; @%p3 bra CONSUME; OUT:"""
    return threads("producers and consumers over two stages", body, before=_SHARED)


def _bulk_loads() -> Iterator[Entry]:
    for size in (16, 512, 4096):
        load = f"{_LOAD} [%r5], [%a0], {size}, [%r4];"
        body = f"""{_init(1)} @%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], {size}; @%p8 {load} {_wait(0, "W0")}
        mul.lo.u32 %r8, %r6, 52; and.b32 %r8, %r8, {size - 4}; add.u32 %r8, %r8, %r5; ld.shared.b32 %r0, [%r8];"""
        yield threads(
            f"cp.async.bulk of {size} bytes to shared memory", body, inputs=[words("bulk", size // 4)], before=_SHARED
        )
    loads = "\n".join(f"@%p8 {_LOAD} [%r5+{1024 * n}], [%x{n}], {256 * (n + 1)}, [%r4];" for n in range(3))
    where = "add.u64 %x0, %a0, 1024; add.u64 %x1, %a0, 16; add.u64 %x2, %a0, 48;"
    body = f"""{_init(1)} {where} @%p8 mbarrier.expect_tx.relaxed.cta.shared.b64 [%r4], 512; {loads}
    @%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 1024; {_wait(0, "W0")} rem.u32 %r8, %r6, 3;
    shl.b32 %r8, %r8, 10;
    and.b32 %r9, %t, 63; mad.lo.u32 %r8, %r9, 4, %r8; add.u32 %r8, %r8, %r5; ld.shared.b32 %r0, [%r8];"""
    yield threads("three bulk copies and one barrier", body, inputs=[words("three bulk", 512)], before=_SHARED)
    body = "cp.async.bulk.prefetch.L2.global [%a0], 512; mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r0, [%x0];"
    yield threads("cp.async.bulk.prefetch.L2.global", body, inputs=[words("prefetch", 128)])


def _bulk_stores() -> Iterator[Entry]:
    fill = f"""{_BASE} mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r1, [%x0]; mad.lo.u32 %r7, %r6, 4, %r5;
    st.shared.b32 [%r7], %r1;"""
    ends = "@%p8 cp.async.bulk.commit_group; @%p8 cp.async.bulk.wait_group 0;"
    visible = "fence.proxy.async.shared::cta; bar.sync 0;"
    body = f"{fill} {visible} @%p8 cp.async.bulk.global.shared::cta.bulk_group [%a1], [%r5], 512; {ends}"
    inputs = [words("bulk store", 128)]
    yield threads(
        "cp.async.bulk to global memory",
        body,
        inputs=inputs,
        outputs=[np.zeros(128, np.uint32)],
        results=[],
        before=_SHARED,
    )
    body = f"""{fill} {visible} @%p8 cp.async.bulk.global.shared::cta.bulk_group [%a1+16], [%r5+32], 256;
    @%p8 cp.async.bulk.commit_group; @%p8 cp.async.bulk.wait_group.read 0; bar.sync 0; st.shared.b32 [%r7], %t;
    {ends}"""
    yield threads(
        "shared memory reused after wait_group.read",
        body,
        inputs=inputs,
        outputs=[np.zeros(128, np.uint32)],
        results=[],
        before=_SHARED,
    )
    forms = [
        ("add", "u32"),
        ("add", "s32"),
        ("add", "u64"),
        ("min", "s32"),
        ("max", "u32"),
        ("and", "b32"),
        ("or", "b32"),
        ("xor", "b32"),
    ]
    for name, kind in (*forms, ("inc", "u32"), ("dec", "u32"), ("min", "u64"), ("max", "s64")):
        opcode = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{name}.{kind}"
        body = f"{fill} {visible} @%p8 {opcode} [%a1], [%r5], 512; {ends}"
        cells = [words(f"{opcode}/cells", 128)]
        yield threads(opcode, body, inputs=[words(opcode, 128)], outputs=cells, results=[], before=_SHARED)
    for form, dtype in (("f32", "f4"), ("noftz.f16", "f2"), ("f64", "f8")):
        opcode = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{form}"
        body = f"{fill} {visible} @%p8 {opcode} [%a1], [%r5], 512; {ends}"
        count = 512 // np.dtype(dtype).itemsize
        values, cells = ((words(f"{opcode}/{side}", count) % 2001).astype(dtype) / 8 for side in "ab")
        yield threads(opcode, body, inputs=[values.view("u4")], outputs=[cells.view("u4")], results=[], before=_SHARED)


_RANK = "mov.u32 %r20, %cluster_ctarank; mov.u32 %r21, %cluster_nctarank;"
_MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


def _clusters() -> Iterator[Entry]:
    for name in (
        "cluster_ctarank",
        "cluster_nctarank",
        "cluster_ctaid.x",
        "cluster_nctaid.x",
        "clusterid.x",
        "nclusterid.x",
    ):
        yield threads(f"%{name} in clusters of 2", f"mov.u32 %r0, %{name};", grid=6, block=32, cluster=2)
    fill = f"""{_BASE} {_RANK} mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r1, [%x0]; mad.lo.u32 %r7, %r6, 4, %r5;
    st.shared.b32 [%r7], %r1;"""
    next_rank = "add.u32 %r22, %r20, 1; rem.u32 %r22, %r22, %r21;"
    for size, count in product((2, 4), (1, 2)):
        grid = size * count
        body = f"""{fill} {_MEET} {next_rank} mapa.shared::cluster.u32 %r23, %r7, %r22;
        ld.shared::cluster.b32 %r0, [%r23]; {_MEET}"""
        yield threads(
            f"{count} clusters of {size} read the next block",
            body,
            inputs=[words("dsmem", 128 * grid)],
            before=_SHARED,
            grid=grid,
            cluster=size,
        )
    body = f"""{_BASE} {_RANK} mad.lo.u32 %r7, %r6, 4, %r5;
    {_MEET} {next_rank} mapa.shared::cluster.u32 %r23, %r7, %r22;
    mad.lo.u32 %r1, %t, 3, 7; st.shared::cluster.b32 [%r23], %r1; barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire; ld.shared.b32 %r0, [%r7];"""
    yield threads("stores to the next block's shared memory", body, before=_SHARED, grid=4, cluster=2)
    body = f"""{fill} mov.u64 %x1, s; cvta.shared.u64 %x1, %x1; {_MEET} {next_rank} mapa.u64 %x2, %x1, %r22;
    mad.wide.u32 %x2, %r6, 4, %x2;
    ld.b32 %r0, [%x2]; getctarank.u64 %r2, %x2; mapa.shared::cluster.u32 %r23, %r7, %r22;
    getctarank.shared::cluster.u32 %r1, %r23; mad.lo.u32 %r1, %r1, 16, %r2; {_MEET}"""
    yield threads(
        "mapa.u64 and getctarank",
        body,
        inputs=[words("generic dsmem", 512)],
        results=["u4", "u4"],
        before=_SHARED,
        grid=4,
        cluster=2,
    )
    body = f"""{_BASE} {_RANK} mov.u32 %r1, 0; @%p8 st.shared.b32 [%r5], %r1; {_MEET} mov.u32 %r22, 0;
    mapa.shared::cluster.u32 %r23, %r5, %r22;
    add.u32 %r2, %r6, %r20; red.shared::cluster.add.u32 [%r23], %r2; {_MEET} ld.shared::cluster.b32 %r0, [%r23];
    {_MEET}"""
    yield threads("red.shared::cluster.add.u32", body, before=_SHARED, grid=4, cluster=2)
    body = f"""{_BASE} {_RANK} mad.lo.u32 %r7, %r6, 4, %r5; @%p8 mbarrier.init.shared.b64 [%r4], 128;
    {_FRESH} {_MEET} {next_rank}
    mapa.shared::cluster.u32 %r23, %r7, %r22; mapa.shared::cluster.u32 %r24, %r4, %r22; mad.lo.u32 %r1, %t, 5, 1;
    st.shared::cluster.b32 [%r23], %r1;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r24];
    W0: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p7, [%r4], 0; @!%p7 bra W0;
    ld.shared.b32 %r0, [%r7]; {_MEET}"""
    yield threads("arrivals at the next block's barrier", body, before=_SHARED, grid=4, cluster=2)
    body = f"""{_BASE} {_RANK} mad.lo.u32 %r7, %r6, 4, %r5; @%p8 mbarrier.init.shared.b64 [%r4], 1;
    {_FRESH} {_MEET} {next_rank}
    @%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 512; mapa.shared::cluster.u32 %r23, %r7, %r22;
    mapa.shared::cluster.u32 %r24, %r4, %r22;
    mad.lo.u32 %r1, %t, 11, 2; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r23], %r1, [%r24];
    {_wait(0, "W0")} ld.shared.b32 %r0, [%r7]; {_MEET}"""
    yield threads("st.async to the next block", body, before=_SHARED, grid=4, cluster=2)


def _cluster_copies() -> Iterator[Entry]:
    next_rank = "add.u32 %r22, %r20, 1; rem.u32 %r22, %r22, %r21;"
    start = f"{_BASE} {_RANK} @%p8 mbarrier.init.shared.b64 [%r4], 1; {_FRESH} {_MEET}"
    body = f"""{_BASE} {_RANK} mad.lo.u32 %r7, %r6, 4, %r5; mad.lo.u32 %r1, %t, 9, 4; st.shared.b32 [%r7+1024], %r1;
    @%p8 mbarrier.init.shared.b64 [%r4], 1;
    {_FRESH} {_MEET} {next_rank} @%p8 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 512;
    mapa.shared::cluster.u32 %r23, %r5, %r22; mapa.shared::cluster.u32 %r24, %r4, %r22; add.u32 %r25, %r5, 1024;
    @%p8 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r23], [%r25], 512, [%r24];
    {_wait(0, "W0")} ld.shared.b32 %r0, [%r7]; {_MEET}"""
    yield threads("cp.async.bulk to the next block", body, before=_SHARED, grid=4, cluster=2)
    for size, mask in ((2, 3), (4, 15), (4, 10)):
        copy = f"{_LOAD}.multicast::cluster"
        body = f"""{start} mov.u16 %h1, {mask}; shr.u32 %r9, {mask}, %r20; and.b32 %r9, %r9, 1;
        setp.ne.u32 %p3, %r9, 0; mov.u32 %r0, 0;
        and.pred %p4, %p3, %p8; @%p4 mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 512; {_MEET}
        setp.eq.u32 %p5, %r20, 0; and.pred %p5, %p5, %p8; @%p5 {copy} [%r5], [%a0], 512, [%r4], %h1;
        @!%p3 bra OUT; {_wait(0, "W0")} mad.lo.u32 %r7, %r6, 4, %r5; ld.shared.b32 %r0, [%r7]; OUT: {_MEET}"""
        yield threads(
            f"multicast to blocks {mask:04b} of {size}",
            body,
            inputs=[words("multicast", 128)],
            before=_SHARED,
            grid=size,
            cluster=size,
        )
