"""`if __name__ == "__main__":`, whose body nobody runs who imports the file: neither the judge nor the user."""

from __future__ import annotations

import ast

_NAME = "__name__"
_WANTED = f"{_NAME} == '__main__'"


def is_script(test: ast.expr, tree: ast.Module) -> bool:
    """Whether it is this condition, in a file that gives itself no other name."""
    return ast.unparse(test) == _WANTED and not any(map(_may_rename, ast.walk(tree)))


def _may_rename(node: ast.AST) -> bool:
    """Whether it names `__name__` other than to read it."""
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
        return False
    values = [value for _, value in ast.iter_fields(node)]
    return any(each == _NAME for value in values for each in (value if isinstance(value, list) else [value]))
