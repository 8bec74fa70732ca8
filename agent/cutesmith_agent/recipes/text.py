"""Expressions as the Python a person would write in a CuTe kernel."""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from dataclasses import dataclass, field

from cutesmith_agent.source.naming import snake_case

from .ir import Const, Expr, Load, Op, Reduce, arguments, walk

INLINE_WIDTH = 64  # a single-use expression longer than this gets a name
ATOM, POWER, UNARY, PRODUCT, SUM, AND, OR, COMPARE, CHOICE = range(9)
INFIX = {
    "add": (SUM, "+"),
    "sub": (SUM, "-"),
    "mul": (PRODUCT, "*"),
    "div": (PRODUCT, "/"),
    "pow": (POWER, "**"),
    "and": (AND, "&"),
    "or": (OR, "|"),
    "lt": (COMPARE, "<"),
    "le": (COMPARE, "<="),
    "gt": (COMPARE, ">"),
    "ge": (COMPARE, ">="),
    "eq": (COMPARE, "=="),
    "ne": (COMPARE, "!="),
}
FUNCTIONS = {"round": "roundeven"}
FAST = frozenset({"exp", "exp2", "log", "log2", "sin", "cos"})
NOUNS = {
    "mul": "product",
    "add": "total",
    "sub": "difference",
    "div": "ratio",
    "exp": "e",
    "tanh": "t",
    "where": "picked",
    "sqrt": "root",
    "rsqrt": "inverse",
    "abs": "magnitude",
    "neg": "negated",
    "log": "log_value",
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"), "mask"),
    "sum": "row_sum",
    "prod": "row_product",
    "max": "row_max",
    "min": "row_min",
    "argmax": "row_argmax",
    "argmin": "row_argmin",
}
RESERVED = frozenset(
    (
        *(
            "torch",
            "os",
            "functools",
            "importlib",
            "module",
            "cute",
            "cutlass",
            "operator",
            "vector",
            "tidx",
            "bidx",
            "n",
            "rows",
        ),
        *(
            "row",
            "lane",
            "chunk",
            "step",
            "compute",
            "load",
            "store",
            "reason",
            "first",
            "stream",
            "device",
            "slot",
            "self",
        ),
        *("part", "parts", "at", "live", "column", "width", "steps", "tiles", "k", "block", "rest", "smem", "layout"),
        *("across", "finite", "online", "moments", "mean", "about", "fold", "larger", "smaller", "nearest", "write"),
        *("keep", "recall", "copy", "blank", "reduce_row", "process", "quotient", "log1p"),
        *("index", "compiled", "scratch", "unaligned"),
        *("supports", "explain", "forward", "warm_up", "aligned", "kernel", "host", "dtype", "columns", "tile", "grid"),
    )
)


def ascii_name(name: str) -> str:
    """What op schemas and PTX can spell: "größe" → "gru00f6u00dfe"."""
    return "".join(sign if sign.isascii() else f"u{ord(sign):04x}" for sign in name)


def identifier(name: str) -> str:
    """A name that is a free Python identifier: "norm.weight" → "norm_weight"."""
    name = name.replace(".__getattr__", "")
    clean = re.sub(r"\W", "_", ascii_name(name.removeprefix("p_").removeprefix("b_"))) or "value"
    clean = f"v_{clean}" if clean[0].isdigit() else f"v{clean}" if clean[0] == "_" else clean  # the file's own have one
    return f"{clean}_" if keyword.iskeyword(clean) or clean in RESERVED else clean


def kernel_name(class_name: str) -> str:
    """A class's kernel: "outer_in_ner", and "in_" for a class whose name is a keyword."""
    name = ascii_name(snake_case(class_name))
    return f"{name}_" if keyword.iskeyword(name) else name


def number(value: float) -> str:
    if math.isinf(value):
        return "-float('inf')" if value < 0 else "float('inf')"
    if math.isnan(value):
        return "float('nan')"
    return repr(value)


