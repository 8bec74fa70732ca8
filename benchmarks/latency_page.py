"""Writes the latencies into docs/editors.md from results/lsp_latency.jsonl; `lsp_latency.py` ends with it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pages import put
from records import RESULTS, read_lines

PAGE = Path(__file__).parents[1] / "docs" / "editors.md"
NAMES = {"cutesmith": "CuteSmith (lenses)"}
HEAD = (
    "| | outline p50 / p99 / max | hover p50 / p99 / max | code actions p50 / p99 / max | memory, peak | CPU |\n"
    "| --- | --- | --- | --- | --- | --- |"
)
OUTLINES = ("textDocument/codeLens", "textDocument/documentSymbol")


def main() -> None:
    put(PAGE, latencies=latencies(read_lines(RESULTS / "lsp_latency.jsonl")))


def latencies(rows: list[dict[str, Any]]) -> str:
    """The table and what is said around it; the first row is ours."""
    ours, least = rows[0], rows[0]["jobs"]["least"]
    edit, load = ours["edit_20000_lines"], ours["load_at_the_end"]
    intro = (
        f"{ours['date']}, {ours['machine']} and {load} at the end, no GPU, {ours['seconds']:.0f} s each "
        f"(`python benchmarks/lsp_latency.py`); "
        f"never fewer than {least['running']} running and {least['waiting']} waiting jobs, {ours['jobs']['finished']} "
        f"came to their end:"
    )
    outro = (
        f"A letter typed into a 20,000-line file and the lenses of the new text: {milliseconds(edit)} ms "
        f"({milliseconds(edit['cpu'])} ms of the server's CPU time), of {edit['requests']} letters. "
        f"Idle for ten seconds: {ours['idle_cpu']:.1%} CPU."
    )
    return "\n".join([intro, "", HEAD, *map(row, rows), "", outro])


def row(measured: dict[str, Any]) -> str:
    requests = measured.get("requests", {})
    cells = [NAMES.get(measured["server"], f"{measured['server']} (symbols)")]
    cells += [cell(requests, OUTLINES), cell(requests, ["textDocument/hover"])]
    cells += [cell(requests, ["textDocument/codeAction"])]
    cells += [f"{measured['peak_mb']} MB", f"{measured['cpu']:.0%}"] if "cpu" in measured else ["hung", "hung"]
    return f"| {' | '.join(cells)} |"


def cell(requests: dict[str, Any], methods: Iterable[str]) -> str:
    found = [f"{milliseconds(requests[method])} ms" for method in methods if method in requests]
    return found[0] if found else "–"


def milliseconds(figures: dict[str, float]) -> str:
    values = (figures[name] for name in ("p50", "p99", "max"))
    return " / ".join(f"{value:,.0f}" if value >= 100 else f"{value:.1f}" for value in values)


if __name__ == "__main__":
    main()
