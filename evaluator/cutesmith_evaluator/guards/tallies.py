"""State that a call changes by what it was: a tally of calls, however it is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_GROWING = ("append", "appendleft", "extend", "insert", "__next__", "send")
_TURNING = ("rotate", "popleft", "reverse", "sort")
_KEEPING = ("update", "add", "set", "__setitem__", "setdefault")
_KEYED = ("add", "setdefault", "__setitem__")
_AGAIN = ("new_child", "union", "replace", "center", "ljust", "rjust", "zfill", "next_plus", "next_minus", "__concat__")
_FIRST = (
    "heapq.heappush", "heapq.heappushpop", "heapq.heapreplace", "bisect.insort", "bisect.insort_left",
    "bisect.insort_right", "operator.iadd", "operator.iconcat",
)  # fmt: skip
_HASHES = ("digest", "hexdigest")
_LOCKS = ("acquire", "release", "locked", "__enter__", "__exit__")  # a lock is for `with`, and no flag
_WHOLE = ("len", "tuple", "frozenset", "list", "str", "repr", "hash")
REMEMBERED = ("__notes__", "__context__", "__cause__")  # by an exception that is raised more than once
_SUMS = ("__add__", "__radd__", "__sub__", "__mul__", "__xor__", "__or__", "__invert__", "__neg__", "__mod__")


def goes_on(target: ast.expr, value: ast.expr | None, function: ast.AST | None = None) -> bool:
    """`target = value` where the value is made of what the target was: N = 1 + N, TURN = not TURN, A, B = B, A, and
    LAST = Node(LAST). `function`: the one that it is in, whose names may stand for the target."""
    if value is None:
        return False
    if isinstance(target, ast.Tuple | ast.List):
        name = {root_of(each) for each in target.elts if isinstance(each, ast.Subscript | ast.Attribute)}
        return isinstance(value, ast.Tuple) and any(_mentions(each, one) for each in value.elts for one in name)
    names = {root_of(target), *_aliases(target, function)}
    return any(_mentions(each, name) for each in _sums(value) for name in names) or _holds(value, target, function)


def of_itself(target: ast.expr, value: ast.expr | None, function: ast.AST | None = None) -> bool:
    """The same for `self.n = 1 + self.n`, where other attributes may be meant."""
    if root_of(target) != "self":
        return goes_on(target, value, function)
    wanted = ast.unparse(target)
    return _holds(value, target, function) or any(
        ast.unparse(part) == wanted for each in _sums(value) for part in ast.walk(each) if part is not each
    )


def grown_by(name: str, node: ast.AST) -> ast.expr | None:
    """What a function of that dotted name makes larger."""
    return node.args[0] if name in _FIRST and isinstance(node, ast.Call) and node.args else None


def moves_on(node: ast.Call, tree: ast.Module) -> bool:
    """Whether a method changes its owner in every call: a list grows, a queue turns, a budget is spent. `tree`: the
    file's."""
    assert isinstance(node.func, ast.Attribute)
    name, owner = node.func.attr, root_of(node.func.value)
    if name in _GROWING or name in _TURNING:
        return True
    if name == "pop":
        return not node.args or (isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, int))
    if name in _HASHES or name in _LOCKS:
        return True  # a hash that is kept goes on with every update
    given = [*node.args, *(each.value for each in node.keywords)]
    if (name in _KEYED and any(is_new(each, tree) for each in node.args[:1])) or _is_tallied(node.func, tree):
        return True
    return name in _KEEPING and any(_mentions(each, owner) for one in given for each in (*_sums(one), *_lengths(one)))


def spends(target: ast.expr) -> bool:
    """`del BUDGET[0]`"""
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant | ast.UnaryOp)


def root_of(node: ast.expr) -> str | None:
    """The name that an attribute or an element is of."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _sums(value: ast.expr | None) -> Iterator[ast.expr]:
    """What works something out; `known or made` does not."""
    for each in ast.walk(value) if value is not None else ():
        is_sum = isinstance(each, ast.BinOp | ast.JoinedStr | ast.UnaryOp)
        if is_sum or (isinstance(each, ast.Call) and _is_sum(each.func)):
            yield each


def _is_sum(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in _SUMS


def _lengths(value: ast.expr) -> Iterator[ast.expr]:
    """What is another thing whenever something was added."""
    for each in ast.walk(value):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in _WHOLE:
            yield each


def is_new(key: ast.expr, tree: ast.Module) -> bool:
    """Whether it is another key in every call: an object that equals itself alone."""
    if isinstance(key, ast.Lambda | ast.GeneratorExp):
        return True
    made = ast.unparse(key.func).rpartition(".")[2] if isinstance(key, ast.Call) else None
    return made == "object" or any(
        isinstance(each, ast.ClassDef) and each.name == made and _compares_identity(each) for each in ast.walk(tree)
    )


def _compares_identity(cls: ast.ClassDef) -> bool:
    own = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
    bases = [base for base in cls.bases if ast.unparse(base) != "object"]
    return not (bases or cls.decorator_list or own & {"__eq__", "__hash__"})


def _is_tallied(method: ast.Attribute, tree: ast.Module) -> bool:
    """`COUNTER.update("a")` of a collections.Counter."""
    if method.attr not in ("update", "subtract"):
        return False
    made = [each.value for each in ast.walk(tree) if isinstance(each, ast.Assign) and _is_called(each, method.value)]
    return any(isinstance(each, ast.Call) and ast.unparse(each.func).endswith("Counter") for each in made)


def _is_called(node: ast.Assign, name: ast.expr) -> bool:
    return any(ast.unparse(target) == ast.unparse(name) for target in node.targets)


def _holds(value: ast.expr | None, target: ast.expr, function: ast.AST | None) -> bool:
    """Whether the value holds the old one as a whole: a chain grows by a link."""
    old = {ast.unparse(target), *_aliases(target, function)}
    return any(ast.unparse(part) in old for each in ast.walk(value) for part in _inside(each)) if value else False


def _inside(value: ast.AST) -> Iterator[ast.expr]:
    match value:
        case ast.Tuple() | ast.List():
            yield from (each.value if isinstance(each, ast.Starred) else each for each in value.elts)
        case ast.Dict():
            yield from (each for key, each in zip(value.keys, value.values, strict=True) if key is not None)
        case ast.Lambda():
            yield from (*value.args.defaults, *(each for each in value.args.kw_defaults if each), value.body)
        case ast.Call() if _makes(value.func):
            yield from (*value.args, *(each.value for each in value.keywords))
        case ast.Call(func=ast.Attribute(attr=name, value=owner)) if name in _AGAIN:
            yield owner


def _makes(function: ast.expr) -> bool:
    """Whether it is a class, by its name, or what binds arguments."""
    name = ast.unparse(function).rpartition(".")[2].lstrip("_")
    return name[:1].isupper() or name in ("partial", "chain", "iter", "zip", "map", "enumerate", "cycle")


def _aliases(target: ast.expr, function: ast.AST | None) -> set[str]:
    """Names that the function gives to what the target was."""
    wanted = ast.unparse(target)
    return {
        name.id
        for each in (ast.walk(function) if function is not None else ())
        if isinstance(each, ast.Assign | ast.NamedExpr) and ast.unparse(each.value) == wanted
        for name in (each.targets if isinstance(each, ast.Assign) else [each.target])
        if isinstance(name, ast.Name) and name.id != wanted
    }


def _mentions(value: ast.expr, name: str | None) -> bool:
    return name is not None and any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value))
