"""The values that cross the wire between the agent and a worker.

Standard library only: a worker runs in the user's interpreter, which has torch and the CuTe DSL and nothing of ours.
Units: seconds in `*_s`, milliseconds in `*_ms`, bytes in `*bytes`. Dtypes are torch's names without `torch.`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Category = Literal[
    "pointwise",
    "reduction",
    "normalisation",
    "softmax",
    "loss",
    "scan",
    "pooling",
    "matmul",
    "conv",
    "attention",
    "mixed",
]
Origin = Literal["recipe", "llm", "user"]
Stage = Literal["propose", "guards", "compile", "validate", "time", "done"]
Precision = Literal["kept", "as eager", "lowered"]


@dataclass(frozen=True)
class Task:
    """A module class in a file. How to build and call it the file says (get_init_inputs, get_inputs), or `captured`."""

    file: str  # absolute path
    qualname: str  # "NewGELU", "Outer.Inner"
    captured: str | None = None  # a recorded call as JSON, in place of the file's own functions: worker/captured.py


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or worth knowing, placed where a person can fix it."""

    kind: str  # kebab-case code: "no-inputs", "unsupported-op", "compile-error", "wrong-values", ...
    message: str  # one sentence: what happened, where, what to do
    line: int | None = None  # 1-based
    file: str | None = None  # absolute path of the file the line is in
    severity: Literal["error", "warning", "information"] = "error"


@dataclass(frozen=True)
class Environment:
    """What a worker runs on. A verdict holds for this and nothing else."""

    python: str
    torch: str | None
    dsl: str | None  # nvidia-cutlass-dsl
    tvm_ffi: str | None
    device: str  # "NVIDIA H200", or "none" without a CUDA device
    arch: str | None  # "sm_90a" of the device, None without one
    driver: str | None = None


@dataclass(frozen=True)
class TensorSpec:
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]  # in elements


@dataclass(frozen=True)
class GraphInput:
    """A tensor that enters the graph: an argument of forward (position) or state of the module (path)."""

    name: str
    kind: Literal["argument", "parameter", "buffer", "constant"]
    spec: TensorSpec
    position: int | None = None  # argument: index in forward's positional arguments
    path: str | None = None  # state: Python after `module.`: "norm.weight", "layers[0].weight"


@dataclass(frozen=True)
class Guard:
    """A Python value the trace read: the graph holds only while it is unchanged.

    A function or class is "module:qualname" (its `__module__` and `__qualname__`); a dtype is guarded by its
    `__repr__()`, an enum member by its `name`, a method by its class's `__qualname__`, a submodule by its
    `__class__` where that is one of torch.nn's ("torch.nn:LayerNorm"), else by its class's `__qualname__`."""

    value: Arg
    path: str | None = None  # Python after `module.`: "eps", "norm.eps", "layers[0].alpha", "training"
    position: int | None = None  # non-tensor argument of forward
    same_as: str | None = None  # the path of another submodule, parameter or buffer that is the same object


@dataclass(frozen=True)
class Ref:
    """The output `index` of a node, or a graph input (index 0)."""

    name: str
    index: int = 0


Arg = None | bool | int | float | str | Ref | tuple["Arg", ...]


@dataclass(frozen=True)
class Node:
    """One aten op. Args are in the schema's order; dtypes appear as strings ("float32")."""

    name: str
    op: str  # "aten.mul.Tensor"
    args: tuple[Arg, ...]
    kwargs: dict[str, Arg]
    outputs: tuple[TensorSpec, ...]
    line: int | None = None  # of the user's file


@dataclass(frozen=True)
class Graph:
    """A module's eval-mode forward as aten ops, at the shapes of its example inputs.

    `dynamic_dims`: groups of (argument position, dimension) that may change together without changing any op or
    scalar of the graph (each was retraced at another size)."""

    inputs: tuple[GraphInput, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Ref, ...]
    returns_tuple: bool
    guards: tuple[Guard, ...]
    dynamic_dims: tuple[tuple[tuple[int, int], ...], ...]
    category: Category
    flops: int
    bytes: int  # inputs + state + outputs, each once


@dataclass(frozen=True)
class Inspection:
    environment: Environment
    graph: Graph | None
    parameters: tuple[str, ...]  # names of forward's parameters, without self
    findings: tuple[Finding, ...] = ()
    imported: tuple[str, ...] = ()  # absolute paths: the project's files that the task's file imports, no kernels


