"""The module classes of open documents and of files on disk, parsed once per version."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cutesmith_agent.source.outline import ModuleClass
    from cutesmith_agent.source.parsing import Source
    from cutesmith_server.documents import Document, Text


@dataclass(frozen=True)
class Outline:
    """A parsed text and its module classes."""

    source: Source
    classes: tuple[ModuleClass, ...]
    _digests: dict[str, str] = field(default_factory=dict, repr=False)

    def named(self, qualname: str) -> ModuleClass | None:
        """The class of that name; of several, the last, which is the one Python keeps."""
        return next((found for found in reversed(self.classes) if found.qualname == qualname), None)

    def uses(self, kernel: str) -> bool:
        """Whether a class hands over to the kernel of that name."""
        return any(found.kernel == kernel for found in self.classes)

    def at(self, offset: int) -> ModuleClass | None:
        """The innermost class around a character."""
        around = [found for found in self.classes if found.span.start <= offset <= found.span.end]
        return max(around, key=lambda found: found.span.start, default=None)

    def digest(self, qualname: str) -> str | None:
        """The hash a proof is bound to; None when the text has no such class."""
        from cutesmith_agent.source.fingerprint import class_hash

        if self.named(qualname) is None:
            return None
        if qualname not in self._digests:
            self._digests[qualname] = class_hash(self.source, qualname)
        return self._digests[qualname]


class Outlines:
    """Outlines of open documents; an edit re-parses what it changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Text, Outline]] = {}

    def of(self, document: Document) -> Outline:
        text, known = self._known.get(document.path, (None, None))
        if known is None or text is not document.text:
            known = outline_of(document.text.content, known.source if known else None)
            self._known[document.path] = (document.text, known)
        return known

    def forget(self, document: Document) -> None:
        self._known.pop(document.path, None)


def outline_of_file(path: Path) -> Outline:
    """The outline of a file on disk. Raises OSError, UnicodeDecodeError or SyntaxError (unknown encoding)."""
    return outline_of(path.read_bytes())


def outline_of(text: str | bytes, previous: Source | None = None) -> Outline:
    """The outline of a text. Of bytes: raises UnicodeDecodeError or SyntaxError (unknown encoding)."""
    from cutesmith_agent.source.outline import outline
    from cutesmith_agent.source.parsing import parse

    source = parse(text, previous)
    return Outline(source, outline(source))
