"""The process of a confirmation that has the candidate: it runs calls and hands results over, and judges nothing.

Whatever it answers may be the candidate's doing. What it is asked for next is not known to it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from cutesmith_evaluator.confirmation import Call, call_of
from cutesmith_evaluator.emulator.properties import properties_of
from cutesmith_evaluator.emulator.sampling import Budget
from cutesmith_evaluator.types import Finding, Task
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.arguments import dtype_name
from cutesmith_evaluator.worker.candidate import LoadedCandidate, load_candidate
from cutesmith_evaluator.worker.checks_call import guarded
from cutesmith_evaluator.worker.checks_guard import kernel_module
from cutesmith_evaluator.worker.confirm_replay import Replay, kernels_of_call, reads, same_memory
from cutesmith_evaluator.worker.confirm_site import Site, copied_into, digests, open_site, word
from cutesmith_evaluator.worker.emulated import EmulatedCandidate
from cutesmith_evaluator.worker.emulated_time import Pace
from cutesmith_evaluator.worker.emulated_validation import ARCH, DEVICE, support
from cutesmith_evaluator.worker.failures import TaskError
from cutesmith_evaluator.worker.inputs import Inputs, tensors
from cutesmith_evaluator.worker.methods import Params, Progress
from cutesmith_evaluator.worker.numerics import flat
from cutesmith_evaluator.worker.reference import load_reference

_END_S = 60.0  # after which a kernel on the emulated device is stopped
_BUDGET = Budget(whole=1e9, part=1e8)  # so that blocks are left out only where there are very many


T = TypeVar("T")


class CaptureError(Exception):
    """The calls cannot be one CUDA graph."""


@dataclass(frozen=True)
class Replayed:
    """A replay of the calls of these names."""

    names: list[str]
    replay: Replay


@dataclass
class Runner:
    """A candidate with the calls that it has made and that are not handed over yet."""

    site: Site
    candidate: LoadedCandidate
    inputs: dict[str, Inputs] = field(default_factory=dict)
    outputs: dict[str, list[Tensor]] = field(default_factory=dict)
    replayed: Replayed | None = None

    def draw(self, call: Call) -> None:
        """Raises TaskError, also where the candidate does not support the inputs."""
        drawn = self.site.drawn(call)
        if call.into is not None:
            drawn = copied_into(self.inputs[call.into], drawn)
        self.inputs[call.name] = drawn
        arguments = (self.site.module, *drawn)
        if not self._guarded(lambda: self.candidate.supports(*arguments), f"asked whether it supports {call.label}"):
            why = self._guarded(lambda: self.candidate.explain(*arguments), f"asked about {call.label}")
            message = f"{self.candidate.path.name} does not support {call.label}: {why}."
            raise TaskError(Finding("unsupported-inputs", message, None, str(self.candidate.path)))
        self._guarded(lambda: self.candidate.warm_up(*arguments), f"warming up on {call.label}")

    def run(self, call: Call) -> list[Tensor]:
        """Raises TaskError."""
        forward = partial(self.candidate.forward, self.site.module, *self.inputs[call.name])
        self.outputs[call.name] = tensors(self._guarded(forward, f"running on {call.label}"))
        return self.outputs[call.name]

    def repeat(self, names: list[str]) -> list[list[int]]:
        """The calls back to back, and a word for each of their outputs, once the device has finished."""
        forward = self.candidate.bound(self.site.module)

        def made() -> list[list[int]]:
            words = []
            for name in names:
                self.outputs[name] = tensors(forward(*self.inputs[name]))
                words.append([word(digests(output)) for output in self.outputs[name]])
            return [[int(each) for each in one] for one in words]

        return self._guarded(made, "running timed calls")

    def capture(self, names: list[str]) -> list[str] | None:
        """The calls become one CUDA graph. Returns the kernels of a call; None where they are not told.

        Raises CaptureError."""
        forward = self.candidate.bound(self.site.module)
        calls = [partial(_outputs, forward, self.inputs[name]) for name in names]
        if not all(reads(self.inputs[name]) for name in names):
            raise CaptureError
        try:
            self.replayed = Replayed(names, Replay(calls))
            self.outputs |= dict(zip(names, self.replayed.replay.outputs, strict=True))
            return kernels_of_call(calls[0])
        except Exception:  # noqa: BLE001 - judged code may raise anything where it is captured; it need not bear that
            torch.cuda.synchronize()
            raise CaptureError from None

    def replay(self, names: list[str]) -> list[list[int]] | None:
        """Words, as `repeat` gives them, for calls that were drawn into the captured ones' tensors; None where a
        replay does not read them."""
        assert self.replayed is not None
        pairs = zip(self.replayed.names, names, strict=True)
        if not all(same_memory(self.inputs[old], self.inputs[new]) for old, new in pairs):
            return None
        return self._guarded(self.replayed.replay.words, "replaying calls as a CUDA graph")

    def _guarded(self, call: Callable[[], T], doing: str) -> T:
        return guarded(call, "candidate-raises", doing, self.candidate.path, self.site.device)


@dataclass
class _Held:
    """What lives from one request to the next."""

    runner: Runner | None = None

    def required(self) -> Runner:
        assert self.runner is not None, "no candidate was loaded"
        return self.runner


_held = _Held()


def take(params: Params, progress: Progress) -> dict[str, object]:
    """Imports the candidate. Params: a site's, candidate, arch, time_s."""
    reference = load_reference(Task(**params["task"]))
    candidate = load_candidate(Path(params["candidate"]), reference)
    if params["device"] == DEVICE:
        candidate = _emulated(candidate, params, progress)
    takes = support(reference.build("cpu"), candidate) if kernel_module(candidate) else lambda inputs: False
    answers: list[bool] = []

    def asked(inputs: Inputs) -> bool:
        answers.append(takes(inputs))
        return answers[-1]

    _held.runner = Runner(open_site(params, asked), candidate)
    return {"answers": answers}


