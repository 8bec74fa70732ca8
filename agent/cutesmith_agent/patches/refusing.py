"""What a model is told of a patch that is refused, so that the next one is right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from cutesmith_agent.patches import prose
from cutesmith_agent.patches.patch import Change
from cutesmith_agent.patches.placing import Unplaced
from cutesmith_agent.patches.text import Text
from cutesmith_agent.patches.tokens import Tokens, tokens
from cutesmith_agent.source.edits import Edit
from cutesmith_agent.source.positions import Span

_AROUND = 2  # lines shown before and after a place
_LONGEST = 14  # lines shown of one place
_MOST = 4  # places shown
_SHORTLIST = 6  # windows compared character by character


def unplaced(text: Text, number: int, change: Change, problem: Unplaced) -> str:
    """Why edit `number` has no place, and the lines that it may mean."""
    if problem.spans:
        return _several(text, number, problem)
    near = nearest(text, change)
    names = _unknown_names(text, change.find)
    unknown = f" Not in the file at all: {', '.join(names)}." if names else ""
    return f"Edit {number}: `find` {problem.reason}.{unknown} Nearest lines:\n{numbered(text, near.start, near.stop)}"


def _several(text: Text, number: int, problem: Unplaced) -> str:
    shown = _merged([_span_lines(text, span) for span in problem.spans[:_MOST]])
    lines = ("line " if len(problem.spans) == 1 else "lines ") + ", ".join(
        str(text.line(span.start)) for span in problem.spans
    )
    if len(problem.spans) == 1:
        advice = "Quote whole lines with their indentation, and indent `replace` as the file is."
    else:
        advice = "Quote more lines around the one that you mean, until they are the only ones."
    places = "\n   …\n".join(numbered(text, lines.start, lines.stop) for lines in shown)
    return f"Edit {number}: `find` {problem.reason} ({lines}). {advice}\n{places}"


def overlapping(text: Text, first: int, second: int, span: Span) -> str:
    lines = _span_lines(text, span)
    return f"Edits {first} and {second} change the same lines: make one edit of them.\n" + numbered(
        text, lines.start, lines.stop
    )


def unparsed(patched: str, line: int | None, words: str) -> str:
    """The error that Python finds in the patched file, with the lines around it."""
    if line is None:
        return f"With these edits the file is no valid Python: {words}."
    shown = numbered(Text(patched), line - 2 * _AROUND, line + _AROUND + 1)
    return f"With these edits the file is no valid Python: {words} (line {line} of the patched file).\n{shown}"


def would_apply(text: Text, placed: Iterable[tuple[int, Edit]]) -> str:
    """Which edits have their place, and that nothing was done with them."""
    done = [f"{number} (line {text.line(edit.start)})" for number, edit in placed]
    rest = f"These edits would have applied: {', '.join(done)}. " if done else ""
    return rest + "Nothing was changed: send the whole patch again, corrected."


def numbered(text: Text, first: int, stop: int) -> str:
    """Lines first to stop - 1 (1-based) as the prompt shows them; the middle of many is left out."""
    numbers = range(max(1, first), min(stop, len(text.lines.starts) + 1))
    if len(numbers) <= _LONGEST:
        return "\n".join(f"{number:4d}| {text.line_text(number)}" for number in numbers)
    half = _LONGEST // 2
    head, tail = numbered(text, numbers[0], numbers[half]), numbered(text, numbers[-half], numbers[-1] + 1)
    return f"{head}\n   …\n{tail}"


def _span_lines(text: Text, span: Span) -> range:
    return range(text.line(span.start) - _AROUND, text.line(max(span.start, span.end - 1)) + 1 + _AROUND)


def _merged(places: Iterable[range]) -> list[range]:
    """The same lines in ranges that do not touch."""
    merged: list[range] = []
    for place in sorted(places, key=lambda each: each.start):
        if merged and place.start <= merged[-1].stop:
            merged[-1] = range(merged[-1].start, max(merged[-1].stop, place.stop))
        else:
            merged.append(place)
    return merged


def nearest(text: Text, change: Change) -> range:
    """The lines (1-based) that are most like the quoted ones; of equals, the nearest to `near_line`."""
    count, total = max(1, len(change.find.strip("\n").split("\n"))), len(text.lines.starts)
    windows = [range(first, min(first + count, total + 1)) for first in range(1, max(2, total - count + 2))]
    wanted = _bag(tokens(change.find))
    bags = _line_bags(text)
    by_tokens = sorted(windows, key=lambda window: -_shared(wanted, (bags[number] for number in window)))[:_SHORTLIST]

    def rank(window: range) -> tuple[float, int]:
        content = "\n".join(text.line_text(number) for number in window)
        return -round(prose.likeness(change.find, content), 2), abs(window.start - (change.near_line or window.start))

    best = min(by_tokens, key=rank)
    return range(best.start - _AROUND, best.stop + _AROUND)


def _bag(found: Tokens) -> Counter[str]:
    return Counter(token.form for token in (*found.code, *found.comments))


def _line_bags(text: Text) -> dict[int, Counter[str]]:
    bags: dict[int, Counter[str]] = defaultdict(Counter)
    for token in (*text.tokens.code, *text.tokens.comments):
        bags[text.line(token.start)][token.form] += 1
    return bags


def _shared(wanted: Counter[str], lines: Iterable[Counter[str]]) -> float:
    have: Counter[str] = Counter()
    for line in lines:
        have.update(line)
    union = sum((wanted | have).values())
    return sum((wanted & have).values()) / union if union else 0.0


def _unknown_names(text: Text, find: str) -> Sequence[str]:
    known = {token.form for token in text.tokens.code}
    return sorted({token.form for token in tokens(find).code if token.kind == "name"} - known)[:5]