@dataclass(frozen=True)
class Resources:
    """What ptxas gave one kernel on one arch."""

    kernel: str
    arch: str
    registers: int
    shared_bytes: int
    spill_bytes: int


@dataclass(frozen=True)
class Compilation:
    ok: bool
    seconds: float  # of the slowest single compile, DSL import excluded
    resources: tuple[Resources, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class ErrorPair:
    """Errors against the fp64 reference: rms = |out-ref|/|ref|, max = max|out-ref|/max|ref|."""

    rms: float
    max: float


@dataclass(frozen=True)
class ErrorFigures:
    """The check that comes nearest to the bound for *kept*, or breaks it most.

    `candidate`, `eager` and `ratio` are of the figure (rms or max) that is worse."""

    candidate: float
    eager: float
    ratio: float
    figure: Literal["rms", "max"]
    candidate_pair: ErrorPair
    eager_pair: ErrorPair
    kernelbench_ok: bool  # allclose at 1e-4 (fp32) or 1e-2 (half)


@dataclass(frozen=True)
class AccessCounts:
    """One instruction's accesses as the emulated device counted them, in proportion where blocks were left out."""

    what: Literal["global load", "global store", "atomic", "shared load", "shared store"]
    line: int | None  # 1-based, of the candidate
    width: int  # bytes that a thread moves at once
    requests: int  # of warps
    bytes: int  # that threads asked for
    sectors: int  # of 32 bytes of global memory, that the warps' accesses touched
    bank_conflicts: int  # passes of shared memory that they cost


@dataclass(frozen=True)
class KernelCounts:
    """What the emulated device counted of one kernel in one call; in proportion, where blocks were left out."""

    kernel: str
    blocks: int
    instructions: int  # each thread's
    global_bytes: int  # that threads asked for
    sectors: int  # of 32 bytes, that their warps' accesses touched
    shared_passes: int  # of shared memory, a 128-byte row each
    bank_conflicts: int  # those of them that conflicts cost
    threads: int = 0  # of all blocks
    accesses: tuple[AccessCounts, ...] = ()  # those that cost most, the costliest first


@dataclass(frozen=True)
class KernelMeasures:
    """What Nsight Compute measured of one kernel in one call, over its launches. Shares are 0 to 1; None: not told."""

    kernel: str
    launches: int
    us: float  # of all launches, cold caches
    blocks: int | None  # of a launch
    threads: int | None  # of a block
    dram_bytes: float | None  # of all launches
    dram_share: float | None  # of the memory's peak bandwidth
    l2_share: float | None
    l1_share: float | None
    sm_share: float | None  # of the peak of the busiest unit of the multiprocessors
    occupancy: float | None  # warps that were active, of the most there can be
    occupancy_limit: str | None  # "registers", "shared memory", "warps", "blocks"
    registers: int | None  # a thread
    shared_bytes: int | None  # a block
    load_sectors: float | None  # of 32 bytes, for a warp's load of global memory: 4 are 4 bytes a thread, 16 are 16
    store_sectors: float | None
    bank_conflicts: float | None
    spill_sectors: float | None  # of local memory
    stalls: tuple[tuple[str, float], ...] = ()  # warps that wait for each one that issues, by reason, worst first


@dataclass(frozen=True)
class Roofline:
    """Where a task stands between memory and arithmetic. `floor_ms`: what the slower of the two needs for it."""

    intensity: float  # the graph's operations for each of the fewest bytes
    ridge: float | None  # at which arithmetic takes as long as memory; None: the arch is not known
    floor_ms: float
    reached: float | None  # the floor over the measured time; None: not timed
    basis: str  # whose bandwidth, and where that is from; or whose arithmetic


Limiter = Literal["memory", "caches", "shared memory", "instructions", "latency"]


@dataclass(frozen=True)
class Hint:
    """One thing to change. `gain`: the part of the time that it might save, a guess to rank by."""

    message: str
    line: int | None  # 1-based, of the candidate
    gain: float


@dataclass(frozen=True)
class Profile:
    """Counts and measurements of one call. `bytes`: of inputs, state and outputs at the sizes that ran."""

    arch: str
    bytes: int
    kernels: tuple[KernelCounts, ...]  # the emulated device's
    measured: tuple[KernelMeasures, ...] = ()  # Nsight Compute's
    findings: tuple[Finding, ...] = ()  # why something was not measured
    roofline: Roofline | None = None
    limiter: Limiter | None = None  # what takes longest; None: nothing says
    hints: tuple[Hint, ...] = ()  # the likeliest gain first, five at most


@dataclass(frozen=True)
class Validation:
    """`ok` is None when nothing ran ("not run: no device" is then the finding)."""

    ok: bool | None
    device: str
    precision: Precision | None = None
    error: ErrorFigures | None = None
    checks: tuple[str, ...] = ()  # what ran, in words: "normal inputs, seed 0", "batch 3", ...
    findings: tuple[Finding, ...] = ()
    profile: Profile | None = None  # of the emulated device


@dataclass(frozen=True)
class Claim:
    """What a worker that has a candidate in its own process says of it. `call_ms`: of one call; None: not timed."""

    precision: Precision
    call_ms: float | None = None


@dataclass(frozen=True)
class Confirmation:
    """What a process that never has the candidate says of results that another one with it handed over.

    `ok` None: nothing can be said, and a finding says why."""

    ok: bool | None
    checks: tuple[str, ...] = ()  # in words: "fresh inputs: 65536 of 65536 elements"
    findings: tuple[Finding, ...] = ()


# "control": eager once more. "compile", "max-autotune": torch.compile by default and in that mode. "adopted",
# "adopted-compile": the user's class with the kernel in, and that compiled.
ArmName = Literal["candidate", "eager", "compile", "max-autotune", "control", "adopted", "adopted-compile"]


@dataclass(frozen=True)
class Conditions:
    """The device while an arm was sampled: medians of readings between its samples; None: the driver does not say."""

    sm_mhz: float | None
    memory_mhz: float | None
    watts: float | None
    celsius: float | None
    throttled: tuple[str, ...]  # why the clock was held back, in at least half of the readings
    readings: int


@dataclass(frozen=True)
class Arm:
    """One thing that was timed: medians over interleaved samples, L2 flushed before each."""

    name: ArmName
    median_ms: float
    low_ms: float  # 95 % interval of the median
    high_ms: float
    samples: int
    conditions: Conditions | None = None  # None: not known (no nvidia-ml-py)


@dataclass(frozen=True)
class Ratio:
    """`arm`'s time over `base`'s, from samples of the same rounds: their midmean, and its 99 % bootstrap interval."""

    arm: ArmName
    base: ArmName
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Launching:
    """What a call of an arm takes, by how it is launched. An arm's own median leaves the host's work out of both."""

    arm: ArmName
    eager_ms: float  # one of many calls in a row, the host's work included, caches warm
    graph_ms: float | None  # one replay of a CUDA graph of the call, L2 cold; None: it cannot be captured


@dataclass(frozen=True)
class Timing:
    device: str
    arms: tuple[Arm, ...]
    copy_gbps: float  # device-to-device copy measured in the same run, bytes read + written
    bytes: int  # fewest bytes of the task
    fraction_of_copy: float  # bytes / candidate median / copy bandwidth
    noise: float  # the largest relative difference between eager and its duplicate that their ratio's interval allows
    findings: tuple[Finding, ...] = ()
    ratios: tuple[Ratio, ...] = ()  # of each arm over the candidate, and of the control over eager
    launches: tuple[Launching, ...] = ()  # of the candidate and PyTorch's arms


@dataclass(frozen=True)
class Speedup:
    """Paired ratios, arm over candidate. None: not measured, inside the noise, or measured under other conditions."""

    eager: float | None
    compile: float | None
    max_autotune: float | None = None


@dataclass(frozen=True)
class Candidate:
    """A candidate and all that is known of it: one element of `candidates` in `cutesmith optimize --json`."""

    id: str  # first 12 hex digits of the source's SHA-256
    origin: Origin
    stage: Stage  # the last stage that ran
    ok: bool | None
    precision: Precision | None = None
    error: ErrorFigures | None = None
    findings: tuple[Finding, ...] = ()
    resources: tuple[Resources, ...] = ()
    compile_s: float | None = None
    timing: Timing | None = None
    speedup: Speedup | None = None
    schedule: dict[str, int] = field(default_factory=dict)
    path: str | None = None  # the stored source
    draft: str | None = None  # the id of the draft that this is with its evidence in the header
    device: str | None = None  # where it was validated: "NVIDIA H200", "emulated"
    profile: Profile | None = None  # of the emulated device
