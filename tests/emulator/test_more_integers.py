"""Carries and the integer instructions that compilers seldom emit, against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptx_kernels import apply, kernel_text, run_kernel

EDGES = [0, 1, 2, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0x55555555, 0xFFFF, 0x10000]
WORDS = st.one_of(st.sampled_from(EDGES), st.integers(0, 0xFFFFFFFF))
ROWS = st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=32, max_size=32)
MASK = 0xFFFFFFFF


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def columns(rows: list[tuple[int, int, int, int]]) -> list[np.ndarray]:
    return [np.array(column, np.uint32) for column in zip(*rows, strict=True)]


@given(rows=ROWS)
@settings(max_examples=15, deadline=None)
def test_sums_of_several_words(rows: list[tuple[int, int, int, int]]) -> None:
    """96-bit sums and differences by two carries; a 64-bit multiply-add by one."""
    data = np.array(rows, np.uint32)
    out = np.zeros((len(rows), 8), np.uint32)
    body = """
    mad.wide.u32 %x0, %t, 16, %a0; ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%x0];
    add.cc.u32 %r10, %r1, %r2; addc.cc.u32 %r11, %r2, %r3; addc.u32 %r12, %r3, %r4;
    sub.cc.s32 %r13, %r1, %r2; subc.cc.s32 %r14, %r2, %r3; subc.s32 %r15, %r3, %r4;
    mad.lo.cc.u32 %r16, %r1, %r2, %r3; madc.hi.u32 %r17, %r1, %r2, %r4;
    mad.wide.u32 %o, %t, 32, %a1;
    st.global.v4.b32 [%o], {%r10, %r11, %r12, %r13}; st.global.v4.b32 [%o+16], {%r14, %r15, %r16, %r17};
