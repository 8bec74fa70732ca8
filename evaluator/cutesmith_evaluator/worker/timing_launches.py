"""What a call takes launched by the host one after the other, and as a CUDA graph: the two ways that users launch."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial

import torch

from cutesmith_evaluator.types import ArmName, Launching
from cutesmith_evaluator.worker.clock import Call, Clock
from cutesmith_evaluator.worker.timing_checks import long_batch
from cutesmith_evaluator.worker.timing_statistics import take_turns

ARMS: tuple[ArmName, ...] = ("candidate", "eager", "compile", "max-autotune")
_BATCHES = 3
_GRAPH_S = 0.3  # of sampling a graph

_new_graph, _capture = torch.cuda.CUDAGraph, torch.cuda.graph  # before judged code could replace them


def launch_times(clock: Clock, calls: Mapping[str, Call], medians_ms: Mapping[str, float]) -> tuple[Launching, ...]:
    """Of the arms that run, each by itself: figures to know, not to compare by."""
    return tuple(_launching(clock, name, calls[name], medians_ms[name]) for name in ARMS if name in calls)


def _launching(clock: Clock, name: ArmName, call: Call, median_ms: float) -> Launching:
    batches = [long_batch(clock, call, median_ms) for _ in range(_BATCHES)]
    eager_ms = statistics.median(batch.host_ms / batch.calls for batch in batches)
    return Launching(name, eager_ms, _graph_ms(clock, call))


def _graph_ms(clock: Clock, call: Call) -> float | None:
    try:
        replay = _captured(call)
    except Exception:  # noqa: BLE001 - judged code may raise anything where it is captured; that is then what is told
        torch.cuda.synchronize()
        return None
    samplers = {"graph": partial(clock.sample, replay)}
    return statistics.median(take_turns(samplers, budget_s=_GRAPH_S, precision=0.005, now=clock.now)["graph"])


def _captured(call: Call) -> Call:
    """A replay of the call. Raises what CUDA or the call raises where it cannot be captured."""
    graph = _new_graph()
    with _capture(graph):
        result = call()
    kept = (graph, result)  # the replay writes to the result's memory
    return lambda: kept[0].replay()
