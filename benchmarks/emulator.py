"""How fast the emulated device is: thread-level instructions per CPU second of one core, over numbers of threads.

Run: python benchmarks/emulator.py [--elements N]. Kernels are PTX of the kinds that the recipes emit; every check of
the emulator is on, and traffic is counted only where it says so.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import mma_tile
from cutesmith_evaluator.emulator.device import Device
from cutesmith_evaluator.emulator.launch import Launch
from cutesmith_evaluator.emulator.memory import Allocation

THREADS = 256
_AT_ONCE = 1 << 14
_PLAIN_INSTRUCTIONS = 15  # of a thread of `add`
_HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"
_START = """
.visible .entry k(.param .b64 x, .param .b64 y, .param .b32 n) {
.reg .pred %p<4>; .reg .b32 %r<80>; .reg .b64 %d<8>;
ld.param.b64 %d1, [x]; ld.param.b64 %d2, [y]; ld.param.b32 %r1, [n];
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.s32 %r4, %r3, 256, %r2;
"""
_ADD = """
setp.ge.s32 %p1, %r4, %r1; @%p1 bra DONE;
mul.wide.s32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
ld.global.b32 %r5, [%d4]; add.f32 %r6, %r5, 0f3F800000; st.global.b32 [%d5], %r6;
DONE: ret; }
"""
_GELU_STEP = """
mul.f32 %r{a}, %r{x}, %r{x}; fma.rn.f32 %r{b}, %r{a}, 0f3D372713, 0f3F800000; mul.f32 %r{c}, %r{x}, %r{b};
mul.f32 %r{d}, %r{c}, 0fC0135761; ex2.approx.ftz.f32 %r{e}, %r{d}; add.f32 %r{f}, %r{e}, 0f3F800000;
rcp.approx.ftz.f32 %r{g}, %r{f}; mul.f32 %r{h}, %r{x}, %r{g};
"""


def _gelu() -> str:
    """Four elements a thread, 16 bytes at a time."""
    names = "abcdefgh"
    steps = [
        _GELU_STEP.format(x=10 + lane, **{name: 20 + 10 * lane + place for place, name in enumerate(names)})
        for lane in range(4)
    ]
    results = ", ".join(f"%r{20 + 10 * lane + 7}" for lane in range(4))
    return f"""
shl.b32 %r5, %r4, 2; setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE;
mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; add.s64 %d5, %d2, %d3;
ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%d4];
{"".join(steps)}
st.global.v4.b32 [%d5], {{{results}}};
DONE: ret; }}
"""


KERNELS = {"add": (_ADD, 1), "gelu": (_gelu(), 4)}  # with the elements of a thread


def rate(name: str, elements: int, *, count_traffic: bool) -> float:
    """Thread-level instructions per second."""
    body, per_thread = KERNELS[name]
    device = Device(count_traffic=count_traffic)
    loaded = device.load(_HEAD + _START + body)
    x, y = np.random.default_rng(0).standard_normal(elements, np.float32), np.empty(elements, np.float32)
    device.memory.add(Allocation(x.ctypes.data, x.nbytes, "x"))
    device.memory.add(Allocation(y.ctypes.data, y.nbytes, "y", initialised=False))
    arguments = (
        x.ctypes.data.to_bytes(8, "little") + y.ctypes.data.to_bytes(8, "little") + elements.to_bytes(4, "little")
    )
    grid = -(-elements // (THREADS * per_thread))
    started = time.process_time()
    counts = device.launch(loaded, "k", Launch((grid, 1, 1), (THREADS, 1, 1), 0, arguments))
    return counts.thread_instructions / (time.process_time() - started)


def plain_rate(elements: int) -> float:
    """The same count for `add` as bare NumPy statements on as many threads at once: no checks, no machine."""
    x, y = np.random.default_rng(0).standard_normal(elements, np.float32), np.empty(elements, np.float32)
    lanes, started = np.arange(_AT_ONCE, dtype=np.int32), time.process_time()
    tid, block = lanes % THREADS, lanes // THREADS
    for first in range(0, elements, _AT_ONCE):
        number = (block + np.int32(first // THREADS)) * np.int32(THREADS) + tid
        active = number[~(number >= elements)]
        offset = active.astype(np.int64) * 4
        source, target = offset + 0, offset + 0
        y[target >> 2] = x[source >> 2] + np.float32(1)
    return _PLAIN_INSTRUCTIONS * elements / (time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--elements", type=int, default=1 << 20, help="the largest size")
    largest = parser.parse_args().elements
    print("kernel  elements   checked  checked and counted   (million thread-level instructions a second)")
    for name in KERNELS:
        for elements in sorted({min(size, largest) for size in (1 << 12, 1 << 16, largest)}):
            checked = max(rate(name, elements, count_traffic=False) for _ in range(3))
            counted = max(rate(name, elements, count_traffic=True) for _ in range(3))
            print(f"{name:7} {elements:8} {checked / 1e6:9.0f} {counted / 1e6:20.0f}")
    plain, checked = plain_rate(largest), rate("add", largest, count_traffic=False)
    print(f"add as bare NumPy statements: {plain / 1e6:.0f}, the device with its checks {checked / plain:.2f} of that")
    tile = min(mma_tile.seconds() for _ in range(3))
    print(f"256 x 256 x 64 float16 tile by mma.sync, checked: {tile:.3f} s")


if __name__ == "__main__":
    main()
