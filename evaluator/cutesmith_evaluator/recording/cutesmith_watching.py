"""Waits for torch: the recorder is put in place right after `torch.nn.Module` is defined. Standard library only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_Then = Callable[[ModuleType], None]


def watch(folder: str, *, timed: bool) -> None:
    """Record into `folder` once this process imports torch; `timed`: how long calls take, too."""
    from cutesmith_recorder import Recorder

    recorder = Recorder(folder, timed=timed)
    wanted = {"torch.nn.modules.module": recorder.install, "torch._dynamo.eval_frame": recorder.leave_compiled_alone}
    sys.meta_path.insert(0, _Finder(wanted))


class _Finder(MetaPathFinder):
    """Calls a function with each wanted module once, after its import."""

    def __init__(self, wanted: dict[str, _Then]) -> None:
        self._wanted = wanted

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        then = self._wanted.pop(name, None)
        spec = PathFinder.find_spec(name, path, target) if then else None
        if then is not None and spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, then)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Any, then: _Then) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        try:
            self._then(module)
        except Exception:  # noqa: BLE001 - a torch unlike those known is used as if nothing recorded it
            return
