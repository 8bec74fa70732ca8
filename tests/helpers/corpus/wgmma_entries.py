"""wgmma: one warp group, operands in shared memory as hashed bytes, which any layout can read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from corpus.entry import Entry, threads
from corpus.matrix_entries import group
from corpus.matrix_values import FORMATS, VARIANTS, elements

_LEFT_BYTES, _RIGHT_BYTES = 16384, 16384
_SWIZZLES = {"none": 0, "128B": 1, "64B": 2, "32B": 3}


@dataclass(frozen=True)
class Group:
    """`leading`, `stride`: byte offsets of the descriptors. `turned`: A and B are stored along M and N."""

    columns: int
    depth: int
    left: str
    right: str
    sum: str
    swizzle: str = "none"
    leading: int = 128
    stride: int = 256
    turned: tuple[int, int] = (0, 0)
    signs: tuple[int, int] = (1, 1)
    from_registers: bool = False
    accumulate: bool = True
    steps: int = 1
    variant: str = "plain"

    @property
    def opcode(self) -> str:
        kinds = f"{self.sum}.{self.left}.{self.right}"
        return f"wgmma.mma_async.sync.aligned.m64n{self.columns}k{self.depth}.{kinds}"

    @property
    def name(self) -> str:
        words = [self.opcode, f"swizzle {self.swizzle}, offsets {self.leading} {self.stride}", self.variant]
        words += [f"turned {self.turned[0]}{self.turned[1]}"] if any(self.turned) else []
        words += [f"signs {self.signs[0]} {self.signs[1]}"] if -1 in self.signs else []
        words += ["A in registers"] if self.from_registers else []
        words += [] if self.accumulate else ["from zero"]
        words += [f"{self.steps} steps"] if self.steps > 1 else []
        return ", ".join(words)


_ALONG = {"none": (128, 256), "32B": (16, 256), "64B": (16, 512), "128B": (16, 1024)}


def _groups() -> Iterator[Group]:
    plain = Group(8, 16, "f16", "f16", "f32")
    for variant in ("integers", "plain", "cancelling", "special"):
        yield replace(plain, variant=variant)
        yield replace(plain, sum="f16", variant=variant)
        yield replace(plain, left="bf16", right="bf16", variant=variant)
        yield replace(plain, left="tf32", right="tf32", depth=8, variant=variant)
        yield replace(plain, left="e4m3", right="e4m3", depth=32, variant=variant)
        yield replace(plain, left="e5m2", right="e5m2", depth=32, variant=variant)
    yield replace(plain, left="e4m3", right="e5m2", depth=32)
    yield replace(plain, left="e4m3", right="e4m3", sum="f16", depth=32)
    for left, right in (("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8")):
        yield replace(plain, left=left, right=right, sum="s32", depth=32)
    yield from _layouts(plain)
    yield from _forms(plain)
    yield from _of_eighths(replace(plain, depth=32))


def _of_eighths(plain: Group) -> Iterator[Group]:
    """What decides how many bits of 8-bit products and of the accumulator are kept."""
    for left, right, total in product(("e4m3", "e5m2"), ("e4m3", "e5m2"), ("f32", "f16")):
        form = replace(plain, left=left, right=right, sum=total)
        for variant in (*VARIANTS, "far"):
            yield replace(form, variant=variant)
        yield replace(form, variant="cancelling", steps=4, columns=16, swizzle="128B", leading=16, stride=1024)
    yield replace(plain, left="e4m3", right="e4m3", variant="far", accumulate=False)


def _layouts(plain: Group) -> Iterator[Group]:
    """Whole numbers, so that a wrong place is seen and the order of sums is not."""
    exact = replace(plain, variant="integers")
    for swizzle, (leading, stride) in _ALONG.items():
        yield replace(exact, columns=32, swizzle=swizzle, leading=leading, stride=stride)
        yield replace(
            exact, columns=32, swizzle=swizzle, leading=leading, stride=stride, left="tf32", right="tf32", depth=8
        )
        yield replace(
            exact, columns=32, swizzle=swizzle, leading=leading, stride=stride, left="e4m3", right="e4m3", depth=32
        )
    for turned in ((1, 0), (0, 1), (1, 1)):
        for swizzle, leading, stride in (
            ("none", 256, 128),
            ("32B", 512, 256),
            ("64B", 1024, 512),
            ("128B", 2048, 1024),
        ):
            # Both operands share the offsets, which mean other things along the other dimension.
            yield replace(exact, columns=32, swizzle=swizzle, leading=leading, stride=stride, turned=turned)
    yield replace(exact, columns=32, leading=1024, stride=128)


def _forms(plain: Group) -> Iterator[Group]:
    for columns in (16, 24, 64):
        yield replace(plain, columns=columns, swizzle="128B", leading=16, stride=1024, variant="integers")
    yield replace(plain, from_registers=True)
    yield replace(plain, from_registers=True, left="bf16", right="bf16", columns=16)
    yield replace(plain, from_registers=True, left="e4m3", right="e4m3", depth=32)
    yield replace(
        plain,
        from_registers=True,
        turned=(0, 1),
        swizzle="128B",
        leading=2048,
        stride=1024,
        columns=64,
        variant="integers",
    )
    yield replace(plain, signs=(-1, 1))
    yield replace(plain, signs=(1, -1), from_registers=True)
    yield replace(plain, accumulate=False)
    for left, depth in (("f16", 16), ("e4m3", 32), ("tf32", 8)):
        form = replace(plain, left=left, right=left, depth=depth, columns=16, swizzle="128B", leading=16, stride=1024)
        yield replace(form, steps=4)
        yield replace(form, steps=4, variant="integers")


def entries() -> Iterator[Entry]:
    for each in dict.fromkeys(_groups()):
        yield _entry(each)


def _entry(form: Group) -> Entry:
    registers = form.columns // (4 if form.sum == "f16" else 2)
    sums = [f"%d_{number}" for number in range(registers)]
    lines = [f".reg .b32 %d_<{registers}>; .reg .b32 %f<4>;", _fill(), _start(registers), "wgmma.fence.sync.aligned;"]
    lines += [_step(form, sums, step) for step in range(form.steps)]
    lines += ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
    lines += [f"mad.wide.u32 %x2, %t, {4 * registers}, %a4;"]
    lines += [f"st.global.b32 [%x2+{4 * number}], {name};" for number, name in enumerate(sums)]
    inputs = [
        _operand(form, form.left, "A", _LEFT_BYTES),
        _operand(form, form.right, "B", _RIGHT_BYTES),
        _operand(form, form.sum, "C", 512 * registers),
        _operand(form, form.left, "A in registers", 2048),
    ]
    outputs = [inputs[2].copy()]
    outputs[0][:] = 0
    before = ".shared .align 1024 .b8 sa[16384];\n.shared .align 1024 .b8 sb[16384];\n"
    return threads(form.name, "\n".join(lines), inputs=inputs, outputs=outputs, results=[], before=before)


def _operand(form: Group, kind: str, which: str, size: int):
    width = FORMATS[kind][2] if kind in FORMATS else {"s8": 1, "u8": 1, "s32": 4}[kind]
    return elements(kind, form.variant, f"{form.name}/{which}", size // width).view("u4")


def _fill() -> str:
    """Both operands from global to shared memory, 128 bytes a thread and operand."""
    lines = ["mov.u32 %r5, sa; mov.u32 %r6, sb; mad.lo.u32 %r7, %t, 128, %r5; mad.lo.u32 %r8, %t, 128, %r6;"]
    lines.append("mad.wide.u32 %x0, %t, 128, %a0; mad.wide.u32 %x1, %t, 128, %a1;")
    for target, source in (("%r7", "%x0"), ("%r8", "%x1")):
        for place in range(0, 128, 16):
            lines.append(f"ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [{source}+{place}];")
            lines.append(f"st.shared.v4.b32 [{target}+{place}], {{%r10, %r11, %r12, %r13}};")
    lines.append("fence.proxy.async; bar.sync 0; mad.wide.u32 %x3, %t, 16, %a3;")
    lines.append("ld.global.v4.b32 {%f0, %f1, %f2, %f3}, [%x3];")
    return "\n".join(lines)


def _start(registers: int) -> str:
    loads = [f"ld.global.b32 %d_{number}, [%x2+{4 * number}];" for number in range(registers)]
    return "\n".join([f"mad.wide.u32 %x2, %t, {4 * registers}, %a2;", *loads])


def _step(form: Group, sums: list[str], step: int) -> str:
    """One product; later ones start 32 bytes further on, inside the swizzled rows."""
    fixed = (form.leading >> 4) << 16 | (form.stride >> 4) << 32 | _SWIZZLES[form.swizzle] << 62
    lines = [f"setp.ne.b32 %p1, {int(form.accumulate or step > 0)}, 0;"]
    for place, base in ((5, "%r5"), (6, "%r6")):
        lines.append(f"add.u32 %r9, {base}, {32 * step}; and.b32 %r9, %r9, 0x3ffff; shr.u32 %r9, %r9, 4;")
        lines.append(
            f"cvt.u64.u32 %d{place}, %r9; or.b64 %d{place}, %d{place}, {fixed - (1 << 64) if fixed >> 63 else fixed};"
        )
    left = "{%f0, %f1, %f2, %f3}" if form.from_registers else "%d5"
    integer = form.sum == "s32"
    turned = () if form.left not in ("f16", "bf16") else form.turned[1:] if form.from_registers else form.turned
    more = "" if integer else "".join(f", {value}" for value in (*form.signs, *turned))
    lines.append(f"{form.opcode} {group(sums)}, {left}, %d6, %p1{more};")
    return "\n".join(lines)
