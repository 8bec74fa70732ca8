"""Small PTX kernels around one instruction, run on the emulated device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cutesmith_evaluator.emulator.device import Device
from cutesmith_evaluator.emulator.launch import Launch
from cutesmith_evaluator.emulator.memory import Allocation

_HEAD = """.version 8.8
.target sm_90a
.address_size 64
"""


def kernel_text(body: str, parameters: int, *, before: str = "", threads: str = "") -> str:
    """A kernel `k` with pointer parameters, registers of every width, and %t the thread's number in the grid."""
    declared = ", ".join(f".param .b64 p{number}" for number in range(parameters))
    loads = "\n".join(f"ld.param.b64 %a{number}, [p{number}];" for number in range(parameters))
    return f"""{_HEAD}{before}
.visible .entry k({declared}){threads}
{{
.reg .pred %p<40>; .reg .b16 %h<40>; .reg .b32 %r<80>; .reg .b64 %d<80>;
.reg .b32 %t, %n, %b; .reg .b64 %a<20>, %x<20>, %o;
mov.u32 %t, %tid.x; mov.u32 %n, %ntid.x; mov.u32 %b, %ctaid.x; mad.lo.s32 %t, %b, %n, %t;
{loads}
{body}
ret;
}}
"""


def run_kernel(
    text: str,
    arrays: Sequence[np.ndarray],
    *,
    grid: int | tuple[int, int, int] = 1,
    block: int = 32,
    shared: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
    device: Device | None = None,
) -> Device:
    """Launches `k` on the arrays' memory."""
    device = device or Device()
    loaded = device.load(text)
    for number, array in enumerate(arrays):
        device.memory.add(Allocation(array.ctypes.data, array.nbytes, f"array {number}"))
    arguments = b"".join(array.ctypes.data.to_bytes(8, "little") for array in arrays)
    extents = (grid, 1, 1) if isinstance(grid, int) else grid
    device.launch(loaded, "k", Launch(extents, (block, 1, 1), shared, arguments, cluster=cluster))
    return device


_REGISTER = {1: "h", 2: "h", 4: "r", 8: "d"}


def element_body(
    instruction: str, widths: Sequence[int], result: int, *, predicate: bool = False, before: str = ""
) -> str:
    """Loads one operand of each width in bytes, executes, stores `result` bytes, all at the thread's number.

    "add.f32 {}, {}, {}" has its registers filled in, the result's first. `predicate`: the instruction makes one, and
    1 or 0 is stored for it. `before`: more instructions, after the loads.
    """
    lines, names = [], []
    for number, width in enumerate(widths):
        name = f"%{_REGISTER[width]}{number + 1}"
        lines.append(f"mad.wide.u32 %x{number}, %t, {width}, %a{number};")
        lines.append(f"ld.global.b{8 * width} {name}, [%x{number}];")
        names.append(name)
    made = f"%{_REGISTER[result]}0"
    lines.append(before + instruction.format("%p0" if predicate else made, *names) + ";")
    if predicate:
        lines.append(f"selp.b{max(16, 8 * result)} {made}, 1, 0, %p0;")
    lines.append(f"mad.wide.u32 %o, %t, {result}, %a{len(widths)};")
    lines.append(f"st.global.b{8 * result} [%o], {made};")
    return "\n".join(lines)


def apply(instruction: str, *inputs: np.ndarray, result: type | np.dtype, predicate: bool = False) -> np.ndarray:
    """The instruction on each element, as `element_body` has it."""
    count = inputs[0].size
    out = np.zeros(count, result)
    element = element_body(instruction, [array.itemsize for array in inputs], out.itemsize, predicate=predicate)
    guard = f"mov.u32 %r79, 0; setp.ge.u32 %p39, %t, {count}; @%p39 bra DONE;"
    text = kernel_text(f"{guard}\n{element}\nDONE:", len(inputs) + 1)
    run_kernel(text, [*inputs, out], grid=-(-count // 64), block=64)
    return out
