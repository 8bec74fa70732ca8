"""What else is known of a kernel: its resources, hints, findings, what it cost, and its source."""

from __future__ import annotations

from cutesmith_evaluator.types import Candidate, KernelMeasures
from cutesmith_evaluator.units import amount
from cutesmith_server.page.markup import Markup, joined, line_link, paragraph, section, table, tag
from cutesmith_server.page.study import Study


def resources(candidate: Candidate) -> Markup:
    rows = [
        (used.kernel, used.arch, str(used.registers), amount(used.shared_bytes), amount(used.spill_bytes))
        for used in candidate.resources
    ]
    if not rows:
        return Markup("")
    head = ("kernel", "arch", "registers a thread", "shared memory a block", "spilled")
    seconds = f"Compiled in {candidate.compile_s:.2f} s." if candidate.compile_s is not None else ""
    return section("Resources", table(head, rows, "What ptxas gave each kernel"), paragraph(seconds, class_="note"))


def hints(candidate: Candidate) -> Markup:
    """The profilers' hints, each with a link to its line, and what they measured."""
    profile = candidate.profile
    if profile is None:
        return Markup("")
    items = [
        tag(
            "li",
            *((line_link(hint.line, f"line {hint.line}"), ": ") if hint.line else ()),
            hint.message,
            f" (up to {hint.gain:.0%})",
        )
        for hint in profile.hints
    ]
    lists = tag("ol", *items) if items else None
    measured = _measured(profile.measured)
    return section("Hints of the profilers", lists, measured) if lists or measured else Markup("")


def _measured(kernels: tuple[KernelMeasures, ...]) -> Markup:
    rows = [
        (
            each.kernel,
            f"{each.us:.3g} µs",
            _share(each.dram_share),
            _share(each.l2_share),
            _share(each.sm_share),
            _share(each.occupancy),
        )
        for each in kernels
    ]
    head = ("kernel", "time", "memory", "L2", "busiest unit", "occupancy")
    return table(head, rows, "Nsight Compute, shares of the peak, caches cold") if rows else Markup("")


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def findings(found: Study, candidate: Candidate) -> Markup:
    all_of_them = (*(found.report.findings if found.report is not None else ()), *candidate.findings)
    items = []
    for each in all_of_them:
        is_ours = each.line is not None and each.file in (None, candidate.path)
        place = joined((line_link(each.line, f"line {each.line}"), ": ")) if is_ours else None
        items.append(tag("li", tag("code", each.kind), " ", place, each.message, class_=each.severity))
    return section("Findings", tag("ul", *items)) if items else Markup("")


def spend(found: Study) -> Markup:
    model = found.report.model if found.report is not None else None
    if not model:
        return section("Spend", paragraph("No model was asked: this kernel cost nothing but time."))
    dollars = model.get("dollars")
    cost = "not known" if dollars is None else f"${dollars:.2f}"
    rows = [
        ("model", str(model.get("name"))),
        ("calls", str(model.get("calls"))),
        ("tokens read, of them from the cache", f"{_tokens(model, 'uncached', 'cached')}, {_tokens(model, 'cached')}"),
        ("tokens written", _tokens(model, "output")),
        ("cost", cost),
    ]
    return section("Spend", table(("what", "how much"), rows, f"Prices: {model.get('prices')}"))


def _tokens(model: dict[str, object], *names: str) -> str:
    values = [value for name in names if isinstance(value := model.get(name), int)]
    return f"{sum(values):,}"


def environment(found: Study) -> Markup:
    told = (found.job.report or {}).get("environment") or {}
    names = {
        "python": "Python",
        "torch": "PyTorch",
        "dsl": "CuTe DSL",
        "tvm_ffi": "tvm-ffi",
        "device": "CUDA device",
        "driver": "driver",
    }
    rows = [(words, str(told[name])) for name, words in names.items() if told.get(name)]
    return (
        section("Proved with", table(("what", "which"), rows, "The verdict holds for this and nothing else"))
        if rows
        else Markup("")
    )


def source(found: Study) -> Markup:
    """The kernel's text with its lines numbered, for links to lead to."""
    if not found.source:
        return Markup("")
    lines = found.source.split("\n")
    rows = [
        tag("li", tag("code", text or " "), id=f"L{number}")
        for number, text in enumerate(lines[:-1] if lines[-1] == "" else lines, 1)
    ]
    summary = f"The kernel's source, {len(rows)} lines"
    return section("Source", tag("details", tag("summary", summary), tag("ol", *rows, class_="source")))
