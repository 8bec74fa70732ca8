from __future__ import annotations

import ast
import keyword

from hypothesis import given
from hypothesis import strategies as st

from cutesmith_agent.recipes.wrap import WIDTH, wrapped

WORDS = st.from_regex(r"[a-z]{1,12}", fullmatch=True).filter(lambda word: not keyword.iskeyword(word))
NAMES = st.lists(st.builds("{}{}".format, WORDS, st.sampled_from(("", "(a, b)"))), min_size=1, max_size=30)


@given(NAMES)
def test_calls_mean_the_same_and_fit(names: list[str]) -> None:
    line = f"    result = function({', '.join(names)})"
    text = "\n".join(wrapped(["def f():", line, f"    return {', '.join(names)}"]))
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(f"def f():\n{line}\n    return {', '.join(names)}"))
    assert all(len(short) <= WIDTH for short in text.splitlines())


def test_signatures_and_launches() -> None:
    arguments = ", ".join(f"gTensor{k}: cute.Tensor" for k in range(8))
    lines = wrapped(
        [f"def kernel({arguments}):", f"    kernel({arguments.replace(': cute.Tensor', '')}, {'a' * 60}).launch("]
    )
    assert lines[0] == "def kernel("
    assert lines[-1] == "    ).launch("
    assert all(len(line) <= WIDTH for line in lines)
