"""NVIDIA's own CuTe DSL examples on the emulated device: give it the folder examples/python/CuTeDSL of CUTLASS.

Each runs in a process of its own, with the small sizes below, and compares its result itself. What is printed is the
table of docs/emulator.md. `--only WORD` runs those whose path has it; `--one PATH ARGUMENTS...` runs one, here.
"""

from __future__ import annotations

import argparse
import runpy
import subprocess
import sys
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT_S = 120.0
NOT_RUN = "not run"


@dataclass(frozen=True)
class Example:
    """`arguments`: those that make it small."""

    path: str
    arch: str
    arguments: str = ""


HOPPER, AMPERE = "sm_90a", "sm_80"
NO_TIMING = "--warmup_iterations 0 --iterations 1"
GEMM = f"{NO_TIMING} --tile_shape_mn 128,128"


def hopper(name: str, arguments: str) -> Example:
    return Example(f"cute/hopper/kernel/{name}.py", HOPPER, arguments)


def ampere(name: str, arguments: str) -> Example:
    return Example(f"cute/ampere/kernel/{name}.py", AMPERE, arguments)


KERNELS = (
    hopper("cta_norm/cta_norm", f"--M 4 --N 1024 {NO_TIMING}"),
    hopper("dense_gemm/dense_gemm", f"--mnkl 256,256,192,1 --cluster_shape_mn 2,1 {GEMM}"),
    hopper("dense_gemm/dense_gemm_persistent", f"--mnkl 256,256,192,1 {GEMM}"),
    hopper("dense_gemm/dense_gemm_fp8_2xacc", f"--mnkl 256,256,256,1 {GEMM}"),
    hopper("dense_gemm/dense_gemm_fp8_gelu_persistent", f"--mnkl 256,256,256,1 {GEMM}"),
    hopper("grouped_gemm/grouped_gemm", f"--num_groups 2 --problem_sizes_mnkl (128,128,128,1),(128,256,64,1) {GEMM}"),
    hopper("attention/fmha", f"--q_shape 1,128,2,64 --k_shape 1,128,2,64 {NO_TIMING}"),
    ampere("elementwise/elementwise_add", f"--M 64 --N 128 {NO_TIMING}"),
    ampere("elementwise/elementwise_apply", f"--M 256 --N 512 {NO_TIMING}"),
    ampere("dense_gemm/sgemm", f"--mnk 128,128,64 {NO_TIMING}"),
    ampere("dense_gemm/tensorop_gemm", f"--mnkl 128,128,64,1 {NO_TIMING}"),
    ampere(
        "attention/flash_attention_v2",
        f"--batch_size 1 --seqlen_q 128 --seqlen_k 128 --num_head 1 --head_dim 64 {NO_TIMING}",
    ),
    ampere("attention/hstu_attention", "--batch_size 1 --seqlen_q 128 --seqlen_kv 128 --num_head 1 --head_dim 64"),
)
PRIMITIVES = (
    "async_pipeline",
    "bar_warp_sync",
    "barrier_cta_red",
    "barrier_cta_sync",
    "basic_types",
    "cp_async_bulk",
    "cp_async_bulk_prefetch",
    "cp_async_mbarrier_arrive_cluster",
    "cp_async_mbarrier_arrive_cta",
    "cp_async_shared_global",
    "cp_async_shared_global_swizzled",
    "elect_sync",
    "ldmatrix_stmatrix",
    "mapa",
    "mbarrier",
    "mbarrier_lifecycle",
    "pipeline_software_fill",
    "red",
    "redux_sync",
    "shfl_sync",
    "vote_sync",
    "warp_named_barrier",
    "reduction/block_smem_reduce",
    "reduction/cluster_smem_reduce",
    "reduction/thread_vector_reduce",
    "reduction/warp_vector_reduce",
    "tma/tma_1cta_mbarrier",
    "tma/tma_load_store",
    "tma/tma_load_to_ldmatrix",
    "tma/tma_multicast",
    "tma/tma_pipeline_count2",
    "tma/tma_pipeline_pingpong",
    "tma/tma_pipeline_single_warp",
    "tma/tma_pipeline_warpspec",
    "tma/tma_store",
    "tma/tma_swizzle_modes",
    "tma/tma_tensormap_replace",
    "tutorial/01_hello_world",
    "tutorial/02_naive_gemm",
    "tutorial/03_gemm_tiled_smem",
    "tutorial/04_tma_load",
    "tutorial/05_minimal_tensor_mma",
    "tutorial/06_softmax",
    "tutorial/07_vectorized_array",
    "tutorial/08_mlir_value_tree_debug",
    "tutorial/09_tma_4d_to_2d",
    "tutorial/10_minimal_tensor_mma_fp8",
    "tutorial/gemm_M128_N128_Kany_TN_warpspec_multistage",
)
TUTORIALS = (
    "call_bypass_dlpack",
    "call_from_jit",
    "cooperative_launch",
    "dataclass_immutable",
    "dynamic_smem_size",
    "inline_ptx",
    "programmatic_dependent_launch",
    "smem_allocator",
    "torch_fake_tensor",
)
EXAMPLES = (
    *KERNELS,
    *(Example(f"experimental/primitives/{name}.py", HOPPER) for name in PRIMITIVES),
    *(Example(f"dsl_tutorials/{name}.py", HOPPER) for name in TUTORIALS),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="NVIDIA's CuTe DSL examples on the emulated device.")
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
    from cuda.bindings import driver  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]
    from cutlass.cute import testing  # pyright: ignore[reportMissingImports]
    from cutlass.utils import HardwareInfo  # pyright: ignore[reportMissingImports]

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
    for name in ("cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime", "cuEventDestroy"):
        setattr(driver, name, lambda *_: (driver.CUresult.CUDA_SUCCESS, 1.0))
    testing.benchmark = lambda *_, **__: 1.0  # nothing to time here
    hardware: Any = HardwareInfo
    hardware.__init__ = lambda *_: None
    hardware.get_max_active_clusters = lambda *_, **__: 2  # few, so that blocks have more than one tile
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

    from cutesmith_evaluator.worker.emulated_tensor import EmulatedTensor, aligned

    move, tolist = torch.Tensor.to, torch.Tensor.tolist
    torch.cuda.Stream = lambda *_, **__: torch.cuda.current_stream()

    def ignore(*_: object) -> None:
        return None

    class Event:
        def __init__(self, *_: object, **__: object) -> None:
            self.record = self.synchronize = self.wait = ignore

        def elapsed_time(self, _: object) -> float:
            return 1.0

    def is_device(value: object) -> bool:
        return isinstance(value, torch.device) or (isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu"))

    def to(self: Any, *args: Any, **kwargs: Any) -> Any:
        device = next((each for each in (*args, kwargs.pop("device", None)) if is_device(each)), None)
        others = [each for each in args if not is_device(each)]
        made = move(self, *others, **kwargs) if others or kwargs else self
        return made if device is None else cuda(made) if "cuda" in str(device) else cpu(made)

    def cuda(self: Any, *_: Any, **__: Any) -> Any:
        return self if isinstance(self, EmulatedTensor) else EmulatedTensor(aligned(self.detach().clone()), allocations)

    def cpu(self: Any, *_: Any, **__: Any) -> Any:
        return self.host.clone() if isinstance(self, EmulatedTensor) else self

    torch.cuda.Event = Event
    torch.cuda.stream = lambda *_: nullcontext()
    torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu = to, cuda, cpu
    torch.Tensor.tolist = lambda self: tolist(cpu(self))


if __name__ == "__main__":
    main()