@dataclass
class Writer:
    """Statements and names for a set of expressions. `fast`: half-precision results allow the fast exponentials."""

    fast: bool
    names: dict[int, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    uses: Counter[int] = field(default_factory=Counter)
    scalars: bool = False  # single values, whose results are rounded to half precision
    single: bool = False  # single values, also of what varies along a row
    rough: bool = False  # of sums whose own error is larger than a rounding: quotients in a few instructions
    rough_powers: frozenset[int] = frozenset()  # exponentials, by their ids, that may be the fast ones
    row_vectors: bool = False  # a thread has several rows: what depends on the row alone is a vector too

    def count(self, roots: tuple[Expr, ...]) -> None:
        """Expressions read more than once get a name."""
        self.uses = Counter(id(a) for e in walk(roots) for a in arguments(e))
        self.uses.update(id(r) for r in roots)

    def name(self, e: Expr, wish: str) -> str:
        self.names[id(e)] = self.fresh(identifier(wish))
        return self.names[id(e)]

    def fresh(self, wish: str) -> str:
        """A name that nothing has yet."""
        name, k = wish, 2
        while name in self.taken:
            name, k = f"{wish}_{k}", k + 1
        self.taken.add(name)
        return name

    def assign(self, e: Expr, wish: str | None = None) -> str:
        """Give `e` a name by a statement; its arguments first."""
        if id(e) in self.names:
            return self.names[id(e)]
        text, _ = self._render(e)
        kind = e.name if isinstance(e, Op) else e.kind if isinstance(e, Reduce) else "value"
        name = self.name(e, wish or NOUNS.get(kind, f"{kind}_value"))
        self.lines.append(f"{name} = {text}")
        return name

    def write(self, e: Expr, within: int = CHOICE) -> str:
        """`e` as text that binds at least as tightly as `within`."""
        if id(e) in self.names:
            return self.names[id(e)]
        if isinstance(e, Const):
            text = number(e.value)
            return f"({text})" if text.startswith("-") and within < SUM else text
        text, binding = self._render(e)
        if self.uses[id(e)] > 1 or len(text) > INLINE_WIDTH:
            return self.assign(e)
        return text if binding <= within else f"({text})"

    def _render(self, e: Expr) -> tuple[str, int]:
        if not isinstance(e, Op):
            kind = type(e).__name__
            raise AssertionError(f"a {kind} must be named before it is used")
        if self.fast and e.per_column and not self.single and (fast := self._half_precision(e)):
            return fast
        if self.rough and (near := self._near(e)):
            return near
        if self.scalars and (cheap := self._of_scalars(e)):
            return cheap, ATOM
        if e.name in INFIX:
            binding, sign = INFIX[e.name]
            left, right = (self.write(a, b) for a, b in zip(e.args, self._sides(e.name, binding), strict=True))
            return f"{left} {sign} {right}", binding
        if e.name == "neg":
            return f"-{self.write(e.args[0], UNARY)}", UNARY
        if e.name == "abs":
            return f"abs({self.write(e.args[0])})", ATOM
        if e.name == "not":
            return f"{self.write(e.args[0], ATOM)} ^ True", OR
        if e.name == "where":
            return self._where(e)
        fast = ", fastmath=True" if (self.fast and e.name in FAST) or id(e) in self.rough_powers else ""
        operands = ", ".join(self.write(a) for a in e.args)
        return f"cute.math.{FUNCTIONS.get(e.name, e.name)}({operands}{fast})", ATOM

    def _near(self, e: Op) -> tuple[str, int] | None:
        """A quotient to within two roundings, as a product; by 1 + ..., which no reciprocal overflows."""
        if e.name != "div":
            return None
        numerator, denominator = e.args
        product, _ = INFIX["mul"]
        if isinstance(denominator, Const) and _has_reciprocal(denominator.value):
            return f"{self.write(numerator, product)} * (1.0 / {number(denominator.value)})", product
        if isinstance(denominator, Op) and denominator.name == "add" and _is_one(denominator.args[0]):
            if e.per_column and not self.single:
                return f"quotient({self.write(numerator)}, {self.write(denominator)})", ATOM
            return f"{self.write(numerator, product)} * cute.arch.rcp_approx({self.write(denominator)})", product
        return None

    def _of_scalars(self, e: Op) -> str | None:
        """As `_half_precision`, for single values."""
        if e.name == "erf":
            return f"erf({self.write(e.args[0])})"
        if e.name == "div" and isinstance(e.args[1], Op) and e.args[1].name == "add" and _is_one(e.args[1].args[0]):
            numerator, denominator = (self.write(a) for a in e.args)
            return f"({numerator}) * cute.arch.rcp_approx({denominator})"
        return None

    def _half_precision(self, e: Op) -> tuple[str, int] | None:
        """Cheaper forms whose error is far below a half-precision rounding; see HELPERS."""
        if e.name == "log1p":
            return f"log1p({self.write(e.args[0])})", ATOM
        if e.name != "div":
            return None
        numerator, denominator = e.args
        if isinstance(denominator, Const) and _has_reciprocal(denominator.value):
            product, _ = INFIX["mul"]
            return f"{self.write(numerator, product)} * (1.0 / {number(denominator.value)})", product
        if isinstance(denominator, Op) and denominator.name == "add" and _is_one(denominator.args[0]):
            return f"quotient({self.write(numerator)}, {self.write(denominator)})", ATOM
        return None

    @staticmethod
    def _sides(name: str, binding: int) -> tuple[int, int]:
        """How tightly each side must bind: sums and products group to the left."""
        if name in ("add", "mul"):
            return binding, binding - 1 if name == "mul" else binding
        if name in ("sub", "div"):
            return binding, binding - 1
        return (ATOM, ATOM) if binding in (AND, OR, POWER) else (SUM, SUM)

    def _where(self, e: Op) -> tuple[str, int]:
        condition, yes, no = e.args
        if self.single or not (condition.per_column or self.row_vectors):
            return f"{self._scalar(yes)} if {self.write(condition, COMPARE)} else {self._scalar(no)}", CHOICE
        if self._is_number(yes) and self._is_number(no):
            mask = self.assign(condition)
            return (
                f"cute.where({mask}, cute.full_like({mask}, {self.write(yes)}, cutlass.Float32), {self.write(no)})",
                ATOM,
            )
        return f"cute.where({self.write(condition)}, {self.write(yes)}, {self.write(no)})", ATOM

    def _is_number(self, e: Expr) -> bool:
        return isinstance(e, Const) or not (e.per_column or self.row_vectors)

    def _scalar(self, e: Expr) -> str:
        text = self.write(e, SUM)
        return f"cutlass.Float32({text})" if isinstance(e, Const) else text


def _is_one(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 1.0


def _has_reciprocal(value: float) -> bool:
    """Whether 1 / value is a normal float32, so that a product with it is a quotient to within two roundings."""
    return 2.0**-126 < abs(value) < 2.0**126


HELPERS = {
    "quotient(": (
        "def quotient(a, b):",
        '    """a / b by the approximate reciprocal (2^-22), for results in half precision; b is 1 or more."""',
        "    reciprocal = cute.make_rmem_tensor(b.shape, cutlass.Float32)",
        "    reciprocal.store(b)",
        "    for i in range(cute.size(reciprocal)):",
        "        reciprocal[i] = cute.arch.rcp_approx(reciprocal[i])",
        "    return a * reciprocal.load()",
        "",
    ),
    " erf(": (
        "def erf(x):",
        '    """To within 2e-7 (Abramowitz and Stegun, 7.1.26), without branches: for results in half precision."""',
        "    size = cutlass.max(x, -x)",
        "    t = cute.arch.rcp_approx(1.0 + 0.3275911 * size)",
        "    series = ((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736",
        "    rest = (series * t + 0.254829592) * t * cute.math.exp(-x * x, fastmath=True)",
        "    return cutlass.min(cutlass.max(x * 3.0e38, -1.0), 1.0) * (1.0 - rest)",
        "",
    ),
    " log1p(": (
        "def log1p(x):",
        '    """log(1 + x) for x >= 0, for results in half precision: the series where 1 + x would round."""',
        "    return cute.where(x < 2.0**-10, x - 0.5 * x * x, cute.math.log(1.0 + x, fastmath=True))",
        "",
    ),
}


def helpers(lines: list[str]) -> list[str]:
    """The helper functions that these lines call."""
    text = "\n".join(lines).replace("(log1p(", "( log1p(").replace("(erf(", "( erf(")
    return [line for call, helper in HELPERS.items() if call in text for line in helper]


def loads_of(roots: tuple[Expr, ...]) -> tuple[Load, ...]:
    return tuple(e for e in walk(roots) if isinstance(e, Load))
