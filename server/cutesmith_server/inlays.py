"""Inlay hints: the speedup beside the name of a class that has a kernel or is offered one."""

from __future__ import annotations

from lsprotocol import types

from cutesmith_server import wording
from cutesmith_server.documents import Text
from cutesmith_server.views import ClassView


def inlay(view: ClassView, text: Text) -> types.InlayHint | None:
    """None while there is no verdict to show."""
    verdict = view.verdict
    if view.found is None or view.state not in ("ready", "accepted") or verdict is None or verdict.best is None:
        return None
    label = wording.headline(verdict.best) if not view.drift else "kernel edited since it was proved"
    end = text.range_of(view.found.name_range.end, view.found.name_range.end).end
    tooltip = f"CuTe kernel of {view.key.qualname}, {'in use' if view.state == 'accepted' else 'on offer'}"
    return types.InlayHint(end, label, tooltip=tooltip, padding_left=True)
