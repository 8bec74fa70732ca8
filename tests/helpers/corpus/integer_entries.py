"""Integer arithmetic, logic, shifts and bit fields."""

from __future__ import annotations

from collections.abc import Iterator

from corpus.entry import Entry, applied, instruction, threads, words
from corpus.values import operands

_WORDS = ("u16", "s16", "u32", "s32", "u64", "s64")
_BITS = ("b16", "b32", "b64")


def entries() -> Iterator[Entry]:
    yield from _arithmetic()
    yield from _products()
    yield from _logic()
    yield from _fields()
    yield from _packed()
    yield from _carries()


def _arithmetic() -> Iterator[Entry]:
    for kind in _WORDS:
        for name in ("add", "sub", "div", "rem", "min", "max"):
            yield applied(f"{name}.{kind}", [kind, kind], kind)
    for kind in ("s16", "s32", "s64"):
        yield applied(f"neg.{kind}", [kind], kind)
        yield applied(f"abs.{kind}", [kind], kind)
    for opcode in ("add.sat.s32", "sub.sat.s32", "min.relu.s32", "max.relu.s32"):
        yield applied(opcode, ["s32", "s32"], "s32")
    for kind in _WORDS:
        yield applied(f"sad.{kind}", [kind, kind, kind], kind)


def _products() -> Iterator[Entry]:
    for kind in _WORDS:
        for part in ("lo", "hi"):
            yield applied(f"mul.{part}.{kind}", [kind, kind], kind)
            yield applied(f"mad.{part}.{kind}", [kind, kind, kind], kind)
        if not kind.endswith("64"):
            double = f"{kind[0]}{2 * int(kind[1:])}"
            yield applied(f"mul.wide.{kind}", [kind, kind], double)
            yield applied(f"mad.wide.{kind}", [kind, kind, double], double)
    yield applied("mad.hi.sat.s32", ["s32", "s32", "s32"], "s32")
    for kind in ("u32", "s32"):
        yield applied(f"mul24.lo.{kind}", [kind, kind], kind)
        yield applied(f"mad24.lo.{kind}", [kind, kind, kind], kind)
        for other in ("u32", "s32"):
            yield applied(f"dp4a.{kind}.{other}", ["b32", "b32", "b32"], "b32")
            yield applied(f"dp2a.lo.{kind}.{other}", ["b32", "b32", "b32"], "b32")


def _logic() -> Iterator[Entry]:
    for kind in _BITS:
        for name in ("and", "or", "xor"):
            yield applied(f"{name}.{kind}", [kind, kind], kind)
        yield applied(f"not.{kind}", [kind], kind)
        yield applied(f"cnot.{kind}", [kind], kind)
        yield applied(f"shl.{kind}", [kind, "count"], kind)
        yield applied(f"shr.{kind}", [kind, "count"], kind)
    for kind in _WORDS:
        yield applied(f"shr.{kind}", [kind, "count"], kind)
    for side in ("l", "r"):
        for mode in ("wrap", "clamp"):
            yield applied(f"shf.{side}.{mode}.b32", ["b32", "b32", "count"], "b32")
    for table in (0x01, 0x1B, 0x3C, 0x6A, 0x80, 0x96, 0xCA, 0xE8, 0xF8, 0xFE):
        inputs = operands(["b32"] * 3, f"lop3 {table}", 256)
        yield instruction(f"lop3.b32 0x{table:02x}", f"lop3.b32 {{}}, {{}}, {{}}, {{}}, {table}", inputs, "u4")
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield applied(f"prmt.b32{mode}", ["b32", "b32", "b32"], "b32")
    for name in ("and", "or", "xor"):
        text = f"setp.lt.s32 %p1, {{1}}, 0; setp.gt.s32 %p2, {{2}}, 9; {name}.pred {{0}}, %p1, %p2"
        inputs = operands(["s32", "s32"], f"{name}.pred", 256)
        yield instruction(f"{name}.pred", text, inputs, "u1", predicate=True)
    inputs = operands(["s32"], "not.pred", 256)
    yield instruction("not.pred", "setp.lt.s32 %p1, {1}, 0; not.pred {0}, %p1", inputs, "u1", predicate=True)


