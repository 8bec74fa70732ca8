"""Approving a reference that a model wrote: it goes into the class as one edit, then a kernel is made against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cutesmith_server.errors import RefusedError
from cutesmith_server.jobs import ClassKey
from cutesmith_server.orders import Order

if TYPE_CHECKING:
    from cutesmith_agent.describe.proposal import Proposal
    from cutesmith_server.studio import Studio


async def approve(studio: Studio, key: ClassKey) -> None:
    """Raises RefusedError or EditRefusedError; nothing is changed then."""
    from cutesmith_agent.source.unwritten import write_forward
    from cutesmith_server.deciding import ask_editor
    from cutesmith_server.generating import start
    from cutesmith_server.lsp_edits import Form, edit_of

    reference = _waiting(studio, key)
    text = studio.text(key.path)
    edits = write_forward(text.content, key.qualname, reference.source)
    edit = edit_of(studio.uri(key.path), text, studio.documents.at(key.path), edits, Form.of(studio.client))
    await ask_editor(studio, edit, f"Write the reference into {key.qualname}")
    studio.tell(key)
    await start(studio, key, Order(with_model=True))


def _waiting(studio: Studio, key: ClassKey) -> Proposal:
    view = studio.view(key)
    if view.state != "reference" or view.outcome is None or view.outcome.reference is None:
        raise RefusedError(f"No reference for {key.qualname} waits for approval: ask a language model for one first.")
    if view.session.changed_outside:
        raise RefusedError(f"{key.path.name} was changed on disk meanwhile: reload it, then approve.")
    return view.outcome.reference
