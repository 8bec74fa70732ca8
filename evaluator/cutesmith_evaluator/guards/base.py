"""The state of one analysis: what was found, where execution is, and how a finding is worded."""

from __future__ import annotations

import ast
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Literal

from cutesmith_evaluator.guards.bans import JUDGE
from cutesmith_evaluator.guards.closed import is_unread
from cutesmith_evaluator.guards.forbidden import KNOWN, READABLE, ban_of
from cutesmith_evaluator.guards.torch_names import mantissa_of
from cutesmith_evaluator.guards.values import OWN, Address, Array, Path, Reference, Scope, Text, Values, flattened
from cutesmith_evaluator.types import Finding

_MOST = 3  # findings of one kind
_STDLIB_INSIDE = {  # modules that others hold as attributes: torch.os is os
    "os", "sys", "gc", "time", "threading", "subprocess", "builtins", "importlib", "inspect", "ctypes", "io", "types",
    "traceback", "multiprocessing", "_thread", "socket", "tempfile", "shutil", "pickle", "atexit", "tokenize",
    "linecache",
}  # fmt: skip
_KEYS = (Address, Array, Reference)


@dataclass(frozen=True)
class Signature:
    """What is known of the reference. `tensors`: positions of forward's tensor arguments; None where nothing is.

    `state`: paths of parameters and buffers ("norm.weight"). `mantissa`: bits of the narrowest floating dtype in use.
    """

    tensors: frozenset[int] | None = None
    state: frozenset[str] = frozenset()
    mantissa: int | None = None


@dataclass
class Narrowing:
    """A conversion to a narrower dtype, and the function of the file that it is in."""

    node: ast.AST
    name: str
    function: ast.AST | None