def _fields() -> Iterator[Entry]:
    for kind in ("b32", "b64"):
        for name in ("popc", "clz"):
            yield applied(f"{name}.{kind}", [kind], "b32")
        yield applied(f"brev.{kind}", [kind], kind)
        yield applied(f"bfi.{kind}", [kind, kind, "count", "count"], kind)
    for kind in ("u32", "s32", "u64", "s64"):
        yield applied(f"bfe.{kind}", [kind, "count", "count"], kind)
        yield applied(f"bfind.{kind}", [kind], "b32")
        yield applied(f"bfind.shiftamt.{kind}", [kind], "b32")
    for mode in ("clamp", "wrap"):
        yield applied(f"bmsk.{mode}.b32", ["count", "count"], "b32")
        for kind in ("u32", "s32"):
            yield applied(f"szext.{mode}.{kind}", [kind, "count"], kind)


def _packed() -> Iterator[Entry]:
    """Two 16-bit values in one register."""
    for kind in ("u16x2", "s16x2"):
        for name in ("add", "min", "max"):
            yield applied(f"{name}.{kind}", ["b32", "b32"], "b32")
    for name in ("min", "max"):
        yield applied(f"{name}.relu.s16x2", ["b32", "b32"], "b32")
    text = "mov.b32 {{%h5, %h6}}, {1}; mov.b32 {0}, {{%h6, %h5}}"
    yield instruction("mov.b32 of halves", text, operands(["b32"], "mov halves", 256), "u4")
    text = "mov.b64 {{%r5, %r6}}, {1}; mov.b64 {0}, {{%r6, %r5}}"
    yield instruction("mov.b64 of words", text, operands(["b64"], "mov words", 256), "u8")
    text = "mov.b64 {{%h5, %h6, %h7, %h8}}, {1}; mov.b64 {0}, {{%h8, %h5, %h7, %h6}}"
    yield instruction("mov.b64 of quarters", text, operands(["b64"], "mov quarters", 256), "u8")


def _carries() -> Iterator[Entry]:
    """Two and three words long: the carry goes from one instruction to the next."""
    load = "mad.wide.u32 %x0, %t, 16, %a0; ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%x0];"
    inputs = [_runs_of_ones("carries")]
    for name in ("add", "sub"):
        body = f"{load} {name}.cc.u32 %r0, %r1, %r3; {name}c.u32 %r1, %r2, %r4;"
        yield threads(f"{name}.cc.u32 {name}c.u32", body, inputs=inputs, results=["u4", "u4"])
        body = f"{load} {name}.cc.s32 %r0, %r1, %r2; {name}c.cc.s32 %r1, %r2, %r3; {name}c.s32 %r2, %r3, %r4;"
        yield threads(f"{name}.cc.s32 {name}c.cc.s32", body, inputs=inputs, results=["u4"] * 3)
        body = f"""mad.wide.u32 %x0, %t, 16, %a0; ld.global.v2.b64 {{%d1, %d2}}, [%x0];
        {name}.cc.u64 %d0, %d1, %d2; {name}c.u64 %d1, %d1, %d2;"""
        yield threads(f"{name}.cc.u64 {name}c.u64", body, inputs=inputs, results=["u8", "u8"])
    body = f"{load} mad.lo.cc.u32 %r0, %r1, %r2, %r3; madc.hi.u32 %r1, %r1, %r2, %r4;"
    yield threads("mad.lo.cc.u32 madc.hi.u32", body, inputs=inputs, results=["u4", "u4"])


def _runs_of_ones(name: str):
    """Four words for each of 128 threads, half of them all ones or zero, so that carries travel."""
    found, choice = words(name, 512), words(f"{name}/choice", 512)
    found[choice % 4 == 0] = 0xFFFFFFFF
    found[choice % 4 == 1] = 0
    return found
