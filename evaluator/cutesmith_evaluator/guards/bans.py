"""What a name that no kernel needs could do to a judge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ban:
    """`kind`: the finding's. `words`: completes "<file>:<line> uses <name>: ..."."""

    kind: str
    words: str


TIMER = Ban("timer", "a kernel has no use for clocks and events, the judge's are not its business; remove it")
STREAM = Ban("stream", "work must be on the caller's current stream, where it is waited for and timed; remove it")
GRAPH = Ban(
    "graph-replay", "a replayed CUDA graph gives the results of the inputs it was captured with; launch instead"
)
THREAD = Ban("thread", "work must be done when forward returns, in the caller's thread and process; remove it")
FILE = Ban("file", "a kernel reads and writes no files, its results depend on its inputs alone; remove it")
NETWORK = Ban("network", "a kernel talks to nobody; remove it")
CODE = Ban("dynamic-code", "code that is made at run time cannot be judged by reading it; write it out")
NATIVE = Ban("native-code", "native code cannot be judged by reading it; write the kernel in the CuTe DSL")
WALK = Ban("introspection", "a kernel has no business in frames, the garbage collector or loaded modules; remove it")
SWITCH = Ban("changes-settings", "PyTorch's settings belong to the caller; leave them as they are")
ENVIRONMENT = Ban("environment", "what a kernel computes must not depend on the process's environment; remove it")
PATCH = Ban("monkey-patch", "it changes what other code does; leave PyTorch and Python as they are")
EXIT = Ban("ends-process", "a kernel must not end the process or run code at its end; remove it")
COMPILER = Ban("library-only", "torch.compile is what the kernel is compared with; write the kernel")
RANDOM = Ban("randomness", "the result must depend on the inputs alone; remove it")
DRIVER = Ban("driver-call", "a kernel is launched through the DSL; the driver's own functions change the device")
GRADIENT = Ban("reads-gradient", "what autograd works out is PyTorch's work, and no kernel's; remove it")
HELPER = Ban("torch-compute", "what PyTorch's helpers run is no kernel; call the kernel, and nothing else")
JUDGE = Ban("evaluator-branch", "tells where the kernel is run; compute the same everywhere")
