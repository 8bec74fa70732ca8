"""mma.sync: who holds which element, by the manual's formulas, and every element against exact rationals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from cutesmith_evaluator.emulator import eighths
from cutesmith_evaluator.emulator.faults import FaultError, UnsupportedError
from exact_numbers import BF16, F16, F32, Format, encode
from exact_tensor_core import Cut, dot, value_of
from ptx_kernels import kernel_text, run_kernel

E4M3, E5M2, TF32 = Format(8, 3), Format(8, 2), Format(19, 10)
FORMATS = {"f16": F16, "bf16": BF16, "tf32": TF32, "e4m3": E4M3, "e5m2": E5M2}
LEAST = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14}


@dataclass(frozen=True)
class Case:
    kind: str
    k: int
    accumulator: str = "f32"
    arch: str = "sm_90a"

    @property
    def width(self) -> int:
        """Bytes of an element in a register."""
        return {"tf32": 4, "f16": 2, "bf16": 2}.get(self.kind, 1)  # those of integers and 8-bit floats

    @property
    def registers(self) -> tuple[int, int, int]:
        a = 16 * self.k * self.width // 128
        return a, a // 2, 2 if self.accumulator == "f16" else 4

    @property
    def instruction(self) -> str:
        c = self.accumulator
        return f"mma.sync.aligned.m16n8k{self.k}.row.col.{c}.{self.kind}.{self.kind}.{c}"

    @property
    def cut(self) -> Cut:
        """As published for the arch."""
        hopper, half = self.arch == "sm_90a", self.accumulator == "f16"
        result, mode = (F16, "rn") if half else (F32, "rz")
        if self.width == 1:
            return Cut(LEAST[self.kind], 16, 13, -1000, result if half else Format(22, 13), mode)
        group = (16 if hopper else 8) // (2 if self.kind == "tf32" else 1)
        kept, floor = (25 if hopper else 24), (-20 if half else -132) - hopper
        return Cut(LEAST[self.kind], group, kept, floor, result, mode)


def fragments(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
    """Registers of each lane, (32, registers) of A, B and C; by the manual: group g = lane / 4, t = lane % 4."""
    each = 4 // case.width
    lanes = range(32)
    a_words = [
        [
            a[lane // 4 + 8 * (r % 2), (lane % 4) * each + i + 4 * each * (r // 2)]
            for r in range(case.registers[0])
            for i in range(each)
        ]
        for lane in lanes
    ]
    b_words = [
        [b[(lane % 4) * each + i + 4 * each * r, lane // 4] for r in range(case.registers[1]) for i in range(each)]
        for lane in lanes
    ]
    c_words = [[c[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2] for i in range(4)] for lane in lanes]
    return [
        np.ascontiguousarray(np.array(words, array.dtype))
        for words, array in ((a_words, a), (b_words, b), (c_words, c))
    ]


def multiply(case: Case, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """D as bits, (16, 8), from (16, k), (k, 8) and (16, 8) bits."""
    parts = [array.view(np.uint32) for array in fragments(case, a, b, c)]
    counts = case.registers
    loads, names = [], []
    for number, (letter, count) in enumerate(zip((10, 20, 30), counts, strict=True)):
        registers = [f"%r{letter + place}" for place in range(count)]
        loads.append(f"mad.wide.u32 %x{number}, %t, {4 * count}, %a{number};")
        loads += [f"ld.global.b32 {name}, [%x{number}+{4 * place}];" for place, name in enumerate(registers)]
        names.append("{" + ", ".join(registers) + "}")
    made = [f"%r{40 + place}" for place in range(counts[2])]
    stores = [f"st.global.b32 [%o+{4 * place}], {name};" for place, name in enumerate(made)]
    body = [*loads, f"{case.instruction} {{{', '.join(made)}}}, {names[0]}, {names[1]}, {names[2]};"]
    body += [f"mad.wide.u32 %o, %t, {4 * counts[2]}, %a3;", *stores]
    out = np.zeros((32, counts[2]), np.uint32)
    text = kernel_text("\n".join(body), 4).replace("sm_90a", case.arch)
    run_kernel(text, [*parts, out])
    values, result = out.view(c.dtype), np.zeros((16, 8), c.dtype)
    for lane in range(32):
        for i in range(4):
            result[lane // 4 + 8 * (i // 2), 2 * (lane % 4) + i % 2] = values[lane, i]
    return result


def drawn(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bits of values over many exponents, with zeros and subnormals among them."""
    random = np.random.default_rng(seed)
    form = FORMATS[case.kind]
    spread = min(form.bias - 1, 12)

    def numbers(shape: tuple[int, int]) -> np.ndarray:
        values = random.standard_normal(shape) * 2.0 ** random.integers(-spread, spread // 2, shape)
        values[random.random(shape) < 0.1] = 0
        bits = [encode(Fraction(float(value)), form, "rz") for value in values.reshape(-1)]
        dtype = {1: np.uint8, 2: np.uint16, 4: np.uint32}[case.width]
        return (np.array(bits, np.uint64) << np.uint64(13 if case.kind == "tf32" else 0)).astype(dtype).reshape(shape)

    c = (random.standard_normal((16, 8)) * 2.0 ** random.integers(-8, 8, (16, 8))).astype(np.float32)
    c[0] = 0
    return (
        numbers((16, case.k)),
        numbers((case.k, 8)),
        c.astype(np.float16).view(np.uint16) if case.accumulator == "f16" else c.view(np.uint32),
    )


def value(bits: int, kind: str) -> Fraction:
    return value_of(bits >> 13 if kind == "tf32" else bits, FORMATS[kind])


CASES = [
    *(Case(kind, k, accumulator, arch) for arch in ("sm_80", "sm_90a") for kind, k, accumulator in (
        ("f16", 8, "f32"), ("f16", 16, "f32"), ("f16", 8, "f16"), ("f16", 16, "f16"),
        ("bf16", 8, "f32"), ("bf16", 16, "f32"), ("tf32", 4, "f32"), ("tf32", 8, "f32"),
    )),
    *(Case(kind, k, accumulator, "sm_89") for kind in ("e4m3", "e5m2") for k in (16, 32)
      for accumulator in ("f32", "f16")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-k{case.k}-{case.accumulator}-{case.arch}")
def test_every_element_is_what_the_published_rule_says(case: Case) -> None:
    a, b, c = drawn(case, case.k)
    got = multiply(case, a, b, c)
    form = F16 if case.accumulator == "f16" else F32
    for row in range(0, 16, 3):
        for column in range(8):
            left = [value(int(bits), case.kind) for bits in a[row]]
            right = [value(int(bits), case.kind) for bits in b[:, column]]
            exact = dot(left, right, value_of(int(c[row, column]), form), case.cut)
            assert int(got[row, column]) == encode(exact, form), (row, column)


def test_eighths_on_hopper_go_through_float16_in_two_halves() -> None:
    """Of four elements the first two, then the others, then the accumulator on its own: seen in published results."""
    case = Case("e4m3", 32, "f16")
    a, b, c = drawn(case, 1)
    got = multiply(case, a, b, c)
    cut = Cut(-14, 16, 25, -21, F16, "rn")
    halves = [[k for k in range(32) if k % 4 < 2], [k for k in range(32) if k % 4 >= 2]]
    for row in range(16):
        total = Fraction(0)
        for half in halves:
            left = [value(int(a[row, k]), case.kind) for k in half]
            total = dot(left, [value(int(b[k, 5]), case.kind) for k in half], total, cut)
        assert int(got[row, 5]) == encode(total + value_of(int(c[row, 5]), F16), F16)


@pytest.mark.parametrize("kinds", [("s8", "s8"), ("u8", "u8"), ("s8", "u8")])
@pytest.mark.parametrize("k", [16, 32])
@pytest.mark.parametrize("clamped", ["", ".satfinite"])
def test_integers(kinds: tuple[str, str], k: int, clamped: str) -> None:
    random = np.random.default_rng(k)
    a, b = random.integers(0, 256, (16, k), np.uint8), random.integers(0, 256, (k, 8), np.uint8)
    c = random.integers(-1000, 1000, (16, 8), np.int32)
    c[3], c[4] = 2**31 - 100, -(2**31)
    case = Integers("".join(kinds), k, "s32", "sm_90a", kinds, clamped)
    left, right = (
        array.view(np.int8 if kind == "s8" else np.uint8).astype(np.int64)
        for array, kind in zip((a, b), kinds, strict=True)
    )
    exact = left @ right + c
    wanted = np.clip(exact, -(2**31), 2**31 - 1) if clamped else exact
    assert (multiply(case, a, b, c) == wanted.astype(np.int32)).all()


@dataclass(frozen=True)
class Integers(Case):
    kinds: tuple[str, str] = ("s8", "s8")
    clamped: str = ""

    @property
    def instruction(self) -> str:
        a, b = self.kinds
        return f"mma.sync.aligned.m16n8k{self.k}.row.col{self.clamped}.s32.{a}.{b}.s32"


def test_infinities_and_nans() -> None:
    case = Case("f16", 16)
    a, b, c = np.full((16, 16), 0x3C00, np.uint16), np.full((16, 8), 0x3C00, np.uint16), np.zeros((16, 8), np.uint32)
    a[1, 3], a[2, 3], a[2, 4], a[3, 0], a[4, 7] = 0x7C00, 0x7C00, 0xFC00, 0x7E00, 0xFC00
    b[7, 2] = 0
    c[5, 5], c[6, 6] = 0x7F800000, 0x7FC00001
    got = multiply(case, a, b, c)
    assert (got[1] == 0x7F800000).all(), "one infinity"
    assert (got[2] == 0x7FFFFFFF).all(), "infinities of both signs"
    assert (got[3] == 0x7FFFFFFF).all(), "a NaN"
    assert got[4, 2] == 0x7FFFFFFF, "infinity times zero"
    assert got[4, 1] == 0xFF800000
    assert (got[5, 5], got[6, 6]) == (0x7F800000, 0x7FFFFFFF)
    assert got[5, 4] == 0x41800000, "16"


def test_a_sum_beyond_the_largest_float_is_infinite() -> None:
    case = Case("bf16", 8)
    a, b = np.full((16, 8), 0x7F00, np.uint16), np.full((8, 8), 0x3F80, np.uint16)
    assert (multiply(case, a, b, np.zeros((16, 8), np.uint32)) == 0x7F800000).all()


@pytest.mark.parametrize("case", [Case("f16", 16), Case("bf16", 16, arch="sm_80"), Case("tf32", 8), Case("e4m3", 32)])
def test_results_keep_to_the_documented_bound(case: Case) -> None:
    a, b, c = drawn(case, 3)
    got = multiply(case, a, b, c)
    for row in range(16):
        for column in range(0, 8, 3):
            terms = [
                value(int(x), case.kind) * value(int(y), case.kind) for x, y in zip(a[row], b[:, column], strict=True)
            ]
            terms.append(value_of(int(c[row, column]), F32))
            largest = max(abs(term) for term in terms)
            error = abs(value_of(int(got[row, column]), F32) - sum(terms))
            assert error <= Fraction(case.k + 4, 2**22) * largest


def test_lanes_that_are_missing_are_found() -> None:
    words = "{%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3}"
    multiplied = f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {words};"
    with pytest.raises(FaultError, match=r"executes mma\.sync without all lanes of its warp") as caught:
        run_kernel(kernel_text(f"setp.gt.u32 %p1, %t, 9; @%p1 exit; {multiplied}", 0), [])
    assert caught.value.kind == "inactive-lane"
    with pytest.raises(FaultError, match="without all lanes"):
        run_kernel(kernel_text(multiplied, 0), [], block=48)


@pytest.mark.parametrize(
    "form",
    [
        "m16n8k16.row.row.f32.f16.f16.f32",
        "m16n8k32.row.col.f32.f16.f16.f32",
        "m16n8k16.row.col.f16.bf16.bf16.f16",
        "m16n8k16.row.col.f32.f16.f16.f16",
        "m8n8k4.row.col.f64.f64.f64.f64",
        "m16n8k16.row.col.f32.f16.bf16.f32",
    ],
)
def test_forms_that_are_not_known_are_refused(form: str) -> None:
    registers = ", ".join(["{%r0, %r1, %r2, %r3}"] * 4)
    with pytest.raises(UnsupportedError, match=r"mma\.sync"):
        run_kernel(kernel_text(f"mma.sync.aligned.{form} {registers};", 0), [])


@pytest.mark.parametrize(("kind", "bits", "exact"), [
    ("e4m3", 0x7E, 448.0), ("e4m3", 0x01, 2.0**-9), ("e4m3", 0x38, 1.0), ("e4m3", 0xB8, -1.0),
    ("e5m2", 0x7B, 57344.0), ("e5m2", 0x01, 2.0**-16), ("e5m2", 0x3C, 1.0), ("e5m2", 0x7C, float("inf")),
])  # fmt: skip
def test_eighths(kind: str, bits: int, exact: float) -> None:
    assert eighths.widen(np.array([bits], np.uint8), kind)[0] == exact
