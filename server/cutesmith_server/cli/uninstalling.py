"""`cutesmith uninstall`: every kernel of a project out of its code again. Without --yes it only shows what would go."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from cutesmith_agent.source.edits import EditRefusedError, apply_edits, unified_diff
from cutesmith_agent.store.location import workspace_root
from cutesmith_server.adopted import Adopted, adopted_kernels
from cutesmith_server.changes import Change, removing, user_elsewhere
from cutesmith_server.cli.deciding import note_decision, write_change
from cutesmith_server.cli.output import console, from_here, print_json
from cutesmith_server.cli.target import Target, read_file
from cutesmith_server.errors import RefusedError
from cutesmith_server.records import is_ours


@dataclass(frozen=True)
class Removal:
    """One class. `kernel_file`: "deleted", or "kept" where it was edited, is used elsewhere or may not be ours.

    `refused`: why nothing of it was taken out, or ""."""

    file: str
    class_name: str
    kernel: str
    kernel_file: str
    patch: str
    refused: str = ""


def uninstall(options: argparse.Namespace) -> int:
    """0 where all came out, or would; 3 where something did not."""
    root = workspace_root(Path.cwd() / "any")
    removals = [_removal(adopted, root, carry_out=options.yes) for adopted in list(adopted_kernels(root))]
    if options.json:
        print_json({"done": options.yes, "removals": [_as_json(each) for each in removals]})
    else:
        for line in _lines(removals, root, done=options.yes):
            console().print(line, markup=False, soft_wrap=True)
    return 3 if any(each.refused for each in removals) else 0


def _removal(adopted: Adopted, root: Path, *, carry_out: bool) -> Removal:
    try:
        data, outline = read_file(adopted.path)
        target = Target(adopted.path, adopted.qualname, data, outline)
        ours = is_ours(adopted.path, adopted.qualname)
        used = partial(user_elsewhere, adopted.path, root)
        change = removing(adopted.path, outline, adopted.qualname, user_of=used, is_ours=ours)
        patch = write_change(target, change) if carry_out else _patch(target, change)
    except (EditRefusedError, RefusedError) as refusal:
        return Removal(str(adopted.path), adopted.qualname, str(adopted.kernel), "kept", "", str(refusal))
    if carry_out:
        note_decision("removed", target)
    fate = "deleted" if change.delete else "kept"
    return Removal(str(adopted.path), adopted.qualname, str(change.kernel), fate, patch)


def _patch(target: Target, change: Change) -> str:
    before = target.outline.source.text
    return unified_diff(before, apply_edits(before, change.edits), target.path.name)


def _lines(removals: list[Removal], root: Path, *, done: bool) -> Iterator[str]:
    for each in removals:
        where = f"{from_here(each.file)}::{each.class_name}"
        if each.refused:
            yield f"{where}  not taken out: {each.refused}"
            continue
        kernel = f"{Path(each.kernel).name} {each.kernel_file}"
        yield f"{where}  {'taken out' if done else 'would be taken out'}, {kernel}"
        if not done:
            yield each.patch.rstrip("\n")
    if not removals:
        yield f"No class of {root} hands over to a kernel: there is nothing to take out."
    elif done:
        yield f"What was tried stays in {from_here(root / '.cutesmith')}: delete that folder to be rid of it, too."
    else:
        yield "Nothing was changed. cutesmith uninstall --yes does it."


def _as_json(removal: Removal) -> dict[str, str]:
    values = asdict(removal)
    return {"class": values.pop("class_name"), **values}
