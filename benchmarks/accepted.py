"""A module with its kernel accepted, measured on the CUDA device.

`python accepted.py device|host FILE CLASS KERNEL` prints one JSON object. FILE is the patched file, KERNEL the name of
the kernel's module beside it.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import fx, nn

from cutesmith_evaluator.worker.clock import Call, Clock
from cutesmith_evaluator.worker.timing_statistics import take_turns


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
        return (
            self.kernel.forward(self.module, *self.inputs) if self.kernel.supports(self.module, *self.inputs) else None
        )

    def compiled(self) -> Call:
        """The module under torch.compile's defaults, already compiled."""
        torch.compiler.reset()
        compiled = torch.compile(self.module)
        compiled(*self.inputs)
        return lambda: compiled(*self.inputs)

    def graphs_under_compile(self) -> list[list[str]]:
        """The ops of each graph that torch.compile makes: one graph of one op, when the kernel is all there is."""
        graphs: list[list[str]] = []

        def record(graph: fx.GraphModule, _: list[torch.Tensor]) -> Callable[..., object]:
            graphs.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
            return graph.forward

        torch.compiler.reset()
        torch.compile(self.module, backend=record)(*self.inputs)
        return graphs


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


def device_ms(calls: Mapping[str, Call]) -> dict[str, float]:
    """Median milliseconds on the device, sampled in turns with a cold L2, launching kept out."""
    clock = Clock(torch.device("cuda"))
    samplers = {name: partial(clock.sample, call, clock.lead_ms(call)) for name, call in calls.items()}
    samples = take_turns(samplers, budget_s=4.0, precision=0.003, now=clock.now)
    return {name: statistics.median(values) for name, values in samples.items()}


def host_us(calls: Mapping[str, Call]) -> dict[str, float]:
    """Median microseconds that a call keeps the host busy, while the device sleeps."""
    clock = Clock(torch.device("cuda"))
    samplers = {name: partial(clock.host_ms, call) for name, call in calls.items()}
    samples = take_turns(samplers, budget_s=2.0, precision=0.01, now=clock.now)
    return {name: statistics.median(values) * 1e3 for name, values in samples.items()}


def measure_device(arguments: list[str]) -> dict[str, Any]:
    """Device milliseconds of the module called directly and compiled, their ratio, and what torch.compile saw."""
    accepted = AcceptedModule(Path(arguments[0]), *arguments[1:])
    graphs = accepted.graphs_under_compile()
    times = device_ms({"direct": accepted.direct, "compiled": accepted.compiled()})
    return {
        "direct_ms": times["direct"],
        "compiled_ms": times["compiled"],
        "ratio": times["compiled"] / times["direct"],
        "graphs": graphs,
    }


def measure_host(arguments: list[str]) -> dict[str, float]:
    """Host microseconds a call of the compiled kernel, the op, guard and op, the module, and the compiled module."""
    from cutlass import cute

    recorder = FirstLaunch(cute.compile)
    cute.compile = recorder
    accepted = AcceptedModule(Path(arguments[0]), *arguments[1:])
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
    measure = {"device": measure_device, "host": measure_host}[sys.argv[1]]
    print(json.dumps(measure(sys.argv[2:])))


if __name__ == "__main__":
    main()
