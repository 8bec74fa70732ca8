"""What Python loads at its start, from PYTHONPATH: starts the recorder, then runs the sitecustomize that this hides."""

from __future__ import annotations

import importlib
import os
import sys

_HERE = os.path.realpath(os.path.dirname(__file__))  # noqa: PTH120 - every process of the user's pays for what is imported


def _record() -> None:
    folder = os.environ.get("CUTESMITH_CAPTURE")
    if folder:
        from cutesmith_watching import watch

        watch(folder, timed=bool(os.environ.get("CUTESMITH_CAPTURE_TIME")))


def _go_on_as_if_not_here() -> None:
    sys.path[:] = [path for path in sys.path if os.path.realpath(path) != _HERE]
    this = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", this)


_record()
_go_on_as_if_not_here()
