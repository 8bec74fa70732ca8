"""Exponentials may be the fast ones where nothing but the logarithm of their sum is read."""

from __future__ import annotations

from cutesmith_agent.recipes.ir import Builder, Expr
from cutesmith_agent.recipes.online import rough_powers


def row() -> tuple[Builder, Expr, Expr, Expr]:
    """A builder, a row, the exponentials of its distances to its maximum, and the logarithm of their sum."""
    b = Builder(frozenset({1}))
    x = b.load("x", "bfloat16", (4096, 1), 0)
    e = b.op("exp", b.op("sub", x, b.reduce("max", x)))
    return b, x, e, b.op("log", b.reduce("sum", e))


def test_the_powers_of_a_logarithm_of_their_sum_are_rough() -> None:
    b, x, e, logarithm = row()
    assert rough_powers((logarithm,)) == {id(e)}
    assert rough_powers((b.op("sub", x, logarithm),)) == {id(e)}


def test_powers_that_are_results_or_divided_by_their_sum_are_not() -> None:
    b, _, e, logarithm = row()
    assert not rough_powers((e, logarithm))
    assert not rough_powers((b.op("mul", e, logarithm),))
    assert not rough_powers((b.op("div", e, b.reduce("sum", e)),))


def test_powers_whose_sum_is_read_otherwise_are_not() -> None:
    b, _, e, logarithm = row()
    assert not rough_powers((b.reduce("sum", e),))
    assert not rough_powers((b.op("mul", b.reduce("sum", e), logarithm),))
    assert not rough_powers((b.op("log", b.reduce("max", e)),))