@torch.no_grad()
def draw(params: Params, progress: Progress) -> dict[str, object]:
    """Params: call."""
    _held.required().draw(call_of(params["call"]))
    return {}


@torch.no_grad()
def run(params: Params, progress: Progress) -> dict[str, object]:
    """Params: call, which has been drawn. What it gives stays here until it is asked for."""
    outputs = _held.required().run(call_of(params["call"]))
    return {"outputs": [_described(output) for output in outputs]}


@torch.no_grad()
def repeat(params: Params, progress: Progress) -> dict[str, object]:
    """Params: names of calls, which have been drawn."""
    runner = _held.required()
    made = runner.repeat(params["names"])
    outputs = [[_described(output) for output in runner.outputs[name]] for name in params["names"]]
    return {"words": made, "outputs": outputs}


@torch.no_grad()
def capture(params: Params, progress: Progress) -> dict[str, object]:
    """Params: names of calls, which have been drawn. "outputs" null: they cannot be captured, on no other device than a
    CUDA device."""
    runner = _held.required()
    try:
        if runner.site.device.type != "cuda":
            raise CaptureError
        kernels = runner.capture(params["names"])
    except CaptureError:
        return {"outputs": None, "kernels": None}
    return {"outputs": [_described(output) for output in runner.outputs[params["names"][0]]], "kernels": kernels}


@torch.no_grad()
def replay(params: Params, progress: Progress) -> dict[str, object]:
    """Params: names of calls, which have been drawn into those that were captured."""
    return {"words": _held.required().replay(params["names"])}


def hand_over(params: Params, progress: Progress) -> dict[str, object]:
    """Writes one output of a call to a file. Params: name, output (its place), blocks, file, digests (if wanted)."""
    runner = _held.required()
    output = runner.outputs[params["name"]][params["output"]]
    path = Path(os.environ["CUTESMITH_SCRATCH"]) / params["file"]
    computed = runner.candidate.judged(output)
    path.write_bytes(_bytes(_picked(output, params["blocks"])))
    if computed is not None:
        path.with_suffix(".mask").write_bytes(_bytes(_picked(computed, params["blocks"])))
    return {"masked": computed is not None, "digests": digests(output).tolist() if params["digests"] else None}


def forget(params: Params, progress: Progress) -> dict[str, object]:
    """Params: names of calls that are of no more use."""
    runner = _held.required()
    for name in params["names"]:
        runner.inputs.pop(name, None)
        runner.outputs.pop(name, None)
    if runner.replayed is not None and runner.replayed.names == params["names"]:
        runner.replayed = None
    return {}


def _emulated(candidate: LoadedCandidate, params: Params, progress: Progress) -> LoadedCandidate:
    dsl.load()
    asked = params.get("arch") or ARCH
    end_s = params.get("time_s") or _END_S
    pace = Pace(progress, end_s, end_s)
    made = EmulatedCandidate(candidate, asked if properties_of(asked) is not None else ARCH, pace.between)
    made.device.budget = _BUDGET
    return made


def _outputs(forward: Callable[..., object], inputs: Inputs) -> list[Tensor]:
    return tensors(forward(*inputs))


def _described(output: Tensor) -> dict[str, object]:
    return {"shape": list(output.shape), "dtype": dtype_name(output.dtype), "strides": list(output.stride())}


def _picked(output: Tensor, blocks: list[list[int]] | None) -> Tensor:
    line = flat(output)
    if blocks is None:
        return line
    return torch.cat([line[first : first + count] for first, count in blocks])


def _bytes(line: Tensor) -> bytes:
    return line.contiguous().cpu().view(torch.uint8).numpy().tobytes()
