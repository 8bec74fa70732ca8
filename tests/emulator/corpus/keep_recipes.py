"""Writes what the recipes make for the corpus into `data/recipes.tar.xz`: `python …/corpus/keep_recipes.py`.

Only kernels that the archive has not; `--again NAME` also the ones whose name has NAME in it. What is written anew has
to be recorded anew.
"""

from __future__ import annotations

import argparse
import io
import sys
import tarfile
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(_ROOT / folder) for folder in ("tests/helpers", "benchmarks")]

from corpus.recipe import Recipe  # noqa: E402
from corpus.recipe_cases import KEPT, recipes  # noqa: E402
from cutesmith_agent.recipes import Target, propose  # noqa: E402
from cutesmith_evaluator.client import Worker  # noqa: E402
from cutesmith_evaluator.types import Task  # noqa: E402


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--again", metavar="NAME", help="write these anew")
    again = options.parse_args().again
    texts = _kept()
    wanted = {recipe.member: recipe for recipe in recipes()}
    with Worker(Path(sys.executable)) as worker:
        for member, recipe in wanted.items():
            if member not in texts or (again is not None and again in recipe.name):
                written = _written(worker, recipe)
                texts |= {member: written} if written else {}
                print(recipe.name if written else f"{recipe.name}: no draft with {recipe.pick}", flush=True)
    _save({member: texts[member] for member in wanted if member in texts})
    return 0 if wanted.keys() <= texts.keys() else 1


def _written(worker: Worker, recipe: Recipe) -> bytes | None:
    with tempfile.TemporaryDirectory() as folder:
        task = Task(str(recipe.task().write(Path(folder))), recipe.qualname)
        inspection = worker.inspect(task)
        proposal = propose(inspection, Target(recipe.qualname, Path(task.file), recipe.arch))
    for draft in proposal.drafts:
        if recipe.pick.items() <= draft.schedule.items():
            return draft.source.encode()
    return None


def _kept() -> dict[str, bytes]:
    if not KEPT.exists():
        return {}
    with tarfile.open(KEPT) as archive:
        opened = ((member.name, archive.extractfile(member)) for member in archive.getmembers())
        return {name: file.read() for name, file in opened if file is not None}


def _save(texts: dict[str, bytes]) -> None:
    """The same bytes for the same texts."""
    with tarfile.open(KEPT, "w:xz", preset=9) as archive:
        for member, text in texts.items():
            about = tarfile.TarInfo(member)
            about.size = len(text)
            archive.addfile(about, io.BytesIO(text))


if __name__ == "__main__":
    raise SystemExit(main())
