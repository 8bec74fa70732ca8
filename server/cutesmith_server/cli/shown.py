"""A report as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cutesmith_evaluator.units import duration
from cutesmith_server import wording
from cutesmith_server.cli.output import from_here

if TYPE_CHECKING:
    from cutesmith_agent.describe.proposal import Proposal
    from cutesmith_evaluator.types import Candidate, Finding, Hint
    from cutesmith_server.report import Report

_STYLES = {"error": "red", "warning": "yellow", "information": "cyan"}


def show_report(report: Report, console: Console) -> None:
    """The candidates' figures, the best one, what is wrong, and the patch."""
    if (title := _title(report)) is not None:
        console.print(Text(title, style="bold"))
    if report.candidates:
        console.print(_table(report.candidates, report.best, with_schedule=console.width >= _WIDE))
        for line in _reasons(report.candidates):
            console.print(Text(line), soft_wrap=True)
    told = report.findings if len(_checked(report.candidates)) > 1 else report.all_findings
    findings = [finding for finding in told if finding.message != report.stopped]
    later = [one for one in findings if one.severity == "information"] if report.best_candidate is None else []
    for finding in findings:
        if finding not in later:
            console.print(_finding(finding), soft_wrap=True)
    if report.best_candidate is not None:
        console.print(Text(f"Best: {report.best}, {wording.headline(report.best_candidate)}", style="bold green"))
        for line in _details(report.best_candidate):
            console.print(Text(line), soft_wrap=True)
    if report.estimate_ms is not None:
        console.print(Text(f"Estimate (roofline, not measured): {duration(report.estimate_ms, 3)}"))
    console.print(Text(report.stopped), soft_wrap=True)
    for finding in later:  # what is worth knowing besides comes after the reason why there is no kernel
        console.print(_finding(finding), soft_wrap=True)
    if report.model is not None:
        console.print(Text(_model(report.model)), soft_wrap=True)
    if report.reference is not None:
        _show_reference(report.reference, console)
    if report.patch:
        show_patch(report.patch, console)
    if report.kernel is not None:
        target = f"{from_here(str(report.task.get('file')))}::{report.task.get('class')}"
        console.print(Text(f"To take it: cutesmith accept {target}", style="bold"), soft_wrap=True)


def _show_reference(reference: Proposal, console: Console) -> None:
    show_patch(reference.patch, console)
    console.print(Text("The checks, written from the description alone:", style="bold"))
    console.print(Text(reference.checks.rstrip()), soft_wrap=True)


def _model(used: dict[str, Any]) -> str:
    tokens = f"{used['uncached']:,} tokens read anew, {used['cached']:,} from its cache, {used['output']:,} written"
    cost = "its price is not known" if used["dollars"] is None else f"${used['dollars']:.2f}"
    return f"Model: {used['name']}, {used['calls']} calls, {tokens}: {cost}{_unsettled(used.get('unsettled', 0))}"


def _unsettled(calls: int) -> str:
    return f", with the most that may have been spent on {calls} cut off in mid-answer" if calls else ""


def _title(report: Report) -> str | None:
    """What was made for which class, and where it ran; None where nothing was: the reason then says it all."""
    kind = report.task.get("category")
    if kind is None:
        return None
    where = f"{wording.where(report.device)} ({report.arch})" if report.device != "none" else "run on no device"
    return f"{report.task.get('class')}: {kind}, {where}"


def show_patch(patch: str, console: Console) -> None:
    """A unified diff, its characters as they are."""
    for line in patch.rstrip("\n").split("\n"):
        console.print(Text(line, style=_patch_style(line)), soft_wrap=True)


_COLUMNS = ("file", "candidate", "stage", "result", "vs fp64", "eager's", "ratio", "compile", "median", "schedule")
_WIDE = 110  # columns of a terminal on which every column fits


