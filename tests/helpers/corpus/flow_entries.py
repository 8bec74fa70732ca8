"""Branches, loops, early ends, predicates; barriers of blocks; the machine's own registers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from corpus.entry import Entry, threads, words

_LOAD = "mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r1, [%x0];"
_SHARED = ".shared .align 16 .b8 s[4096];\n"


def entries() -> Iterator[Entry]:
    yield from _branches()
    yield from _loops()
    yield from _barriers()
    yield from _registers()
    yield from _orders()


def _branches() -> Iterator[Entry]:
    inputs = [words("branches", 512)]
    body = f"""{_LOAD} mov.u32 %r0, 1; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra EVEN;
    mul.lo.u32 %r0, %r0, 3; bra JOIN; EVEN: add.u32 %r0, %r0, 5; JOIN: mad.lo.u32 %r0, %r0, 10, %r2;"""
    yield threads("if and else", body, inputs=inputs, grid=4)
    ways = "\n".join(f"setp.eq.u32 %p1, %r2, {way}; @%p1 bra WAY{way};" for way in range(7))
    arms = "\n".join(f"WAY{way}: mad.lo.u32 %r0, %r1, {way * 2 + 3}, {way}; bra JOIN;" for way in range(7))
    yield threads(
        "a ladder of seven ways",
        f"{_LOAD} and.b32 %r2, %r1, 7; {ways} mov.u32 %r0, 9; bra JOIN;\n{arms}\nJOIN: add.u32 %r0, %r0, 1;",
        inputs=inputs,
        grid=4,
    )
    table = ", ".join(f"WAY{way}" for way in range(7))
    body = f"""{_LOAD} rem.u32 %r2, %r1, 7; TABLE: .branchtargets {table}; brx.idx %r2, TABLE;
    {arms} JOIN: add.u32 %r0, %r0, 1;"""
    yield threads("brx.idx", body, inputs=inputs, grid=4)
    body = f"""{_LOAD} setp.lt.s32 %p1, %r1, 0; setp.gt.u32 %p2, %r1, 99; mov.u32 %r0, 7; @%p1 add.u32 %r0, %r0, 1;
    @!%p1 mul.lo.u32 %r0, %r0, %r1; @%p2 xor.b32 %r0, %r0, %r1; @!%p2 mov.u32 %r0, 3;"""
    yield threads("predicated instructions", body, inputs=inputs, grid=4)
    body = f"""{_LOAD} mad.wide.u32 %x1, %t, 4, %a1; mov.u32 %r0, 4; st.global.b32 [%x1], %r0;
    setp.lt.s32 %p1, %r1, 0; @%p1 exit; and.b32 %r2, %r1, 4; setp.eq.u32 %p2, %r2, 0; @%p2 ret; mov.u32 %r0, 8;"""
    yield threads("threads that end early", body, inputs=inputs, grid=4)
    body = f"""{_LOAD} mov.u32 %r0, 0; setp.lt.s32 %p1, %r1, 0; @%p1 bra OUTER; and.b32 %r2, %r1, 2;
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra INNER; add.u32 %r0, %r0, 1; bra INJOIN; INNER: add.u32 %r0, %r0, 16; INJOIN: mul.lo.u32 %r0, %r0, 3;
    bra JOIN;
    OUTER: and.b32 %r2, %r1, 1; setp.eq.u32 %p2, %r2, 0; @%p2 bra JOIN; add.u32 %r0, %r0, 256;
    JOIN: add.u32 %r0, %r0, 2;"""
    yield threads("branches in branches", body, inputs=inputs, grid=4)


def _loops() -> Iterator[Entry]:
    inputs = [words("loops", 512)]
    body = f"""{_LOAD} and.b32 %r2, %r1, 31; mov.u32 %r0, 1; LOOP: setp.eq.u32 %p1, %r2, 0; @%p1 bra OUT;
    mad.lo.u32 %r0, %r0, 7, %r2; sub.u32 %r2, %r2, 1; bra LOOP; OUT:"""
    yield threads("a loop as long as each thread wants", body, inputs=inputs, grid=4)
    body = f"""{_LOAD} and.b32 %r2, %r1, 7; shr.u32 %r3, %r1, 29; mov.u32 %r0, 0;
    OUTER: mov.u32 %r4, %r3; INNER: setp.eq.u32 %p1, %r4, 0; @%p1 bra ENDIN; mad.lo.u32 %r0, %r0, 3, %r4;
    sub.u32 %r4, %r4, 1; bra INNER;
    ENDIN: add.u32 %r0, %r0, %r2; setp.eq.u32 %p2, %r2, 0; sub.u32 %r2, %r2, 1; @!%p2 bra OUTER;"""
    yield threads("loops in loops", body, inputs=inputs, grid=4)
    body = f"""{_LOAD} mov.u32 %r0, 0; or.b32 %r2, %r1, 1; and.b32 %r2, %r2, 0xfff; LOOP: setp.eq.u32 %p1, %r2, 1;
    @%p1 bra OUT;
    add.u32 %r0, %r0, 1; and.b32 %r3, %r2, 1; setp.eq.u32 %p2, %r3, 0; @%p2 shr.u32 %r2, %r2, 1;
    @!%p2 mad.lo.u32 %r2, %r2, 3, 1;
    bra LOOP; OUT:"""
    yield threads("steps to one by halves and threes", body, inputs=inputs, grid=4)
    body = f"""{_LOAD} mov.u32 %r0, 0; mov.u32 %r2, 0; LOOP: add.u32 %r2, %r2, 1; shr.u32 %r3, %r1, %r2;
    and.b32 %r3, %r3, 1;
    setp.eq.u32 %p1, %r3, 0; @%p1 bra NEXT; setp.gt.u32 %p2, %r2, 20; @%p2 bra OUT; add.u32 %r0, %r0, %r2;
    NEXT: setp.lt.u32 %p3, %r2, 30; @%p3 bra LOOP; OUT:"""
    yield threads("a loop with continue and break", body, inputs=inputs, grid=4)


def _barriers() -> Iterator[Entry]:
    load = f"{_LOAD} mov.u32 %r5, s; and.b32 %r6, %t, 127; mad.lo.u32 %r7, %r6, 4, %r5;"
    swap = "xor.b32 %r6, %r6, 96; mad.lo.u32 %r8, %r6, 4, %r5;"
    inputs = [words("barriers", 128)]
    for barrier in (
        "bar.sync 0;",
        "bar.sync 3, 128;",
        "barrier.sync 1;",
        "barrier.sync.aligned 2, 128;",
        "bar.cta.sync 4;",
    ):
        body = f"{load} st.shared.b32 [%r7], %r1; {swap} {barrier} ld.shared.b32 %r0, [%r8];"
        yield threads(barrier.strip(";"), body, inputs=inputs, before=_SHARED)
    body = f"""{load} setp.ge.u32 %p1, %r6, 64; @%p1 bra UPPER; st.shared.b32 [%r7], %r1; bar.sync 1, 64;
    xor.b32 %r6, %r6, 32;
    bra READ; UPPER: st.shared.b32 [%r7], %r1; bar.sync 2, 64; xor.b32 %r6, %r6, 32;
    READ: mad.lo.u32 %r8, %r6, 4, %r5; ld.shared.b32 %r0, [%r8];"""
    yield threads("two named barriers, half of the block at each", body, inputs=inputs, before=_SHARED)
    body = f"""{load} setp.ge.u32 %p1, %r6, 64; @%p1 bra UPPER; st.shared.b32 [%r7], %r1; membar.cta;
    bar.arrive 1, 128; mov.u32 %r0, 1; bra OUT;
    UPPER: bar.sync 1, 128; xor.b32 %r6, %r6, 64; mad.lo.u32 %r8, %r6, 4, %r5; ld.shared.b32 %r0, [%r8]; OUT:"""
    yield threads("bar.arrive and bar.sync", body, inputs=inputs, before=_SHARED)
    flag = f"{_LOAD} and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0;"
    for name in ("and", "or"):
        for bang in ("", "!"):
            body = f"{flag} bar.red.{name}.pred %p2, 0, {bang}%p1; selp.b32 %r0, 1, 0, %p2;"
            yield threads(f"bar.red.{name}.pred of {bang}p", body, inputs=[words("red", 512)], grid=4)
    for count in ("", ", 128"):
        body = f"{flag} bar.red.popc.u32 %r0, 1{count}, %p1;"
        yield threads(f"bar.red.popc.u32{count}", body, inputs=[words("red", 512)], grid=4)
    body = f"""{load} st.shared.b32 [%r7], %r1; bar.warp.sync -1; xor.b32 %r6, %r6, 9; mad.lo.u32 %r8, %r6, 4, %r5;
    ld.shared.b32 %r0, [%r8];"""
    yield threads("bar.warp.sync", body, inputs=inputs, before=_SHARED)


def _registers() -> Iterator[Entry]:
    names = [f"{base}.{axis}" for base, axis in product(("tid", "ntid", "ctaid", "nctaid"), "xyz")]
    names += ["laneid", *(f"lanemask_{relation}" for relation in ("lt", "le", "eq", "gt", "ge")), "dynamic_smem_size"]
    for name in names:
        yield threads(f"%{name}", f"mov.u32 %r0, %{name};", grid=2, block=96)
    yield threads("warp numbers", "and.b32 %r1, %t, 127; shr.u32 %r2, %r1, 5; mul.lo.u32 %r0, %r2, 3;", grid=2)
    for name in (
        "cluster_ctarank",
        "cluster_nctarank",
        "cluster_ctaid.x",
        "cluster_nctaid.x",
        "clusterid.x",
        "nclusterid.x",
    ):
        yield threads(f"%{name} without clusters", f"mov.u32 %r0, %{name};", grid=3, block=32)
    yield threads("mov.b32 of a float", "mov.f32 %r0, 0f40490FDB;")
    yield threads("mov.b64 of a double", "mov.f64 %d0, 0d400921FB54442D18;", results=["u8"])
    yield threads("mov.u32 of negative and hexadecimal", "mov.u32 %r1, -7; mov.u32 %r2, 0xF00; add.u32 %r0, %r1, %r2;")


def _orders() -> Iterator[Entry]:
    """What orders memory or only hints changes no value."""
    for name in (
        "membar.cta",
        "membar.gl",
        "fence.acq_rel.gpu",
        "fence.sc.cta",
        "fence.proxy.async",
        "fence.proxy.async.shared::cta",
        "griddepcontrol.wait",
        "griddepcontrol.launch_dependents",
        "nanosleep.u32 20",
        "prefetch.global.L2 [%a0]",
        "prefetchu.L1 [%a0]",
    ):
        yield threads(name.split(" [")[0], f"{_LOAD} {name}; mov.u32 %r0, %r1;", inputs=[words(name, 128)])
