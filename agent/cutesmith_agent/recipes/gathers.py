"""Elements that another tensor chooses: one of each row, as a cross-entropy takes its target's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cutesmith_evaluator.types import Arg, Graph, Node, Ref

from .contract import Unsupported
from .ir import Expr
from .space import Index
from .views import integer, source

if TYPE_CHECKING:
    from .lowering import Lowerer

Emit = Callable[["Lowerer", Node, int, tuple[Index, ...]], Expr]
# What may be done with an int64 tensor: a float32 holds every index below 2**24, and larger ones stay larger.
ON_INDICES = ("ne", "eq", "where", "unsqueeze", "squeeze", "view", "reshape", "clone", "gather", "_to_copy")
MOST_PLACES = 1 << 24


def is_index(graph: Graph, name: str) -> bool:
    """Whether everything that is computed of this int64 tensor is exact where indices are held as float32."""
    names = {name}
    for node in graph.nodes:
        if names & _read(node.args):
            if node.op.split(".")[1] not in ON_INDICES:
                return False
            if node.outputs[0].dtype == "int64":
                names.add(node.name)
    return not names & {ref.name for ref in graph.outputs}


def _read(args: tuple[Arg, ...]) -> set[str]:
    return {arg.name for arg in args if isinstance(arg, Ref)}


def _gather(lowerer: Lowerer, node: Node, output: int, index: tuple[Index, ...]) -> Expr:
    shape = lowerer.spec(source(node)).shape
    dim = integer(node, 1) % max(len(shape), 1)
    where = lowerer.operand(node.args[2], index)
    if not isinstance(where, Expr) or where.per_column or shape[dim] > MOST_PLACES:
        raise Unsupported(f"no recipe covers {node.op} of more than one element of a row", line=node.line)
    place = lowerer.place(shape[dim], where)
    return lowerer.value(source(node), (*index[:dim], place, *index[dim + 1 :]))


INDEXED: dict[str, Emit] = {"gather": _gather}
