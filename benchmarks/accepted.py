"""What a call of an accepted module costs the host, on the CUDA device.

`python accepted.py FILE CLASS KERNEL` prints what `measure` returns as JSON. FILE is the patched file, KERNEL the name
of the kernel's module beside it.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from cutesmith_evaluator.worker.clock import Call, Clock
from cutesmith_evaluator.worker.timing_statistics import take_turns

CORES = 4  # tried for the figures


class AcceptedModule:
    """The class of a patched file in eval mode, its inputs, and the kernel's module. Warmed up."""

    def __init__(self, file: Path, qualname: str, kernel: str) -> None:
        sys.path.insert(0, str(file.parent))
        self.kernel: ModuleType = importlib.import_module(kernel)
        patched = importlib.import_module(file.stem)
        with torch.device("cuda"):
            self.inputs: list[object] = patched.get_inputs()
            self.module: nn.Module = getattr(patched, qualname)(*patched.get_init_inputs()).eval()
        reason = self.kernel.explain(self.module, *self.inputs)
        if reason is not None:
            raise SystemExit(f"{kernel} does not take {qualname}'s own inputs: {reason}")
        self.direct()

    def direct(self) -> object:
        return self.module(*self.inputs)

    def op(self) -> object:
        return self.kernel.forward(self.module, *self.inputs)

    def guarded_op(self) -> object:
        if self.kernel.supports(self.module, *self.inputs):
            return self.kernel.forward(self.module, *self.inputs)
        return self.direct()

    def compiled(self) -> Call:
        """The module under torch.compile's defaults, already compiled."""
        torch.compiler.reset()
        compiled = torch.compile(self.module)
        compiled(*self.inputs)
        return lambda: compiled(*self.inputs)


class FirstLaunch:
    """Stands in for `cute.compile` and remembers the first compiled kernel that was called, with its arguments.

    Costs each later call one more Python frame, so what is measured through it errs against the kernel.
    """

    def __init__(self, compile_: Any) -> None:
        self._compile = compile_
        self._launch: Call | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Callable[..., object]:
        compiled = self._compile(*args, **kwargs)

        def call(*inputs: Any) -> object:
            if self._launch is None:
                self._launch = lambda: compiled(*inputs)
            return compiled(*inputs)

        return call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compile, name)

    def launch(self) -> Call:
        if self._launch is None:
            raise SystemExit("the kernel was not called: nothing to measure")
        return self._launch


def host_us(calls: Mapping[str, Call]) -> dict[str, float]:
    """Median microseconds that a call keeps the host busy, while the device sleeps, on the quietest of a few cores.

    A core that others use too doubles every figure: the one that launches the raw kernel fastest is believed."""
    allowed = os.sched_getaffinity(0)
    rounds = []
    try:
        for core in sorted(allowed)[:: max(1, len(allowed) // CORES)]:
            os.sched_setaffinity(0, {core})
            rounds.append(_one_round(calls))
    finally:
        os.sched_setaffinity(0, allowed)
    return min(rounds, key=lambda us: us["raw"])


def _one_round(calls: Mapping[str, Call]) -> dict[str, float]:
    clock = Clock(torch.device("cuda"))
    samplers = {name: partial(clock.host_ms, call) for name, call in calls.items()}
    samples = take_turns(samplers, budget_s=1.0, precision=0.01, now=clock.now)
    return {name: statistics.median(values) * 1e3 for name, values in samples.items()}


def measure(file: Path, qualname: str, kernel: str) -> dict[str, float]:
    """Host microseconds a call of the compiled kernel, the op, guard and op, the module, and the compiled module."""
    from cutlass import cute

    recorder = FirstLaunch(cute.compile)
    cute.compile = recorder
    accepted = AcceptedModule(file, qualname, kernel)
    return host_us(
        {
            "raw": recorder.launch(),
            "op": accepted.op,
            "guarded_op": accepted.guarded_op,
            "direct": accepted.direct,
            "compiled": accepted.compiled(),
        }
    )


@torch.no_grad()
def main() -> None:
    file, qualname, kernel = sys.argv[1:]
    print(json.dumps(measure(Path(file), qualname, kernel)))


if __name__ == "__main__":
    main()
