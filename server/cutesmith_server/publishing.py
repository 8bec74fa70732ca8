"""Which diagnostics an open file has: those of its own classes and, in a kernel's file, those on its lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from cutesmith_server.candidates_nearby import is_candidate
from cutesmith_server.diagnostics import Shown, diagnostics, diagnostics_within

if TYPE_CHECKING:
    from cutesmith_server.documents import Document
    from cutesmith_server.studio import Studio


def diagnostics_of(studio: Studio, document: Document) -> list[types.Diagnostic]:
    outline, text = studio.outline(document.path), document.text
    shown = Shown(studio.client.shows_related_information, studio.client.links_codes)
    found = [each for view in studio.views(document) for each in diagnostics(view, outline, text, shown)]
    if is_kernel(document):
        found += diagnostics_within(document.path, text, studio.known(), shown)
    return found


def is_kernel(document: Document) -> bool:
    return is_candidate(document.path, document.text.content)
