"""How the file's functions reach what the module holds.

A lookup of a submodule goes through `nn.Module.__getattr__`, half a microsecond each: one that is used more than
once gets a local name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .text import identifier

_LEAF = re.compile(r"\.(__class__\.__qualname__|\w+)$")


@dataclass(frozen=True)
class Held:
    """Local names of submodules, by their paths after `module.`."""

    locals: dict[str, str]

    @staticmethod
    def of(paths: Iterable[str], taken: Iterable[str]) -> Held:
        """Names for the submodules that more than one of `paths` goes through, other than those that are taken."""
        names, used = {}, set(taken)
        for holder, count in Counter(map(_holder, paths)).items():
            if holder and count > 1:
                names[holder] = _free(_last_name(holder), used)
                used.add(names[holder])
        return Held(names)

    def written(self, path: str) -> str:
        """How `module.<path>` is written."""
        local = self.locals.get(_holder(path))
        return f"{local}{path[len(_holder(path)) :]}" if local else f"module.{path}"

    def bindings(self) -> list[str]:
        return [f"{local} = module.{holder}" for holder, local in self.locals.items()]


NOTHING_HELD = Held({})


def _holder(path: str) -> str:
    """The path of the submodule that an attribute is read from; "" for the module itself."""
    leaf = _LEAF.search(path)
    return path[: leaf.start()] if leaf else ""


def _last_name(holder: str) -> str:
    """Of a submodule in a list, the list's name and the place: "blocks[0]" → "blocks_0"."""
    return identifier("_".join(re.findall(r"\w+", holder.rsplit(".", 1)[-1])))


def _free(name: str, used: set[str]) -> str:
    number = 2
    free = name
    while free in used:
        free, number = f"{name}_{number}", number + 1
    return free
