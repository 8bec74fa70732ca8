"""setp in all its forms, set, selp and slct."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from corpus.entry import Entry, applied, instruction
from corpus.values import operands, width_of

_ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
_FLOAT = (*_ORDERED, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_INTEGERS = ("u16", "s16", "u32", "s32", "u64", "s64")


def entries() -> Iterator[Entry]:
    yield from _integers()
    yield from _floats()
    yield from _joined()
    yield from _choices()


def _integers() -> Iterator[Entry]:
    for kind, relation in product(_INTEGERS, _ORDERED):
        yield applied(f"setp.{relation}.{kind}", [kind, kind], "pred", count=512)
    for kind, relation in product(("u16", "u32", "u64"), ("lo", "ls", "hi", "hs")):
        yield applied(f"setp.{relation}.{kind}", [kind, kind], "pred", count=512)
    for kind, relation in product(("b16", "b32", "b64"), ("eq", "ne")):
        yield applied(f"setp.{relation}.{kind}", [kind, kind], "pred", count=512)


def _floats() -> Iterator[Entry]:
    for kind, relation in product(("f32", "f64", "f16", "bf16"), _FLOAT):
        yield applied(f"setp.{relation}.{kind}", [kind, kind], "pred")
    for kind, relation in product(("f32", "f16"), _FLOAT):
        yield applied(f"setp.{relation}.ftz.{kind}", [kind, kind], "pred")
    for kind, relation in product(("f16x2", "bf16x2"), _FLOAT):
        opcode = f"setp.{relation}.{kind}"
        text = f"""{opcode} %p1|%p2, {{1}}, {{2}}; selp.b32 %r9, 2, 0, %p2; selp.b32 {{0}}, 1, 0, %p1;
        or.b32 {{0}}, {{0}}, %r9"""
        yield instruction(opcode, text, operands([kind, kind], opcode, 1024), "u4")


def _joined() -> Iterator[Entry]:
    """With a third predicate, plain and negated; and the complement as a second result."""
    for join, kind, bang in product(("and", "or", "xor"), ("s32", "f32"), ("", "!")):
        opcode = f"setp.lt.{join}.{kind}"
        text = f"setp.ne.b32 %p5, {{3}}, 0; {opcode} %p1|%p2, {{1}}, {{2}}, {bang}%p5; "
        text += "selp.b32 %r9, 2, 0, %p2; selp.b32 {0}, 1, 0, %p1; or.b32 {0}, {0}, %r9"
        inputs = operands([kind, kind], opcode, 512)
        flags = operands(["b32"], f"{opcode}/flag", 512)[0] & 1
        yield instruction(f"{opcode} p|q with {bang}r", text, [*inputs, flags], "u4")


def _choices() -> Iterator[Entry]:
    for kind in ("b16", "b32", "b64", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"):
        text = f"setp.gt.s32 %p1, {{3}}, 5; selp.{kind} {{0}}, {{1}}, {{2}}, %p1"
        inputs = operands([kind, kind, "s32"], f"selp.{kind}", 256)
        yield instruction(f"selp.{kind}", text, inputs, f"u{width_of(kind) // 8}")
    for kind, by in product(("b32", "f32", "b64"), ("s32", "f32")):
        yield applied(f"slct.{kind}.{by}", [kind, kind, by], kind, count=256)
    for to, kind in product(("u32", "f32"), ("s32", "f32")):
        yield applied(f"set.lt.{to}.{kind}", [kind, kind], to, count=512)
    yield applied("set.lt.f16x2.f16x2", ["f16x2", "f16x2"], "b32", count=512)
    yield applied("set.ge.bf16x2.bf16x2", ["bf16x2", "bf16x2"], "b32", count=512)
