"""NVIDIA's own CuTe DSL examples on the emulated device: `python benchmarks/peer_examples.py CUTLASS/examples/python/CuTeDSL`.

Each runs in a process of its own, with the small sizes below, and compares its result itself. What is printed is the
table of docs/emulator.md. `--only WORD` runs those whose path has it; `--one PATH ARGUMENTS...` runs one, here.
"""

from __future__ import annotations

import argparse
import runpy
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT_S = 300.0
NOT_RUN = "not run"


@dataclass(frozen=True)
class Example:
    """`arguments`: those that make it small."""

    path: str
    arch: str
    arguments: str = ""


HOPPER, AMPERE = "sm_90a", "sm_80"
GEMM = "cute/hopper/kernel/dense_gemm"
NO_TIMING = "--warmup_iterations 0 --iterations 1"
EXAMPLES = (
    Example(f"{GEMM}/dense_gemm.py", HOPPER, f"--mnkl 256,128,192,1 --tile_shape_mn 128,128 {NO_TIMING}"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--one", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.one:
        run_here(options.folder / options.one[0], options.one[1], options.one[2:])
        return
    print("| example | arch | outcome | seconds |\n|---|---|---|---|")
    for example in EXAMPLES:
        if options.only in example.path:
            outcome, seconds = run(options.folder, example)
            print(f"| `{example.path}` | {example.arch} | {outcome} | {seconds:.0f} |", flush=True)


def run(folder: Path, example: Example) -> tuple[str, float]:
    """What came of it, in words, and how long that took."""
    command = [sys.executable, "-W", "ignore", __file__, str(folder), "--one", example.path, example.arch]
    started = time.monotonic()
    try:
        made = subprocess.run([*command, *example.arguments.split()], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"stopped after {LIMIT_S:.0f} s", LIMIT_S
    seconds = time.monotonic() - started
    if made.returncode == 0:
        return "right", seconds
    lines = [line for line in made.stderr.strip().split("\n") if line.strip()]
    return (lines[-1] if lines else f"exit status {made.returncode}").replace("|", "/")[:160], seconds


def run_here(path: Path, arch: str, arguments: list[str]) -> None:
    """The example as a program, on the emulated device."""
    from cutlass.cute import testing  # pyright: ignore[reportMissingImports]

    from cutesmith_evaluator.emulator.device import Device
    from cutesmith_evaluator.emulator.faults import EmulationError
    from cutesmith_evaluator.emulator.properties import properties_of
    from cutesmith_evaluator.worker.cudaless import cuda_without_build
    from cutesmith_evaluator.worker.emulated_allocations import Allocations
    from cutesmith_evaluator.worker.emulated_cuda import emulated_cuda
    from cutesmith_evaluator.worker.emulated_dsl import emulated_compiles
    from cutesmith_evaluator.worker.emulated_tensor import EmulatedMode

    properties = properties_of(arch)
    assert properties is not None
    device = Device(count_traffic=False)
    allocations = Allocations(device.memory)
    testing.benchmark = lambda *_, **__: 0.0  # nothing to time here
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, str(path.parent))
    with ExitStack() as stack:
        stack.enter_context(cuda_without_build())
        move_by_hand(allocations)
        stack.enter_context(emulated_cuda(properties))
        stack.enter_context(emulated_compiles(arch, None, device, properties))
        stack.enter_context(EmulatedMode(allocations))
        try:
            runpy.run_path(str(path), run_name="__main__")
        except EmulationError as error:
            place = f" ({error.place.file.rpartition('/')[2]}:{error.place.line})" if error.place else ""
            raise SystemExit(f"{error.kind}: {error.message.partition(', used in kernel')[0]}{place}") from error


def move_by_hand(allocations: Any) -> None:
    """`.cuda()`, `.cpu()` and `.to(device)`, which ask a torch without CUDA for what it has not."""
    import torch

    from cutesmith_evaluator.worker.emulated_tensor import EmulatedTensor

    move = torch.Tensor.to

    def is_device(value: object) -> bool:
        return isinstance(value, torch.device) or (isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu"))

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        device = next((each for each in (*args, kwargs.pop("device", None)) if is_device(each)), None)
        others = [each for each in args if not is_device(each)]
        made = move(self, *others, **kwargs) if others or kwargs else self
        return made if device is None else cuda(made) if "cuda" in str(device) else cpu(made)

    def cuda(self: Any, *_: Any, **__: Any) -> Any:
        return self if isinstance(self, EmulatedTensor) else EmulatedTensor(self.detach().clone(), allocations)

    def cpu(self: Any, *_: Any, **__: Any) -> Any:
        return self.host.clone() if isinstance(self, EmulatedTensor) else self

    torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu = to, cuda, cpu


if __name__ == "__main__":
    main()
