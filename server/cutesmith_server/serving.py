"""`cutesmith serve`: the language server on stdin and stdout."""

from __future__ import annotations

import argparse
import logging
import sys


def serve(options: argparse.Namespace) -> int:
    """Runs until the client says exit or is gone. 0 after a shutdown, else 1, as LSP wants it."""
    _start_log(options)
    from cutesmith_server.app import create_server

    server = create_server()
    server.start_io()
    return 0 if server.studio.is_closed else 1


def _start_log(options: argparse.Namespace) -> None:
    """To the given file, else warnings to stderr: stdout belongs to the protocol."""
    level, form = (logging.INFO if options.log else logging.WARNING), "%(asctime)s %(levelname)s %(name)s: %(message)s"
    handler = logging.FileHandler(options.log, encoding="utf-8") if options.log else logging.StreamHandler(sys.stderr)
    logging.basicConfig(handlers=[handler], level=level, format=form)
    logging.getLogger("pygls").setLevel(logging.WARNING)
