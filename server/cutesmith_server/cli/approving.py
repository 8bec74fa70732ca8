"""A reference that a model wrote for a described forward: approved on the terminal, then written into the file."""

from __future__ import annotations

import argparse
import sys

from cutesmith_agent.describe.proposal import Proposal
from cutesmith_agent.source.edits import EditRefusedError, apply_edits
from cutesmith_agent.source.parsing import encode
from cutesmith_agent.source.unwritten import write_forward
from cutesmith_server.cli.target import Target
from cutesmith_server.errors import RefusedError
from cutesmith_server.files import write_atomically
from cutesmith_server.records import STORE_ERRORS, record


def approves(target: Target, options: argparse.Namespace) -> bool | None:
    """Whether the user approves; a no is remembered. None where nobody can be asked: the reference waits."""
    if options.yes:
        return True
    if options.json or not sys.stdin.isatty():
        return None
    question = f"Write this reference into {target.path.name} and make a kernel against it?"
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    try:
        record("rejected", target.path, target.qualname)
    except STORE_ERRORS as error:
        print(f"Your answer could not be written to the store: {error}.", file=sys.stderr)
    print("Nothing was changed; the next run writes another reference.", file=sys.stderr)
    return False


def write_reference(target: Target, reference: Proposal) -> None:
    """Raises RefusedError, and has changed nothing then."""
    text = target.outline.source.text
    try:
        after = apply_edits(text, write_forward(text, target.qualname, reference.source))
        if target.path.read_bytes() != target.data:
            raise RefusedError(f"{target.path} was changed meanwhile: nothing was written, try again.")
        write_atomically(target.path, encode(after, target.data))
    except EditRefusedError as refusal:
        raise RefusedError(str(refusal)) from None
    except OSError as error:
        raise RefusedError(f"{target.path} cannot be written ({error.strerror}).") from None
