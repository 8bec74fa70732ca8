"""What a class inherits from, read from the imports, aliases and classes above it in the same file."""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass, field

from tree_sitter import Node

from cutesmith_agent.source.parsing import Source

_TORCH_CLASS = re.compile(r"torch\.nn\.(?:modules\.(?:[a-z_]\w*\.)*)?([A-Z]\w*)")
_NOT_MODULES = {"Parameter", "UninitializedParameter", "UninitializedBuffer", "Buffer"}


@dataclass(frozen=True)
class LocalClass:
    """A class of the file: whether it is an nn.Module, and the classes in its body by name."""

    is_module: bool
    members: dict[str, LocalClass] = field(default_factory=dict)


Meaning = str | LocalClass  # a dotted import path, or a class of this file


@dataclass
class Names:
    """What the names of a scope mean so far, in text order. A class body sees its own names, then the file's."""

    source: Source
    meanings: dict[str, Meaning] = field(default_factory=dict)
    outer: Names | None = None
    has_torch_star: bool = False

    def is_module(self, class_node: Node) -> bool:
        """Whether a class definition, read here, derives from torch.nn.Module."""
        bases = class_node.child_by_field_name("superclasses")
        return bases is not None and any(self._is_module_base(base) for base in bases.named_children)

    def _is_module_base(self, base: Node) -> bool:
        meaning = self._resolve(base)
        if isinstance(meaning, LocalClass):
            return meaning.is_module
        match = _TORCH_CLASS.fullmatch(meaning or "")
        return match is not None and match[1] not in _NOT_MODULES

    def _resolve(self, node: Node) -> Meaning | None:
        if node.type == "identifier":
            return self._look_up(self.source.read(node))
        if node.type == "subscript":  # Base[T]
            return self._resolve(node.child_by_field_name("value") or node.named_children[0])
        if node.type != "attribute":
            return None
        holder = self._resolve(node.named_children[0])
        name = self.source.read(node.named_children[-1])
        return holder.members.get(name) if isinstance(holder, LocalClass) else holder and f"{holder}.{name}"

    def _look_up(self, name: str) -> Meaning | None:
        if name in self.meanings:
            return self.meanings[name]
        if self.outer is not None:
            return self.outer._look_up(name)
        star = self.has_torch_star and not hasattr(builtins, name)
        return f"torch.nn.{name}" if star else None

    def bind(self, statement: Node) -> None:
        """Take note of an import or of an assignment of one known name to another."""
        if statement.type == "import_statement":
            self._bind_import(statement)
        elif statement.type == "import_from_statement":
            self._bind_from(statement)
        elif statement.type == "expression_statement":
            self._bind_alias(statement.named_children[0] if statement.named_children else statement)

    def _bind_import(self, statement: Node) -> None:
        for name in statement.named_children:
            path, alias = self._parts(name)
            if alias:
                self.meanings[alias] = path
            else:
                top = path.split(".")[0]
                self.meanings[top] = top

    def _bind_from(self, statement: Node) -> None:
        module, *names = statement.named_children
        origin = self.source.read(module)
        for name in names:
            if name.type == "wildcard_import":
                self.has_torch_star |= origin in ("torch.nn", "torch.nn.modules")
                continue
            path, alias = self._parts(name)
            self.meanings[alias or path] = f"{origin}.{path}"

    def _parts(self, name: Node) -> tuple[str, str | None]:
        """The dotted path and the alias of one imported name."""
        path, alias = name.child_by_field_name("name"), name.child_by_field_name("alias")
        if path is None or alias is None:
            return self.source.read(name), None
        return self.source.read(path), self.source.read(alias)

    def _bind_alias(self, node: Node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type != "assignment" or left is None or right is None or left.type != "identifier":
            return
        meaning = self._resolve(right)
        if meaning is not None:  # `nn = None` where an import failed leaves nn what it is elsewhere
            self.meanings[self.source.read(left)] = meaning
