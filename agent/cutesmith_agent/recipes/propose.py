"""From an inspected module to drafts: one kernel, or several one after the other, and a file for each schedule."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import islice

from cutesmith_evaluator.types import Finding, Graph, Inspection

from .attention_formats import with_cuda_formats
from .averages import chains_of_averages
from .chains import chains_of, chains_of_convolutions, chains_of_sums
from .contract import Draft, Proposal, Target, Unsupported, kinds_in_turn
from .file import write
from .kernels import Kernel, kernels_of
from .library import Call
from .steps import StepCall
from .text import kernel_name

MOST = 10  # drafts, where there are several kinds of kernels
CONVOLUTIONS = 8  # chains of kernels that begin with a convolution: beside them there are others
_CONVOLVES = "tile_x"  # a constant of kernels that compute a convolution themselves
_SAID = ("product", "rearrangement")  # in titles
NO_DEVICE = "none"  # an environment's, where CUDA is missing


def propose(inspection: Inspection, target: Target) -> Proposal:
    """Drafts for the target, or the finding that says which op stopped it."""
    graph = inspection.graph
    if graph is None:
        return Proposal(findings=inspection.findings)
    if inspection.environment.device != NO_DEVICE:
        graph = with_cuda_formats(graph)
    averages = _of_averages(graph, inspection, target)
    drafts, stopped = _of_one_or_several(graph, inspection, target)
    if not any(_CONVOLVES in draft.schedule for draft in drafts):
        drafts[1:1] = _of_convolutions(graph, inspection, target)
    drafts = [*averages, *drafts]
    if not drafts and stopped:
        return Proposal(findings=(Finding("no-recipe", f"{stopped}.", stopped.line, str(target.module_file)),))
    if averages or any(name in draft.schedule for draft in drafts for name in (_CONVOLVES, f"{_CONVOLVES}_1")):
        drafts = list(kinds_in_turn(drafts, MOST))
    return Proposal(tuple({hashlib.sha256(d.source.encode()).digest(): d for d in drafts}.values()))


def _of_one_or_several(graph: Graph, inspection: Inspection, target: Target) -> tuple[list[Draft], Unsupported | None]:
    """Drafts of one kernel; of several, and what stopped the one, where it cannot do all."""
    try:
        return [_draft(kernel, (), inspection, target) for kernel in kernels_of(graph, target, _name(target))], None
    except Unsupported as stop:
        return _in_several(graph, inspection, target), stop


def _in_several(graph: Graph, inspection: Inspection, target: Target) -> list[Draft]:
    """Drafts of several kernels, where one cannot do all."""
    try:
        return [_draft(last, calls, inspection, target) for calls, last in chains_of(graph, target, _name(target))]
    except Unsupported:
        return []


def _of_averages(graph: Graph, inspection: Inspection, target: Target) -> list[Draft]:
    """Drafts that compute averages of a convolution without it."""
    try:
        found = chains_of_averages(graph, target, _name(target))
        return [_draft(last, calls, inspection, target) for calls, last in found]
    except Unsupported:
        return []


def _of_convolutions(graph: Graph, inspection: Inspection, target: Target) -> list[Draft]:
    """Drafts of several kernels, the first of which computes a convolution with what follows it directly."""
    drafts = []
    for chains in (chains_of_sums, chains_of_convolutions):
        try:
            found = islice(chains(graph, target, _name(target)), CONVOLUTIONS)
            drafts += [_draft(last, calls, inspection, target) for calls, last in found]
        except Unsupported:
            continue
    return drafts


def _draft(kernel: Kernel, earlier: tuple[Call, ...], inspection: Inspection, target: Target) -> Draft:
    parts = replace(kernel.parts(earlier), title=_title(kernel, earlier))
    source = write(kernel.program, inspection, target, parts)
    before = {name: value for call in earlier for name, value in call.schedule.items()}
    return Draft(source, before | kernel.schedule, parts.title)


def _title(kernel: Kernel, earlier: tuple[Call, ...]) -> str:
    """The last kernel's, and what earlier ones say of arithmetic that is not as written."""
    titles = [call.title for call in earlier if isinstance(call, StepCall)]
    said = dict.fromkeys(title.partition(": ")[2] for title in titles if any(word in title for word in _SAID))
    return " ".join((kernel.variant.title, *(f"Before: {each}" for each in said)))


def _name(target: Target) -> str:
    return kernel_name(target.class_name)
