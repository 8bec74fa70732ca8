"""What the model is told of code, verdicts and places."""

from __future__ import annotations

from pathlib import Path

from cutesmith_agent.refine.paths import without_paths
from cutesmith_agent.verdicts import median_ms
from cutesmith_evaluator.types import Candidate, Finding

_MOST_FINDINGS = 6
_LONGEST = 1_500  # characters of one finding
_MARGIN, _NUMBERED = 6, 5  # columns of a listing; of its lines, each so many has its number


def enclosed(text: str) -> str:
    """A user's text that stays between the marks it is shown in, whatever it contains."""
    return text.replace("</", "< /").rstrip()


def listing(source: str, marked: frozenset[int] = frozenset()) -> str:
    """The file in a margin of six columns, as `patches` reads it. Every fifth line has its number there (on each, they
    would take a sixth of the listing's tokens), and so have those that findings name, which are marked."""
    lines = enumerate(source.rstrip("\n").split("\n"), 1)
    return "\n".join(f"{_margin(number, number in marked)}{line}" for number, line in lines)


def _margin(number: int, is_marked: bool) -> str:
    if is_marked:
        return f"{number:4d}> "
    return f"{number:4d}| " if number % _NUMBERED == 0 else " " * _MARGIN


def verdict(candidate: Candidate, root: Path) -> str:
    """Where a candidate failed, and all that the evaluator found, without a path of this machine."""
    errors = [finding for finding in candidate.findings if finding.severity == "error"]
    others = [finding for finding in candidate.findings if finding.severity != "error"]
    shown = [*errors, *others][:_MOST_FINDINGS]
    left = len(candidate.findings) - len(shown)
    lines = [f"It failed at the stage {candidate.stage!r}.", *(f"- {_finding(one, candidate, root)}" for one in shown)]
    return "\n".join([*lines, *([f"- and {left} more like these"] if left else [])])


def marked_lines(candidate: Candidate) -> frozenset[int]:
    """The lines of the candidate's own file that its findings name."""
    return frozenset(one.line for one in candidate.findings if one.line and one.file == candidate.path)


def _finding(finding: Finding, candidate: Candidate, root: Path) -> str:
    place = f"line {finding.line}: " if finding.line and finding.file == candidate.path else ""
    return f"{finding.kind}: {place}{shortened(without_paths(finding.message, root))}"


def shortened(text: str, longest: int = _LONGEST) -> str:
    """The beginning and the end of a long text: an error's first line, and what it ends with."""
    if len(text) <= longest:
        return text
    return f"{text[: longest // 2]}\n[...]\n{text[-longest // 2 :]}"


def result(candidate: Candidate) -> str:
    """What is known of a right candidate, in a few words."""
    precision = f", precision {candidate.precision}" if candidate.precision else ""
    ms = median_ms(candidate.timing) if candidate.timing else None
    if ms is not None:
        return f"right{precision}, {ms:.4g} ms"
    where = " on the emulated device" if candidate.device == "emulated" else ""
    return f"right{where}{precision}, not timed" if candidate.ok else "compiled, not run"
