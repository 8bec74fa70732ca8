"""A changed file shown by its change alone, to a reader who has the file it was made from."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

_AROUND = 5  # lines before and after what changed, or what a finding names


def changes(before: str, after: str, marked: frozenset[int] = frozenset()) -> str:
    """The lines of `after` that are new (+) or named by findings (>), those of `before` that are gone (-), and a few
    around them, numbered as in `after`. `...` stands for lines that are the same in both."""
    old, new = before.rstrip("\n").split("\n"), after.rstrip("\n").split("\n")
    gone, fresh = _difference(old, new)
    near = {*fresh, *gone, *marked}
    shown = {line for each in near for line in range(each - _AROUND, each + _AROUND + 1)}
    return "\n".join(_lines(new, gone, fresh, marked, shown))


def _difference(old: list[str], new: list[str]) -> tuple[dict[int, list[str]], set[int]]:
    """Lines that are gone, by the new line they stood before; and the numbers of new ones."""
    gone: dict[int, list[str]] = {}
    fresh: set[int] = set()
    for tag, old_start, old_end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            fresh.update(range(new_start + 1, new_end + 1))
            if old_end > old_start:
                gone[new_start + 1] = old[old_start:old_end]
    return gone, fresh


def _lines(
    new: list[str], gone: dict[int, list[str]], fresh: set[int], marked: frozenset[int], shown: set[int]
) -> Iterator[str]:
    is_hidden = False
    for number in range(1, len(new) + 2):
        yield from (f"    - {line}" for line in gone.get(number, ()))
        if number > len(new):
            return
        if number in shown:
            sign = ">" if number in marked else "+" if number in fresh else "|"
            yield f"{number:4d}{sign} {new[number - 1]}"
        elif not is_hidden:
            yield "    ..."
        is_hidden = number not in shown
