"""match, redux and elect, by what a loop over the lanes says; votes of complements."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from ptx_kernels import kernel_text, run_kernel

LANES = range(32)
SEVERAL = {"whole": 0xFFFFFFFF, "even": 0x55555555}


def run(body: str, values: np.ndarray, *, block: int = 64) -> np.ndarray:
    """(threads, 2): %r0 and %r1 of each, whose value is in %r9 and %d9, extended by its sign."""
    out = np.full((block, 2), 99, np.uint32)
    load = "mad.wide.u32 %x0, %t, 4, %a0; ld.global.b32 %r9, [%x0]; cvt.s64.s32 %d9, %r9; and.b32 %r8, %t, 31;"
    store = "OUT: mad.wide.u32 %o, %t, 8, %a1; st.global.v2.b32 [%o], {%r0, %r1};"
    clear = "mov.b32 %r0, 99; mov.b32 %r1, 99;"
    run_kernel(kernel_text(f"{load} {clear} {body} {store}", 2), [values, out], block=block)
    return out


def only(members: int) -> str:
    """Lanes that are not named leave."""
    return f"mov.u32 %r7, {members}; shr.u32 %r7, %r7, %r8; and.b32 %r7, %r7, 1; setp.eq.u32 %p9, %r7, 0; @%p9 bra OUT;"


def few(seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).integers(-2, 3, 64).astype(np.int32).view(np.uint32)
    values[32:] = 7
    return values


def named(members: int, warp: int) -> list[int]:
    return [32 * warp + lane for lane in LANES if members >> lane & 1]


REDUCTIONS = {
    "add.u32": lambda a, b: (a + b) & 0xFFFFFFFF,
    "add.s32": lambda a, b: (a + b) & 0xFFFFFFFF,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda a, b: min(a, b, key=lambda value: value - ((value >> 31) << 32)),
    "max.s32": lambda a, b: max(a, b, key=lambda value: value - ((value >> 31) << 32)),
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("members", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_redux(name: str, members: int) -> None:
    values = few()
    got = run(f"{only(members)} redux.sync.{name} %r0, %r9, {members};", values)
    for warp in (0, 1):
        group = named(members, warp)
        wanted = reduce(REDUCTIONS[name], [int(values[thread]) for thread in group])
        assert [int(got[thread, 0]) for thread in group] == [wanted] * len(group)


@pytest.mark.parametrize("members", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize(("kind", "register"), [("b32", "%r9"), ("b64", "%d9")])
def test_match(kind: str, register: str, members: int) -> None:
    values = few()
    some = run(f"{only(members)} match.any.sync.{kind} %r0, {register}, {members};", values)
    every = run(
        f"{only(members)} match.all.sync.{kind} %r0|%p1, {register}, {members}; selp.b32 %r1, 1, 0, %p1;", values
    )
    for warp in (0, 1):
        group = named(members, warp)
        for thread in group:
            same = sum(1 << other % 32 for other in group if values[other] == values[thread])
            assert some[thread, 0] == same
        alike = len({int(values[thread]) for thread in group}) == 1
        assert {tuple(every[thread]) for thread in group} == {(members if alike else 0, alike)}


def test_elect_takes_one_lane() -> None:
    got = run("elect.sync %r0|%p1, -1; selp.b32 %r1, 1, 0, %p1;", few())
    assert set(got[:, 0].tolist()) == {0}
    assert got[:, 1].tolist() == 2 * [1, *([0] * 31)]
    upper = run(f"{only(0xFFFFF000)} elect.sync _|%p1, 0xfffff000; selp.b32 %r1, 1, 0, %p1;", few())
    assert upper[:, 1].tolist() == 2 * [*([99] * 12), 1, *([0] * 19)]


def test_groups_of_one_warp_that_come_at_once() -> None:
    """Each half names itself alone."""
    body = """
    setp.lt.u32 %p1, %r8, 16; selp.b32 %r6, 0x0000ffff, 0xffff0000, %p1;
    redux.sync.add.u32 %r0, %r8, %r6;
"""
    got = run(body, few())
    assert got[:, 0].tolist() == 2 * ([sum(range(16))] * 16 + [sum(range(16, 32))] * 16)


@pytest.mark.parametrize(("mode", "wanted"), [("all", 0), ("any", 1), ("uni", 0)])
def test_votes_of_a_complement(mode: str, wanted: int) -> None:
    body = f"setp.lt.u32 %p1, %r8, 5; vote.sync.{mode}.pred %p2, !%p1, -1; selp.b32 %r0, 1, 0, %p2;"
    assert set(run(body, few())[:, 0].tolist()) == {wanted}
