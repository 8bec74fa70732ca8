"""Lanes that exchange values: shuffles, votes, matches, reductions, elections."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from corpus.entry import Array, Entry, threads, words

_LOAD = "mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r1, [%x0];"
_FLAG = f"{_LOAD} and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0;"
_TO_RESULT = "selp.b32 %r0, 1, 0, %p2;"


def entries() -> Iterator[Entry]:
    yield from _shuffles()
    yield from _votes()
    yield from _matches()
    yield from _reductions()
    yield from _elections()


def _shuffles() -> Iterator[Entry]:
    """Every mode over segments of every width; then lane and clamp by lane, and part of the lanes."""
    for mode, width in product(("up", "down", "bfly", "idx"), (32, 16, 8, 4, 2)):
        packed = (32 - width) << 8 | (0 if mode == "up" else 31)
        lines = [f"{_LOAD} mov.u32 %r2, 0; mov.u32 %r0, 0;"]
        for by in (0, 1, 3, 7, 16, 31):
            lines.append(f"shfl.sync.{mode}.b32 %r3|%p1, %r1, {by}, {packed}, -1; selp.u32 %r4, 1, 0, %p1;")
            lines.append("mad.lo.u32 %r0, %r0, 3, %r3; shl.b32 %r2, %r2, 1; or.b32 %r2, %r2, %r4;")
        lines.append("mov.b32 %r1, %r2;")
        name = f"shfl.sync.{mode}.b32 in segments of {width}"
        yield threads(name, "\n".join(lines), inputs=[words(name, 128)], results=["u4", "u4"])
    for mode in ("up", "down", "bfly", "idx"):
        body = f"""{_LOAD} shr.u32 %r2, %r1, 7; and.b32 %r3, %r1, 0x1f1f;
        shfl.sync.{mode}.b32 %r0|%p1, %r1, %r2, %r3, -1; selp.u32 %r1, 1, 0, %p1;"""
        name = f"shfl.sync.{mode}.b32, lane and clamp by lane"
        yield threads(name, body, inputs=[words(name, 512)], results=["u4", "u4"], grid=4)
    body = f"""{_LOAD} mov.u32 %r0, 0; and.b32 %r2, %t, 16; setp.ne.u32 %p1, %r2, 0; @%p1 bra HIGH;
    shfl.sync.bfly.b32 %r0, %r1, 5, 31, 0x0000ffff; bra JOIN;
HIGH: shfl.sync.down.b32 %r0, %r1, 3, 31, 0xffff0000; JOIN:"""
    yield threads("shfl.sync by half warps on two ways", body, inputs=[words("half warps", 128)])
    body = _LOAD + "\n".join(
        f"shfl.sync.bfly.b32 %r2, %r1, {by}, 31, -1; add.u32 %r1, %r1, %r2;" for by in (16, 8, 4, 2, 1)
    )
    yield threads("a warp's sum by shuffles", body + "mov.b32 %r0, %r1;", inputs=[words("warp sum", 128)])


def _votes() -> Iterator[Entry]:
    for mode in ("all", "any", "uni"):
        body = f"{_FLAG} vote.sync.{mode}.pred %p2, %p1, -1; {_TO_RESULT}"
        yield threads(f"vote.sync.{mode}.pred", body, inputs=[_some_equal(mode)])
        body = f"{_FLAG} vote.sync.{mode}.pred %p2, !%p1, -1; {_TO_RESULT}"
        yield threads(f"vote.sync.{mode}.pred of a complement", body, inputs=[_some_equal(mode)])
    yield threads("vote.sync.ballot.b32", f"{_FLAG} vote.sync.ballot.b32 %r0, %p1, -1;", inputs=[words("ballot", 128)])
    body = f"""{_FLAG} mov.u32 %r0, 0; and.b32 %r3, %t, 1; setp.ne.u32 %p3, %r3, 0; @%p3 bra ODD;
    vote.sync.ballot.b32 %r0, %p1, 0x55555555; bra JOIN;
ODD: vote.sync.ballot.b32 %r0, %p1, 0xaaaaaaaa; JOIN:"""
    yield threads("vote.sync.ballot.b32 of even and odd lanes", body, inputs=[words("ballots", 128)])
    body = "mov.u32 %r0, 0; and.b32 %r1, %t, 31; setp.lt.u32 %p1, %r1, 11; @%p1 activemask.b32 %r0;"
    yield threads("activemask.b32 under a predicate", body)


def _some_equal(name: str) -> Array:
    """Warps in which all, none and some of the lanes have a multiple of four."""
    found = words(name, 128)
    found[32:64] &= 0xFFFFFFFC
    found[64:96] |= 1
    return found


def _few(name: str) -> Array:
    """Few different values, so that lanes match."""
    found = words(name, 128) % 5
    found[32:64] = 7
    return found


def _matches() -> Iterator[Entry]:
    inputs = [_few("match")]
    yield threads("match.any.sync.b32", f"{_LOAD} match.any.sync.b32 %r0, %r1, -1;", inputs=inputs)
    body = f"{_LOAD} match.all.sync.b32 %r0|%p2, %r1, -1; selp.b32 %r1, 1, 0, %p2;"
    yield threads("match.all.sync.b32", body, inputs=inputs, results=["u4", "u4"])
    wide = f"{_LOAD} cvt.u64.u32 %d1, %r1; shl.b64 %d1, %d1, 31; add.u64 %d1, %d1, 9;"
    yield threads("match.any.sync.b64", f"{wide} match.any.sync.b64 %r0, %d1, -1;", inputs=inputs)
    body = f"{wide} match.all.sync.b64 %r0|%p2, %d1, -1; selp.b32 %r1, 1, 0, %p2;"
    yield threads("match.all.sync.b64", body, inputs=inputs, results=["u4", "u4"])


def _reductions() -> Iterator[Entry]:
    kinds = [(name, kind) for name in ("add", "min", "max") for kind in ("u32", "s32")]
    for name, kind in (*kinds, *((name, "b32") for name in ("and", "or", "xor"))):
        opcode = f"redux.sync.{name}.{kind}"
        yield threads(opcode, f"{_LOAD} {opcode} %r0, %r1, -1;", inputs=[words(opcode, 128)])
    body = f"""{_LOAD} mov.u32 %r0, 0; and.b32 %r2, %t, 31; setp.lt.u32 %p1, %r2, 9;
    @%p1 redux.sync.add.u32 %r0, %r1, 0x000001ff;"""
    yield threads("redux.sync.add.u32 of nine lanes", body, inputs=[words("nine lanes", 128)])


def _elections() -> Iterator[Entry]:
    body = "elect.sync %r0|%p2, -1; selp.b32 %r1, 1, 0, %p2;"
    yield threads("elect.sync", body, results=["u4", "u4"])
    body = """mov.u32 %r0, 99; mov.u32 %r1, 99; and.b32 %r2, %t, 31; setp.lt.u32 %p1, %r2, 12; @%p1 bra OUT;
    elect.sync %r0|%p2, 0xfffff000; selp.b32 %r1, 1, 0, %p2; OUT:"""
    yield threads("elect.sync of the upper lanes", body, results=["u4", "u4"])
    body = "elect.sync _|%p2, -1; mov.u32 %r0, 5; @%p2 mov.u32 %r0, 6;"
    yield threads("elect.sync without the lane", body)
