"""Asking, once per workspace and host, whether code may be sent to a model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cutesmith_agent.store.opening import open_store
from cutesmith_server.agent_process import ConsentAsked
from cutesmith_server.errors import RefusedError


def agrees(asked: ConsentAsked, options: argparse.Namespace, root: Path) -> bool:
    """Whether the user agrees now; the answer is kept. Raises RefusedError where nobody can be asked."""
    if options.yes and asked.by_yes:
        granted = True
    elif not sys.stdin.isatty():
        raise RefusedError(_unasked(asked, options), exit=2)
    else:
        print(f"{asked.question} [y/N] ", end="", file=sys.stderr, flush=True)
        granted = sys.stdin.readline().strip().lower() in ("y", "yes")
    with open_store(root).store as store:
        store.set_consent(asked.host, granted=granted, terms=asked.terms)
    return granted


def _unasked(asked: ConsentAsked, options: argparse.Namespace) -> str:
    if options.yes:
        return (
            "Nothing was sent: --yes does not cover what this project's pyproject.toml asks for; answer on a terminal, "
            f"or set it yourself (CUTESMITH_BASE_URL, CUTESMITH_MODEL, --max-dollars). {asked.question}"
        )
    return f"Nothing was sent. {asked.question} Add --yes to agree."
