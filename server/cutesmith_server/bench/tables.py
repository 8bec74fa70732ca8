"""A benchmark's results as Markdown, and the same as a page of HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from cutesmith_server.bench.totals import BASELINES, FAST, Means, Totals, totals

Row = Sequence[str]
_TASK_HEAD = (
    "task", "outcome", "precision", "error", "ours ms", "eager ms", "torch.compile ms",
    "× eager", "× torch.compile", "of a copy", "remark",
)  # fmt: skip
_TOTALS_HEAD = ("convention", *(f"× {name}, {mean}" for name in BASELINES for mean in ("arithmetic", "geometric")))
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body {{ font: 14px sans-serif; margin: 2em }} table {{ border-collapse: collapse; margin: 1em 0 }}
td, th {{ border: 1px solid #ccc; padding: 2px 8px; text-align: left }}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""


def markdown(result: dict[str, Any]) -> str:
    """`result`: what bench.json holds."""
    parts = [f"# {_title(result)}", "", *_about(result), ""]
    for head, rows in _tables(result):
        parts += [_line(head), _line(["---"] * len(head)), *map(_line, rows), ""]
    return "\n".join(parts)


def page(result: dict[str, Any]) -> str:
    """A page of its own; every text in it is escaped."""
    body = [f"<p>{html.escape(line)}</p>" for line in _about(result)]
    for head, rows in _tables(result):
        cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
        lines = "\n".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        body.append(f"<table><thead><tr>{cells}</tr></thead><tbody>\n{lines}\n</tbody></table>")
    return _PAGE.format(title=html.escape(_title(result)), body="\n".join(body))


def _title(result: dict[str, Any]) -> str:
    return f"{len(result['tasks'])} tasks on {result['device']}, {result['date']}"


def _about(result: dict[str, Any]) -> list[str]:
    lines = [f"Command: {result['command']}"]
    missing = result["missing"]
    if missing:
        lines.append(f"Not run yet: {missing} tasks; the same command goes on where this one stopped.")
    if not any(task["times_ms"] for task in result["tasks"]):
        lines.append(
            "Nothing was timed: there was no CUDA device. Values were checked on the emulated device, if at all."
        )
    return lines


def _tables(result: dict[str, Any]) -> list[tuple[Row, list[Row]]]:
    found = [totals(result["tasks"], baseline) for baseline in BASELINES]
    tables: list[tuple[Row, list[Row]]] = [(("what", "of all tasks"), _counts(found[0]))]
    if found[0].measured:
        tables.append((_TOTALS_HEAD, _conventions(found)))
        tables.append((("p", *(f"faster than p × {t.baseline}, and right" for t in found)), _fast(found)))
    return [*tables, (_TASK_HEAD, [_task(task) for task in result["tasks"]])]


def _counts(one: Totals) -> list[Row]:
    return [
        ("tasks", str(one.tasks)),
        ("right", str(one.right)),
        ("right and timed", str(one.measured)),
    ]


def _conventions(found: Sequence[Totals]) -> list[Row]:
    rows: list[tuple[str, list[Means]]] = [
        ("incorrect counts as 0", [t.incorrect_is_zero for t in found]),
        ("the original code runs instead (1)", [t.fallback_is_one for t in found]),
        ("right ones only", [t.correct_only for t in found]),
    ]
    return [(name, *(_number(v) for m in means for v in (m.arithmetic, m.geometric))) for name, means in rows]


def _fast(found: Sequence[Totals]) -> list[Row]:
    return [(f"{p:g}", *(_percent(t.fast[f"{p:g}"]) for t in found)) for p in FAST]


def _task(task: dict[str, Any]) -> Row:
    name = " ".join(str(part) for part in (task["id"], task["name"]) if part is not None)
    times = [task["times_ms"].get(arm, {}).get("median") for arm in ("candidate", "eager", "compile")]
    ratios = [task["speedup"][baseline] for baseline in BASELINES]
    return (
        name if task["level"] is None else f"{task['level']}: {name}",
        task["outcome"],
        task["precision"] or "",
        _number(task["error_ratio"]),
        *(_number(ms, digits=4) for ms in times),
        *(_number(ratio) for ratio in ratios),
        _percent(task["roofline_fraction"]),
        task["remark"],
    )


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
