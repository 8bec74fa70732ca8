"""Imports a file of the user's as its project would: real package names, relative imports, its folder on sys.path.

A worker outlives edits, so modules of the project are forgotten and imported again once one of their files changed. It
also outlives tasks: another folder's file gets modules of its own, though they may have the same names.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from cutesmith_evaluator.worker.failures import user_code

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_KERNEL_NAMES = ("supports", "explain", "forward", "warm_up")
_Stamp = tuple[int, int]


@dataclass
class _Imported:
    """What this process has of the user's. `folders`: the project's root and the folder its packages lie in."""

    folders: tuple[Path, Path] | None = None
    stamps: dict[str, _Stamp] = field(default_factory=dict)  # module name → its file when it was imported
    paths: list[str] = field(default_factory=list)  # what was added to sys.path


_imported = _Imported()


def import_file(file: Path) -> ModuleType:
    """The module of `file`, as its project imports it. Raises TaskError when the import fails."""
    package_root = _package_root(file)
    project = _project_root(package_root)
    if _imported.folders != (project, package_root) or _has_changed():
        _forget()
    _imported.folders = (project, package_root)
    _extend_path(file, package_root, project)
    importlib.invalidate_caches()
    with user_code("import-error", "being imported", file):
        os.chdir(project)
        try:
            return _import(file, package_root)
        finally:
            for name, stamp in _modules_under(project, package_root).items():
                _imported.stamps.setdefault(name, stamp)


def imported_files(file: Path) -> tuple[str, ...]:
    """The project's files that are imported, without `file` and kernels: what its modules compute may hang on them."""
    if _imported.folders is None:
        return ()
    modules = [sys.modules.get(name) for name in _modules_under(*_imported.folders)]
    found = {Path(str(each.__file__)).resolve() for each in modules if each is not None and not _is_kernel(each)}
    return tuple(sorted(str(path) for path in found - {file.resolve()} if "site-packages" not in path.parts))


def _is_kernel(module: ModuleType) -> bool:
    return all(name in vars(module) for name in _KERNEL_NAMES)


def _package_root(file: Path) -> Path:
    """The folder from which the file is imported: above its outermost package."""
    folder = file.parent
    while (folder / "__init__.py").exists():
        folder = folder.parent
    return folder


def _project_root(folder: Path) -> Path:
    for candidate in (folder, *folder.parents):
        if any((candidate / marker).exists() for marker in _MARKERS):
            return candidate
    return folder


def _extend_path(file: Path, package_root: Path, project: Path) -> None:
    for folder in (str(project), str(package_root)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
            _imported.paths.append(folder)
    if str(file.parent) not in sys.path:  # a package's folder comes last: its types.py must not hide the library's
        sys.path.append(str(file.parent))
        _imported.paths.append(str(file.parent))


def _import(file: Path, package_root: Path) -> ModuleType:
    parts = file.relative_to(package_root).with_suffix("").parts
    if len(parts) == 1:
        return _import_script(file)
    names = parts[:-1] if parts[-1] == "__init__" else parts
    return importlib.import_module(".".join(names))


def _import_script(file: Path) -> ModuleType:
    name = _script_name(file)
    if name in sys.modules:
        return sys.modules[name]
    return load_source(file, name)


def load_source(file: Path, name: str) -> ModuleType:
    """Runs `file` as a new module called `name`; the module is not left behind when that fails."""
    loader = SourceFileLoader(name, str(file))  # whatever the suffix
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _script_name(file: Path) -> str:
    """The name under which the script's neighbours import it, unless an installed module has it."""
    if not file.stem.isidentifier() or file.stem in sys.stdlib_module_names:
        return f"_script_{file.stem}"
    loaded = sys.modules.get(file.stem)
    origin = loaded.__file__ if loaded else getattr(importlib.util.find_spec(file.stem), "origin", None)
    return file.stem if origin is None or Path(origin).resolve() == file.resolve() else f"_script_{file.stem}"


def _has_changed() -> bool:
    modules = {name: sys.modules.get(name) for name in _imported.stamps}
    return any(
        module is not None
        and module.__file__ is not None
        and _stamp_of(Path(module.__file__)) != _imported.stamps[name]
        for name, module in modules.items()
    )


def _forget() -> None:
    for name in _imported.stamps:
        sys.modules.pop(name, None)
    for path in _imported.paths:
        if path in sys.path:
            sys.path.remove(path)
    _imported.stamps.clear()
    _imported.paths.clear()


def _modules_under(*folders: Path) -> dict[str, _Stamp]:
    """The imported modules whose files are the project's own, with the present stamps of these files."""
    installed = {Path(path).resolve() for path in sysconfig.get_paths().values()}
    found: dict[str, _Stamp] = {}
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if not isinstance(origin, str) or name.startswith(("cutesmith_", "_candidate_")):
            continue
        file = Path(origin)
        own = any(file.is_relative_to(folder) for folder in folders)
        if own and not any(file.is_relative_to(folder) for folder in installed):
            found[name] = _stamp_of(file)
    return found


def _stamp_of(file: Path) -> _Stamp:
    try:
        status = file.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)
