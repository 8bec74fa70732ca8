"""The texts the editor has open, and their positions in the encoding it chose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from lsprotocol import types

from cutesmith_agent.source.positions import Encoding, Lines, Position, lines_of, remembered
from cutesmith_server import uris


class Text:
    """An immutable text that speaks LSP positions. Offsets count its code points."""

    def __init__(self, content: str, encoding: Encoding = "utf-16") -> None:
        self.content = content
        self.encoding: Encoding = encoding

    @cached_property
    def lines(self) -> Lines:
        return lines_of(self.content)

    def offset_at(self, position: types.Position) -> int:
        return self.lines.offset(Position(position.line, position.character), self.encoding)

    def range_of(self, start: int, end: int) -> types.Range:
        return types.Range(self._position_at(start), self._position_at(end))

    def line_range(self, number: int) -> types.Range:
        """A line's text without its indentation; `number` counts from 1."""
        start = self.lines.offset(Position(max(number - 1, 0), 0))
        end = self.lines.offset(Position(max(number - 1, 0), len(self.content)))
        row = self.content[start:end]
        indented = start + len(row) - len(row.lstrip())
        return self.range_of(indented, indented + len(row.strip()))

    def changed(self, change: types.TextDocumentContentChangeEvent) -> Text:
        if isinstance(change, types.TextDocumentContentChangeWholeDocument):
            return Text(change.text, self.encoding)
        start, end = sorted((self.offset_at(change.range.start), self.offset_at(change.range.end)))
        return Text(remembered(self.lines.edited(start, end, change.text)).text, self.encoding)

    def _position_at(self, offset: int) -> types.Position:
        position = self.lines.position(offset, self.encoding)
        return types.Position(position.line, position.column)


class Document:
    """One open file: its text at its newest version."""

    def __init__(self, path: Path, item: types.TextDocumentItem, encoding: Encoding) -> None:
        self.path = path
        self.uri = item.uri
        self.version = item.version
        self.text = Text(item.text, encoding)

    def apply(self, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]) -> None:
        for change in changes:
            self.text = self.text.changed(change)
        self.version = version


class Documents:
    """Open files, by the paths that name them: an editor may have a file and a link to it open side by side. What is no
    file (untitled buffers, notebook cells) is left alone."""

    def __init__(self) -> None:
        self.encoding: Encoding = "utf-16"
        self._by_name: dict[Path, Document] = {}

    def open(self, item: types.TextDocumentItem) -> Document | None:
        name, path = uris.named_path(item.uri), uris.to_path(item.uri)
        if name is None or path is None:
            return None
        self._by_name.pop(name, None)
        document = self._by_name[name] = Document(path, item, self.encoding)
        return document

    def get(self, uri: str) -> Document | None:
        name = uris.named_path(uri)
        return self._by_name.get(name) if name is not None else None

    def at(self, path: Path) -> Document | None:
        """The file's document; of several, the one that was opened last."""
        return next((each for each in reversed(self._by_name.values()) if each.path == path), None)

    def close(self, document: Document) -> None:
        self._by_name = {name: each for name, each in self._by_name.items() if each is not document}

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._by_name.values()))