@dataclass
class Base(ABC):
    """`declared`: last names of the library calls that the file declares."""

    tree: ast.Module
    file: File
    signature: Signature
    declared: frozenset[str]
    findings: list[Finding] = field(default_factory=list)
    on_path: bool = False  # what is executed gives the result
    handlers: int = 0  # except clauses that execution is in
    stack: list[ast.AST] = field(default_factory=list)
    narrowed: list[Narrowing] = field(default_factory=list)
    libraries: set[str] = field(default_factory=set)  # namespaces of ops that the file defines
    library_lines: set[int] = field(default_factory=set)  # of declared library calls on the path
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    extras: dict[tuple[ast.AST, str], Values] = field(default_factory=dict)  # attributes of functions

    def __post_init__(self) -> None:
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def report(self, kind: str, node: ast.AST, words: str, severity: Literal["error", "information"] = "error") -> None:
        """`words` complete "<file>:<line> …"."""
        line = getattr(node, "lineno", 1)
        same = [finding for finding in self.findings if finding.kind == kind]
        if len(same) < _MOST and all(finding.line != line for finding in same):
            message = f"{self.file.name}:{line} {words}."
            self.findings.append(Finding(kind, message, line, str(self.file), severity))

    def touch(self, name: str, node: ast.AST) -> Values:
        """A dotted name is read: reports one that no kernel needs."""
        name = canonical(name)
        ban = ban_of(name)
        if ban is not None and (self.on_path or ban is not JUDGE) and not self._reads_environment(name, node):
            self.report(ban.kind, node, f"uses {name}: {ban.words}")
        return frozenset({Path(name)})

    def imported(self, name: str, node: ast.AST) -> Values:
        """The module of that name: reports one whose code nobody has read."""
        root = name.partition(".")[0]
        is_read = root in KNOWN or (root in sys.stdlib_module_names and not is_unread(name))
        if not is_read and ban_of(name) is None:
            words = f"imports {name}, whose code is not judged with the kernel; keep what it needs in this file"
            self.report("unjudged-import", node, words)
        return self.touch(name, node)

    def compute(self, name: str, node: ast.AST, *, anywhere: bool = False) -> Values:
        """PyTorch computes here."""
        if not self.on_path and not anywhere:
            return OWN
        if self.handlers:
            words = f"computes with {name} where the kernel failed: a failure must be seen; let the exception out"
            self.report("silent-fallback", node, words)
        elif name.rpartition(".")[2] in self.declared:
            self.library_lines |= set(range(getattr(node, "lineno", 1), (getattr(node, "end_lineno", None) or 1) + 1))
            self.report("library-part", node, f"leaves a part of the work to {name}, as declared", "information")
        else:
            words = (
                f"computes with {name} on the way to the result; let a kernel do it, or say so: "
                f'LIBRARY_CALLS = ("{name}",)'
            )
            self.report("torch-compute", node, words)
        return OWN

    def key(self, values: Values, node: ast.AST) -> None:
        """Something is looked up by `values`."""
        if any(isinstance(value, _KEYS) for value in flattened(values)):
            words = (
                "looks something up by a tensor's address, version or identity, which another tensor may have later; "
                "use its shape, dtype and device"
            )
            self.report("pointer-key", node, words)

    def reads(self, node: ast.AST, name: str) -> Values:
        """A value of a tensor becomes a Python number."""
        if self.on_path:
            words = f"reads values of a tensor on the host ({name}): what is launched must not depend on them"
            self.report("reads-values", node, words)
        return frozenset()

    def cast(self, targets: Values, node: ast.AST) -> None:
        """Something is converted to a dtype."""
        for value in flattened(targets):
            bits = mantissa_of(value.name) if isinstance(value, Path) else None
            if bits is not None and self.signature.mantissa is not None and bits < self.signature.mantissa:
                assert isinstance(value, Path)
                function = self.stack[-1] if self.stack else None
                self.narrowed.append(Narrowing(node, value.name.rpartition(".")[2], function))

    def _reads_environment(self, name: str, node: ast.AST) -> bool:
        """`os.environ` and `os.getenv` for a variable that candidates may read."""
        if name not in ("os.environ", "os.getenv") and not name.startswith("os.environ."):
            return False
        parent, asked = self.parents.get(node), None
        if isinstance(parent, ast.Attribute) and parent.attr == "get":
            parent = self.parents.get(parent)
        if (
            name == "os.environ.get"
            or isinstance(parent, ast.Attribute)
            or isinstance(node, ast.ImportFrom | ast.alias)
        ):
            return True  # judged where it is called
        if isinstance(parent, ast.Call) and parent.args:
            asked = parent.args[0]
        elif isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load):
            asked = parent.slice
        elif isinstance(parent, ast.Compare):
            asked = parent.left
        return isinstance(asked, ast.Constant) and isinstance(asked.value, str) and asked.value.startswith(READABLE)

    # What the parts below this one do, for those above them.
    @abstractmethod
    def evaluate(self, node: ast.expr, scope: Scope) -> Values: ...

    @abstractmethod
    def attribute(self, base: Values, name: str, node: ast.AST) -> Values: ...

    @abstractmethod
    def call(self, node: ast.Call, scope: Scope) -> Values: ...

    @abstractmethod
    def apply(self, called: Values, arguments: Sequence[Values], named: dict[str, Values], node: ast.AST) -> Values: ...

    @abstractmethod
    def assign(self, target: ast.expr, values: Values, scope: Scope) -> None: ...

    @abstractmethod
    def run(self, body: Sequence[ast.stmt], scope: Scope) -> Values: ...


def canonical(name: str) -> str:
    """`torch.os.system` is os.system, `functools.partial` stays what it is."""
    parts = name.split(".")
    for place in range(len(parts) - 1, 0, -1):
        if parts[place] in _STDLIB_INSIDE and parts[0] not in ("os", "importlib", "concurrent", "torch.types"):
            if f"{parts[0]}.{parts[place]}" in ("torch.types", "torch.multiprocessing"):
                continue
            return ".".join(parts[place:])
        if parts[place] == "F" and parts[0] == "torch":
            return ".".join(["torch", "nn", "functional", *parts[place + 1 :]])
        if parts[place] == "torch" and parts[0] != "cutlass":
            return ".".join(parts[place:])
    return name


def is_text(values: Values) -> bool:
    return bool(values) and all(isinstance(value, Text) for value in values)
