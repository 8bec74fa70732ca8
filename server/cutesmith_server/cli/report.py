"""`cutesmith report`: all that is known of a class's kernel, as a page that needs nothing else."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cutesmith_agent.store.location import workspace_root
from cutesmith_server.cli.output import from_here
from cutesmith_server.cli.target import Target, read_target
from cutesmith_server.errors import RefusedError
from cutesmith_server.page.finding import page_of
from cutesmith_server.records import STORE_ERRORS


def report(options: argparse.Namespace) -> int:
    """3 where there is nothing to report."""
    target = read_target(options.target)
    html = _page(target)
    output: Path | None = options.output
    if output is None:
        sys.stdout.write(html)
        return 0
    try:
        output.write_text(html, encoding="utf-8")
    except OSError as error:
        raise RefusedError(f"{output} cannot be written ({error.strerror}): name another file.") from None
    print(f"{from_here(output.absolute())} was written.", file=sys.stderr)
    return 0


def _page(target: Target) -> str:
    name = f"{from_here(target.path)}::{target.qualname}"
    try:
        page = page_of(target.path, target.qualname)
    except STORE_ERRORS as error:
        raise RefusedError(f"The store of {workspace_root(target.path)} cannot be read: {error}.") from None
    if page is None:
        raise RefusedError(f"No kernel was tried for {target.qualname} yet: cutesmith optimize {name} makes one.")
    return page.html
