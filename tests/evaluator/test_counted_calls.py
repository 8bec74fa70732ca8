"""Calls of compiled functions are counted, or else it is known that they cannot be."""

from __future__ import annotations

from cutesmith_evaluator.worker.counted_calls import Calls, CountedFunction


def test_calls_are_counted_over_all_functions():
    calls = Calls()
    assert calls.count() is None, "nothing was compiled through cute.compile: nothing is known"
    doubled, negated = CountedFunction(lambda x: 2 * x, calls), CountedFunction(lambda x: -x, calls)
    assert calls.count() == 0
    assert (doubled(3), negated(3), doubled(x=4)) == (6, -3, 8)
    assert calls.count() == 3


def test_a_function_that_is_used_in_another_way_is_not_counted():
    calls = Calls()
    function = CountedFunction("text", calls)
    assert function.upper() == "TEXT"
    assert calls.count() is None
