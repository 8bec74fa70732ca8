"""Text without a path of this machine: those of the workspace are given from its root, others lose their folders."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

_NOT = r"\s\"'`<>|;,()\[\]{}*?\0"  # what ends a path that is not quoted
_STEP = rf"[^/\\:{_NOT}]+"
_TOPS = "home|Users|root|usr|opt|tmp|var|mnt|etc|private"  # where paths begin on most machines
_ALTERNATIVES = (
    r"(?P<web>https?://[^\s\"'<>]+)",  # an address on the web stays
    # quoted, blanks and all: a URI, a path from the root or a home, a drive, a share
    r"(?P<quote>[\"'`])(?:\w[\w+.-]*://|~\w*/|/(?=[^\s/\"'`]+/)|[A-Za-z]:[/\\]|\\\\[^\s\\]+\\)"
    r"(?:(?!(?P=quote))[^\n])*(?P=quote)",
    rf"(?<![\w+.-])(?:file:/|[A-Za-z][\w+.-]*://)[^{_NOT}]*",
    rf"(?<![A-Za-z0-9])[A-Za-z]:[/\\][^:{_NOT}]*",
    rf"\\\\[^\\/:{_NOT}]+[/\\][^:{_NOT}]*",
    rf"(?<![\w./)\]])(?:~\w*)?/{_STEP}(?:/{_STEP})+/?",  # not within a/b or 1/2
    rf"(?<![\w./)\]])/(?:{_TOPS})(?!\w)/?",
    rf"(?<=\s-[A-Za-z])/{_STEP}(?:/{_STEP})*/?",  # -I/usr/include
    rf"(?<!/)/+(?:{_TOPS})(?:/{_STEP})+/?",  # whatever stands before it
)
_PATH = re.compile("|".join(_ALTERNATIVES))
_FILE = re.compile(  # a folder may be called after a person, and ssh://host.name:22 is no file and its line
    r"[^/\\]+\.\w+$|(?<=[^/]/)[^/\\:]+\.\w+(?::\d+)+:?$"
)
_ELSEWHERE = "/root/elsewhere/"


def without_paths(text: str, root: Path) -> str:
    """`text` with paths below `root` made relative, and of every other absolute path a file's name at most."""
    for folder in dict.fromkeys((str(root), str(root.resolve()))):
        text = text.replace(f"{folder}/.cutesmith/", _ELSEWHERE).replace(f"file://{folder}/", "")
        text = text.replace(f"{folder}/", "")
    for folder in _known(root):
        text = text.replace(f"{folder}/", _ELSEWHERE)
    return _PATH.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    if found["web"]:
        return found[0]
    quote = found["quote"] or ""
    name = _FILE.search(found[0].strip(quote) if quote else found[0])
    return f"{quote}{name[0] if name else '[path]'}{quote}"


def _known(root: Path) -> list[str]:
    """Folders of this machine, which are known whatever stands before them, the longest first."""
    folders = {Path.home(), Path(tempfile.gettempdir()), Path(sys.prefix), Path(sys.base_prefix), *root.parents}
    return sorted((str(each) for each in folders if len(each.parts) > 2), key=len, reverse=True)
