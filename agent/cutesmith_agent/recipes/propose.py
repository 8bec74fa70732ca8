"""From an inspected module to drafts: one kernel, or several one after the other, and a file for each schedule."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import islice, zip_longest

from cutesmith_evaluator.types import Finding, Graph, Inspection

from .attention_formats import with_cuda_formats
from .chains import chains_of, chains_of_convolutions
from .contract import Draft, Proposal, Target, Unsupported
from .file import write
from .kernels import Kernel, convolution_kernels, kernels_of
from .library import Call
from .steps import StepCall
from .text import kernel_name

MOST = 10  # drafts, where there are several kinds of kernels
CONVOLUTIONS = 4  # chains of kernels that begin with a convolution: beside them there are others
NO_DEVICE = "none"  # an environment's, where CUDA is missing


def propose(inspection: Inspection, target: Target) -> Proposal:
    """Drafts for the target, or the finding that says which op stopped it."""
    graph = inspection.graph
    if graph is None:
        return Proposal(findings=inspection.findings)
    if inspection.environment.device != NO_DEVICE:
        graph = with_cuda_formats(graph)
    own = _of_convolutions(graph, inspection, target)
    try:
        drafts = [_draft(kernel, (), inspection, target) for kernel in kernels_of(graph, target, _name(target))]
    except Unsupported as stop:
        drafts = _in_several(graph, inspection, target)
        if not drafts and not own:
            return Proposal(findings=(Finding("no-recipe", f"{stop}.", stop.line, str(target.module_file)),))
    drafts = [*drafts[:1], *own, *drafts[1:]]
    if any(name in draft.schedule for draft in drafts for name in ("tile_x", "tile_x_1")):
        drafts = _of_each_kind(drafts)
    return Proposal(tuple({hashlib.sha256(d.source.encode()).digest(): d for d in drafts}.values()))


def _of_each_kind(drafts: list[Draft]) -> list[Draft]:
    """Best guesses of each kind of kernel in turn, no more than are worth measuring; parameters tell kinds apart."""
    kinds: dict[frozenset[str], list[Draft]] = {}
    for draft in drafts:
        kinds.setdefault(frozenset(draft.schedule), []).append(draft)
    in_turn = (draft for row in zip_longest(*kinds.values()) for draft in row if draft is not None)
    return list(islice(in_turn, MOST))


def _in_several(graph: Graph, inspection: Inspection, target: Target) -> list[Draft]:
    """Drafts of several kernels, where one cannot do all."""
    try:
        return [_draft(last, calls, inspection, target) for calls, last in chains_of(graph, target, _name(target))]
    except Unsupported:
        return []


def _of_convolutions(graph: Graph, inspection: Inspection, target: Target) -> list[Draft]:
    """Drafts of several kernels, the first of which computes a convolution with what follows it directly;
    none where one kernel computes all."""
    if convolution_kernels(graph, target, _name(target)):
        return []
    chains = islice(chains_of_convolutions(graph, target, _name(target)), CONVOLUTIONS)
    try:
        return [_draft(last, calls, inspection, target) for calls, last in chains]
    except Unsupported:
        return []


def _draft(kernel: Kernel, earlier: tuple[Call, ...], inspection: Inspection, target: Target) -> Draft:
    parts = replace(kernel.parts(earlier), title=_title(kernel, earlier))
    source = write(kernel.program, inspection, target, parts)
    before = {name: value for call in earlier for name, value in call.schedule.items()}
    return Draft(source, before | kernel.schedule, parts.title)


def _title(kernel: Kernel, earlier: tuple[Call, ...]) -> str:
    """The last kernel's, and what earlier ones say of the arithmetic of products."""
    titles = [call.title for call in earlier if isinstance(call, StepCall)]
    said = dict.fromkeys(title.partition(": ")[2] for title in titles if "product" in title)
    return " ".join((kernel.variant.title, *(f"Before: {each}" for each in said)))


def _name(target: Target) -> str:
    return kernel_name(target.class_name)
