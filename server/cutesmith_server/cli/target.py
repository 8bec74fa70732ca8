"""`FILE[::Class]`: the class that a command is about."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from cutesmith_agent.store.location import real_path
from cutesmith_server.cli.output import from_here
from cutesmith_server.errors import RefusedError
from cutesmith_server.outlines import Outline, outline_of


@dataclass(frozen=True)
class Target:
    """A class of a file that exists, with the file's bytes and outline as they were read."""

    path: Path  # absolute, no link
    qualname: str
    data: bytes
    outline: Outline

    @property
    def has_kernel(self) -> bool:
        """Whether the class hands over to a kernel."""
        found = self.outline.named(self.qualname)
        return found is not None and found.has_kernel


def read_target(text: str) -> Target:
    """Raises RefusedError (exit 2) when there is no such file, or it does not say which class is meant."""
    name, _, qualname = text.partition("::")
    path = real_path(name)
    data, outline = read_file(path)
    if qualname:
        _require_class(path, qualname, data, outline)
    return Target(path, qualname or _only_class(path, data, outline), data, outline)


def read_file(path: Path) -> tuple[bytes, Outline]:
    """Raises RefusedError (exit 2)."""
    try:
        str(path).encode()
        _require_no_device(path)
        data = path.read_bytes()
        return data, outline_of(data)
    except FileNotFoundError:
        reason = "does not exist"
    except IsADirectoryError:
        reason = "is a folder, not a Python file"
    except UnicodeEncodeError:
        shown = str(path).encode(errors="backslashreplace").decode()
        raise RefusedError(f"{shown} has a name that is not UTF-8: rename it.", exit=2) from None
    except UnicodeDecodeError as error:
        reason = f"is not text in the encoding it declares (byte {error.start})"
    except (OSError, SyntaxError) as error:
        reason = f"cannot be read ({getattr(error, 'strerror', None) or error})"
    raise RefusedError(f"{path} {reason}: name a Python file that holds the module.", exit=2)


def _require_no_device(path: Path) -> None:
    """Reading a pipe or a device may never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError("it is no regular file")


def _require_syntax(path: Path, data: bytes) -> None:
    try:
        ast.parse(data)
    except SyntaxError as error:
        raise RefusedError(f"{path.name}:{error.lineno} does not parse: {error.msg}.", exit=2) from None
    except (ValueError, RecursionError):  # NUL bytes; nested too deeply
        raise RefusedError(f"{path.name} does not parse: name a Python file that holds the module.", exit=2) from None


def _require_class(path: Path, qualname: str, data: bytes, outline: Outline) -> None:
    """Raises RefusedError (exit 2) unless the file has a class of that name: one that is no module is told so later."""
    from cutesmith_agent.source.outline import class_nodes

    if any(node.qualname == qualname for node in class_nodes(outline.source)):
        return
    _require_syntax(path, data)
    names = _modules(outline)
    if not names:
        raise RefusedError(f"{path} has no class {qualname}, and no other nn.Module with a forward.", exit=2)
    nearest = get_close_matches(qualname, names, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]}? Its" if nearest else "its"
    raise RefusedError(f"{path} has no class {qualname}: {hint} modules are {', '.join(names)}.", exit=2)


def _modules(outline: Outline) -> list[str]:
    return list(dict.fromkeys(found.qualname for found in outline.classes if found.forward is not None))


def _only_class(path: Path, data: bytes, outline: Outline) -> str:
    names = _modules(outline)
    if len(names) == 1:
        return names[0]
    if not names:
        _require_syntax(path, data)
        raise RefusedError(f"{path} has no nn.Module class with a forward: name a file that has one.", exit=2)
    choices = ", ".join(f"{from_here(path)}::{name}" for name in names)
    raise RefusedError(f"{path} has several modules: name one of {choices}.", exit=2)
