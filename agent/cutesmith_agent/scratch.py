"""A project as it would be with some files changed: links to everything else, and the user's tree untouched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from cutesmith_evaluator.temporary import TemporaryFolder
from cutesmith_evaluator.types import Finding

_NOT_MIRRORED = {"__pycache__", ".cutesmith"}


class Mirror:
    """A temporary folder that looks like `root`, so that imports, relative ones too, and data files are found."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._temporary = TemporaryFolder()
        self._folder = self._temporary.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._temporary.close()

    def put(self, file: Path, content: bytes) -> Path:
        """Give `file`, a path under the root, other content here. Returns where."""
        place = self._folder / file.absolute().relative_to(self._root)
        self._make_real(place.parent)
        place.unlink(missing_ok=True)
        place.write_bytes(content)
        return place

    def _make_real(self, folder: Path) -> None:
        """Turn a folder that is a link into one of links, from the root down."""
        if folder != self._folder:
            self._make_real(folder.parent)
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists() and (folder != self._folder or any(folder.iterdir())):
            return
        folder.mkdir(exist_ok=True)
        for entry in (self._root / folder.relative_to(self._folder)).iterdir():
            if entry.name not in _NOT_MIRRORED:
                (folder / entry.name).symlink_to(entry)

    def in_users_tree(self, finding: Finding) -> Finding:
        """The finding with paths of the user's own tree in place of the mirror's."""
        here, there = str(self._folder), str(self._root)
        file = finding.file.replace(here, there) if finding.file else None
        return replace(finding, file=file, message=finding.message.replace(here, there))