def _table(candidates: tuple[Candidate, ...], best: str | None, *, with_schedule: bool) -> Table:
    """Columns that say nothing (no errors without a device) are left out, and drafts that stand there finished."""
    finished = {candidate.draft for candidate in candidates}
    candidates = tuple(candidate for candidate in candidates if candidate.id not in finished)
    several = len(_checked(candidates)) > 1
    rows = [(_file(candidate) if several else "", *_row(candidate)) for candidate in candidates]
    columns = range(len(_COLUMNS) if with_schedule else len(_COLUMNS) - 1)
    shown = [index for index in columns if any(row[index] for row in rows)]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for index in shown:
        table.add_column(_COLUMNS[index], no_wrap=True)
    for candidate, row in zip(candidates, rows, strict=True):
        table.add_row(*(row[index] for index in shown), style="bold" if candidate.id == best else None)
    return table


def _checked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that somebody gave as files."""
    return [each for each in candidates if each.origin == "user" and each.path is not None]


def _file(candidate: Candidate) -> str:
    return from_here(candidate.path or "")


def _reasons(candidates: Iterable[Candidate]) -> Iterable[str]:
    """Of several kernels that were checked, what speaks against each that is not called right."""
    checked = _checked(candidates)
    for each in checked if len(checked) > 1 else []:
        found = [finding for finding in each.findings if finding.severity == "error" or each.ok is None]
        if found and not each.ok:
            yield f"{_file(each)}{f':{found[0].line}' if found[0].line else ''}: {found[0].message}"


def _row(candidate: Candidate) -> tuple[str, ...]:
    error, timing = candidate.error, candidate.timing
    median = next((arm.median_ms for arm in timing.arms if arm.name == "candidate"), None) if timing else None
    return (
        candidate.id,
        candidate.stage,
        _result(candidate),
        f"{error.candidate:.2g} ({error.figure})" if error else "",
        f"{error.eager:.2g}" if error else "",
        f"{error.ratio:.2f}" if error else "",
        f"{candidate.compile_s:.2f} s" if candidate.compile_s is not None else "",
        duration(median) if median is not None else "",
        _schedule(candidate),
    )


def _result(candidate: Candidate) -> str:
    """Precision is what a right kernel has; of a wrong one it matters where it is the reason."""
    if candidate.ok is None:
        return "not run"
    if candidate.ok:
        return f"passed ({candidate.precision})" if candidate.precision else "passed"
    return "failed (lowered)" if candidate.precision == "lowered" else "failed"


def _schedule(candidate: Candidate) -> str:
    return " ".join(f"{name}={value}" for name, value in candidate.schedule.items())


def _details(candidate: Candidate) -> Iterable[str]:
    if candidate.schedule:
        yield "Schedule: " + _schedule(candidate)
    if candidate.error is not None:
        yield f"Against fp64: {wording.error_against_fp64(candidate.error)}"
    if candidate.timing is not None:
        yield f"Measured on {candidate.timing.device}: {wording.timing(candidate.timing)}"
        yield f"Conditions: {wording.conditions(candidate.timing)}"
        if candidate.timing.launches:
            yield f"A call after the other: {wording.launching(candidate.timing)}"
    for kernel in candidate.resources:
        yield wording.resources(kernel)
    if candidate.profile is not None and (candidate.profile.limiter or candidate.profile.hints):
        yield f"Limited by: {wording.limits(candidate.profile)}"
        yield from (f"Hint: {_hint(hint, candidate)}" for hint in candidate.profile.hints)
        yield from (finding.message for finding in candidate.profile.findings)


def _hint(hint: Hint, candidate: Candidate) -> str:
    """The line is of the kernel's file."""
    told = wording.hint(hint)
    return f"{Path(candidate.path).name} {told}" if hint.line and candidate.path else told


def _finding(finding: Finding) -> Text:
    place = f"{finding.file or ''}{f':{finding.line}' if finding.line else ''}"
    text = Text(f"{finding.kind}: ", style=_STYLES[finding.severity])
    return text.append(f"{finding.message}{f' ({place})' if place else ''}", style="default")


def _patch_style(line: str) -> str:
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "default")
