"""The page of a class, from its project's store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cutesmith_agent.store.location import workspace_root
from cutesmith_server.page.document import document
from cutesmith_server.page.study import study
from cutesmith_server.records import has_store, opened_store


@dataclass(frozen=True)
class Page:
    """`source`: path of the kernel's text that the page's lines are of, if it has one."""

    html: str
    source: str | None


def page_of(file: Path, qualname: str) -> Page | None:
    """None where no job has tried a candidate. Raises sqlite3.Error or OSError."""
    root = workspace_root(file)
    if not has_store(root):
        return None
    with opened_store(root) as store:
        found = study(store, file, qualname)
    if found is None:
        return None
    return Page(document(found), found.judged.path if found.judged is not None and found.source else None)
