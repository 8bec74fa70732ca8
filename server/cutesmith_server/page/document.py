"""The whole page."""

from __future__ import annotations

import base64
import hashlib
import time
from functools import cache
from importlib.resources import files

from cutesmith_server import wording
from cutesmith_server.page import errors, facts, roofline, speed, trajectory
from cutesmith_server.page.markup import Markup, joined, markup, paragraph, tag
from cutesmith_server.page.study import Study

_KINDS = {"optimize": "Made", "check": "Checked", "revalidate": "Proved again"}


def document(found: Study) -> str:
    """HTML that loads nothing and runs nothing: its policy allows its own style and no more."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = joined(
        (
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{markup(policy)}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            tag("title", f"{found.qualname}: CuTe kernel"),
            Markup(f"<style>{_style()}</style>"),
        )
    )
    body = tag("body", tag("main", _header(found), *_sections(found)))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{body}</html>\n'


@cache
def _style() -> str:
    return files("cutesmith_server.page").joinpath("style.css").read_text(encoding="utf-8")


def _header(found: Study) -> Markup:
    report = found.report
    task = report.task if report is not None else {}
    where = [str(found.file), task.get("category"), f"{len(task['ops'])} ops" if task.get("ops") else None]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.job.ended or found.job.started))
    return tag(
        "header",
        tag("h1", found.qualname),
        paragraph(" · ".join(str(each) for each in where if each), class_="note"),
        tag("ul", *(tag("li", text, class_=kind) for text, kind in _badges(found)), class_="badges"),
        paragraph(f"{_KINDS.get(found.job.kind, found.job.kind)}{_where(found)}, {when}.", class_="note"),
    )


def _where(found: Study) -> str:
    return f" on {wording.where(found.report.device)}" if found.report is not None else ""


def _badges(found: Study) -> list[tuple[str, str]]:
    best = found.best
    if best is None:
        return [("no kernel" if found.job.state == "done" else found.job.state, "bad")]
    badges = [(wording.headline(best), "good" if best.ok else "warn")]
    if best.precision is not None:
        badges.append((f"precision {best.precision}", "warn" if best.precision == "lowered" else "good"))
    return [*badges, ("in use", "good")] if found.accepted == best.id else badges


def _sections(found: Study) -> list[Markup]:
    judged = found.judged
    assert judged is not None  # a study has an attempt
    return [
        speed.speed(found),
        errors.errors(found),
        roofline.roofline(found),
        trajectory.trajectory(found),
        facts.hints(judged),
        facts.findings(found, judged),
        facts.resources(judged),
        facts.spend(found),
        facts.environment(found),
        facts.source(found),
    ]
