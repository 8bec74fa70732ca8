"""A device without a GPU: modules loaded, kernels launched on real memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

from cutesmith_evaluator.emulator.compiling import compile_kernel
from cutesmith_evaluator.emulator.counts import Counts
from cutesmith_evaluator.emulator.faults import UnsupportedError
from cutesmith_evaluator.emulator.heap import keep_freed_memory
from cutesmith_evaluator.emulator.kinds import understood
from cutesmith_evaluator.emulator.launch import Launch, launch
from cutesmith_evaluator.emulator.layout import lay_out
from cutesmith_evaluator.emulator.memory import Allocation, GlobalMemory
from cutesmith_evaluator.emulator.program import Program
from cutesmith_evaluator.emulator.ptx import Module
from cutesmith_evaluator.emulator.reader import read_module
from cutesmith_evaluator.emulator.sampling import Budget, has_independent_blocks

_VARIABLES = 1 << 30  # bytes
Between = Callable[[str, float], None]


@dataclass
class LoadedModule:
    """A module with its global variables in memory."""

    module: Module
    addresses: dict[str, int]
    buffers: list[ctypes.Array[ctypes.c_char]]  # keeps the variables alive
    programs: dict[str, Program] = field(default_factory=dict)


class Device:
    """`counts`: of the launches so far, by kernel. `between` is called now and then during a launch, with the kernel
    and the part of the launch that is done, and may raise. `budget`: None runs all blocks of every launch; `whole`
    holds the kernels that run in full whatever the budget; `parts` tells of the others how many blocks ran, of how
    many, in the largest launch of which some did not."""

    def __init__(self, *, between: Between = lambda kernel, done: None, count_traffic: bool = True) -> None:
        keep_freed_memory()
        self.memory = GlobalMemory()
        self.counts: dict[str, Counts] = {}
        self.budget: Budget | None = None
        self.whole: set[str] = set()
        self.parts: dict[str, tuple[int, int]] = {}
        self.launched = 0  # kernels so far
        self._between = between
        self.count_traffic = count_traffic

    def load(self, ptx: str) -> LoadedModule:
        """Raises UnsupportedError for PTX that is not understood."""
        with understood():
            module = read_module(ptx)
        if sum(variable.size for variable in module.variables) > _VARIABLES:
            raise UnsupportedError("the PTX has more than 1 GiB of global variables, which is not emulated")
        loaded = LoadedModule(module, {}, [])
        for variable in module.variables:
            if variable.space in ("global", "const"):
                buffer = ctypes.create_string_buffer(variable.data.ljust(variable.size, b"\0"), variable.size)
                address = ctypes.addressof(buffer)
                self.memory.add(Allocation(address, variable.size, f"the variable {variable.name}"))
                loaded.addresses[variable.name] = address
                loaded.buffers.append(buffer)
        return loaded

    def program(self, loaded: LoadedModule, kernel: str) -> Program:
        """The kernel, made ready once. Raises UnsupportedError."""
        if kernel not in loaded.module.kernels:
            raise UnsupportedError(f"the PTX has no kernel {kernel}", kernel)
        if kernel not in loaded.programs:
            read = loaded.module.kernels[kernel]
            with understood():
                layout = lay_out(loaded.module, read, loaded.addresses)
            loaded.programs[kernel] = compile_kernel(read, layout, loaded.module.arch)
        return loaded.programs[kernel]

    def launch(self, loaded: LoadedModule, kernel: str, config: Launch) -> Counts:
        """Runs a kernel to its end. Raises FaultError and UnsupportedError."""
        program = self.program(loaded, kernel)
        budget = self.budget if kernel not in self.whole and has_independent_blocks(program.kernel) else None
        counts = self.counts.setdefault(kernel, Counts(self.count_traffic))
        blocks, ran = counts.blocks, counts.blocks_run
        self.launched += 1
        launch(program, config, self.memory, counts, partial(self._between, kernel), budget)
        blocks, ran = counts.blocks - blocks, counts.blocks_run - ran
        if ran < blocks:
            self.parts[kernel] = max(self.parts.get(kernel, (0, 0)), (ran, blocks), key=itemgetter(1))
        return counts
