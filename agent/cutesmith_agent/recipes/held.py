"""How the file's functions reach what the module holds.

`nn.Module.__getattr__` costs half a microsecond a name: submodules, parameters and buffers are read from the
dictionaries it looks in, and a submodule that is used more than once gets a local name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from cutesmith_evaluator.types import Graph, GraphInput, Guard

from .text import identifier

_CLASSES = (".__class__.__qualname__", ".__class__")
CONTAINERS = ("torch.nn:ModuleList", "torch.nn:ModuleDict", "torch.nn:ParameterList", "torch.nn:ParameterDict")
HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_LEAF = re.compile(r"\.(__class__\.__qualname__|\w+)$")
_DICTIONARIES = {"parameter": "_parameters", "buffer": "_buffers"}


@dataclass(frozen=True)
class Held:
    """Local names of submodules, by their paths after `module.`, and the paths of all submodules that are known."""

    locals: dict[str, str]
    modules: frozenset[str] = frozenset()

    @staticmethod
    def of(paths: Iterable[str], taken: Iterable[str], modules: frozenset[str]) -> Held:
        """Names for the submodules that more than one of `paths` goes through, other than those that are taken."""
        names, used = {}, set(taken)
        for holder, count in Counter(map(_holder, paths)).items():
            if holder and count > 1:
                names[holder] = _free(_last_name(holder), used)
                used.add(names[holder])
        return Held(names, modules)

    def written(self, path: str) -> str:
        """How `module.<path>` is written."""
        holder = _holder(path)
        return f"{self._object(holder)}{path[len(holder) :]}" if holder else f"module.{path}"

    def state(self, source: GraphInput) -> str:
        """How a tensor of the module's is written: parameters and buffers from the dictionary that has them."""
        path = source.path or ""
        holder = _holder(path)
        name = path[len(holder) :].removeprefix(".")
        if source.kind not in _DICTIONARIES or not name.isidentifier() or holder not in {"", *self.modules}:
            return self.written(path)
        return f'{self._object(holder)}.{_DICTIONARIES[source.kind]}["{name}"]'

    def bindings(self) -> list[str]:
        return [f"{local} = {self._reached(holder)}" for holder, local in self.locals.items()]

    def _object(self, holder: str) -> str:
        return self.locals.get(holder) or self._reached(holder)

    def _reached(self, path: str) -> str:
        """`module.<path>`, by way of the submodules that are known."""
        owner, name = _parted(path)
        if not path:
            return "module"
        if path in self.modules and name and (not owner or owner in self.modules):
            return f'{self._reached(owner)}._modules["{name}"]'
        return f"module.{path}"


NOTHING_HELD = Held({})


def submodules(graph: Graph) -> frozenset[str]:
    """The paths that the trace has found to be submodules: these are guarded by their class."""
    return frozenset(filter(None, map(_submodule, graph.guards)))


def called(graph: Graph) -> tuple[str, ...]:
    """The submodules that have a forward, which hooks can surround."""
    return tuple(path for guard in graph.guards if guard.value not in CONTAINERS and (path := _submodule(guard)))


def _submodule(guard: Guard) -> str:
    path = guard.path or ""
    return next((path.removesuffix(end) for end in _CLASSES if path.endswith(end)), "")


def _holder(path: str) -> str:
    """The path of the submodule that an attribute is read from; "" for the module itself."""
    leaf = _LEAF.search(path)
    return path[: leaf.start()] if leaf else ""


def _parted(path: str) -> tuple[str, str]:
    """A submodule's owner and its name there: "blocks[0]" → ("blocks", "0"); no name where it is not one of these."""
    last = re.search(r"(?:^|\.)([^\W\d]\w*)$|\[(\d+)\]$", path)
    return (path[: last.start()], last[1] or last[2]) if last else ("", "")


def _last_name(holder: str) -> str:
    """Of a submodule in a list, the list's name and the place: "blocks[0]" → "blocks_0"."""
    return identifier("_".join(re.findall(r"\w+", holder.rsplit(".", 1)[-1])))


def _free(name: str, used: set[str]) -> str:
    number = 2
    free = name
    while free in used:
        free, number = f"{name}_{number}", number + 1
    return free