"""
    run_kernel(kernel_text(body, 2), [data, out], block=len(rows))
    for (a, b, c, d), got in zip(rows, out.tolist(), strict=True):
        first, second = a | b << 32 | c << 64, b | c << 32 | d << 64
        total, difference = first + second, first - second
        product = a * b + (c | d << 32)
        wanted = [
            total,
            total >> 32,
            total >> 64,
            difference,
            difference >> 32,
            difference >> 64,
            product,
            product >> 32,
        ]
        assert got == [value & MASK for value in wanted]


def dot(a: int, b: int, c: int, *, left: int, kinds: str, first: int = 0) -> int:
    """`left`: bits of a's parts; b's are bytes."""
    total = c
    for place in range(32 // left):
        x, y = a >> left * place & ((1 << left) - 1), b >> 8 * (first + place) & 0xFF
        total += (signed(x, left) if kinds[0] == "s" else x) * (signed(y, 8) if kinds[1] == "s" else y)
    return total & MASK


def highest(value: int, *, negative: bool) -> int:
    size = ~value & MASK if negative and value >> 31 else value
    return size.bit_length() - 1 & MASK


FORMS = {
    "mul24.lo.s32 {}, {}, {}": lambda a, b, c: signed(a, 24) * signed(b, 24),
    "mul24.hi.u32 {}, {}, {}": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 16,
    "mad24.lo.u32 {}, {}, {}, {}": lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c,
    "sad.u32 {}, {}, {}, {}": lambda a, b, c: c + abs(a - b),
    "sad.s32 {}, {}, {}, {}": lambda a, b, c: c + abs(signed(a) - signed(b)),
    "dp4a.s32.s32 {}, {}, {}, {}": lambda a, b, c: dot(a, b, c, left=8, kinds="ss"),
    "dp4a.u32.s32 {}, {}, {}, {}": lambda a, b, c: dot(a, b, c, left=8, kinds="us"),
    "dp2a.lo.s32.u32 {}, {}, {}, {}": lambda a, b, c: dot(a, b, c, left=16, kinds="su"),
    "dp2a.hi.u32.u32 {}, {}, {}, {}": lambda a, b, c: dot(a, b, c, left=16, kinds="uu", first=2),
    "bfind.u32 {}, {}": lambda a, b, c: highest(a, negative=False),
    "bfind.s32 {}, {}": lambda a, b, c: highest(a, negative=True),
    "bfind.shiftamt.u32 {}, {}": lambda a, b, c: 31 - highest(a, negative=False) if a else MASK,
    "szext.clamp.s32 {}, {}, {}": lambda a, b, c: signed(a, min(b, 32)) if b else 0,
    "szext.wrap.u32 {}, {}, {}": lambda a, b, c: a & ((1 << b % 32) - 1),
    "bmsk.clamp.b32 {}, {}, {}": lambda a, b, c: ((1 << min(b, 32)) - 1) << a if a < 32 else 0,
    "bmsk.wrap.b32 {}, {}, {}": lambda a, b, c: ((1 << b % 32) - 1) << a % 32,
    "cnot.b32 {}, {}": lambda a, b, c: a == 0,
    "add.sat.s32 {}, {}, {}": lambda a, b, c: max(-(2**31), min(2**31 - 1, signed(a) + signed(b))),
    "max.relu.s32 {}, {}, {}": lambda a, b, c: max(0, signed(a), signed(b)),
    "add.u16x2 {}, {}, {}": lambda a, b, c: (a + b & 0xFFFF) | ((a >> 16) + (b >> 16) << 16),
    "min.s16x2 {}, {}, {}": lambda a, b, c: (
        min(signed(a, 16), signed(b, 16)) & 0xFFFF | min(signed(a >> 16, 16), signed(b >> 16, 16)) << 16
    ),
    "prmt.b32.f4e {}, {}, {}, {}": lambda a, b, c: (b << 32 | a) >> 8 * (c & 3),
    "prmt.b32.rc16 {}, {}, {}, {}": lambda a, b, c: (a >> 16 * (c & 1) & 0xFFFF) * 0x10001,
}


@pytest.mark.parametrize("form", FORMS)
@given(rows=ROWS)
@settings(max_examples=8, deadline=None)
def test_seldom_emitted(form: str, rows: list[tuple[int, int, int, int]]) -> None:
    a, b, c, _ = columns(rows)
    if "szext" in form or "bmsk" in form:
        b = b % np.uint32(40)
    if "bmsk" in form:
        a = a % np.uint32(40)
    count = form.count("{}") - 1
    got = apply(form, *(a, b, c)[:count], result=np.uint32)
    triples = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    assert got.tolist() == [int(FORMS[form](*each)) & MASK for each in triples]


@pytest.mark.parametrize(("kind", "step"), [("f16x2", 0x3C00), ("bf16x2", 0x3F80)])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_atomic_sums_of_pairs(kind: str, step: int, space: str) -> None:
    """One is added to the lower half by every thread, two to the upper half."""
    cell, two = np.zeros(1, np.uint32), step + (0x400 if kind == "f16x2" else 0x80)
    add = f"mov.b32 %r1, {two << 16 | step}; red.{space}.add.noftz.{kind} [%x0], %r1;"
    body = f"mov.u64 %x0, %a0; {add}"
    if space == "shared":
        body = f"""mov.u64 %x0, s; setp.eq.u32 %p1, %t, 0; mov.b32 %r2, 0; @%p1 st.shared.b32 [%x0], %r2; bar.sync 0;
        {add} bar.sync 0; ld.shared.b32 %r3, [%x0]; @%p1 st.global.b32 [%a0], %r3;"""
    run_kernel(kernel_text(body, 1, before=".shared .align 16 .b8 s[16];"), [cell], block=64)
    low, high = (np.array([int(cell[0]) >> shift & 0xFFFF], np.uint16) for shift in (0, 16))
    values = [
        (each.view(np.float16) if kind == "f16x2" else (each.astype(np.uint32) << 16).view(np.float32))[0]
        for each in (low, high)
    ]
    assert values == [64, 128]


def test_atomic_sums_of_neighbours() -> None:
    cells = np.zeros(4, np.float32)
    body = "mov.b32 %r1, 0f3F800000; mov.b32 %r2, 0f40000000; red.global.add.v2.f32 [%a0+8], {%r1, %r2};"
    run_kernel(kernel_text(body, 1), [cells], block=64)
    assert cells.tolist() == [0, 0, 64, 128]


@pytest.mark.parametrize(
    ("kind", "register", "dtype"), [("b16", "h", np.uint16), ("b32", "r", np.uint32), ("b64", "d", np.uint64)]
)
def test_compare_and_swap(kind: str, register: str, dtype: type) -> None:
    """Every other cell holds what is expected."""
    size = np.dtype(dtype).itemsize
    cells = np.arange(32, dtype=dtype)
    cells[1::2] = 77
    body = f"""
    mad.wide.u32 %x0, %t, {size}, %a0; cvt.u{8 * size}.u32 %{register}1, %t;
    add.u{8 * size} %{register}2, %{register}1, 100;
    atom.global.cas.{kind} %{register}0, [%x0], %{register}1, %{register}2;
"""
    run_kernel(kernel_text(body, 1), [cells])
    assert cells.tolist() == [77 if thread % 2 else thread + 100 for thread in range(32)]


def ticks(name: str, rounds: int) -> list[int]:
    """What a clock says passed in a loop of three instructions, by thread."""
    wide = name in ("%clock64", "%globaltimer")
    register, kind = ("d", "u64") if wide else ("r", "u32")
    body = f"""
    mov.{kind} %{register}1, {name}; mov.u32 %r9, 0;
LOOP: add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, {rounds}; @%p1 bra LOOP;
    mov.{kind} %{register}2, {name}; sub.{kind} %{register}3, %{register}2, %{register}1;
    {"cvt.u32.u64 %r3, %d3;" if wide else ""} mad.wide.u32 %o, %t, 4, %a0; st.global.b32 [%o], %r3;
"""
    out = np.zeros(32, np.uint32)
    run_kernel(kernel_text(body, 1), [out])
    return out.tolist()


@pytest.mark.parametrize("name", ["%clock", "%clock64", "%globaltimer", "%globaltimer_lo"])
def test_clocks_count_instructions_and_are_the_same_in_every_run(name: str) -> None:
    ten, twenty = ticks(name, 10), ticks(name, 20)
    assert ten == ticks(name, 10)
    assert {late - early for early, late in zip(ten, twenty, strict=True)} == {10 * 3 * 32}
