"""Compile errors of kernels broken in typical ways, and whether the knowledge pack finds the section that cures each.

Run: python benchmarks/knowledge_errors.py [--record]. The kernels are the pack's own snippets; what is broken in them,
and which section cures that, is in tests/agent/data/broken_kernels.json, written before the message was seen.
`--record` compiles all of them with the installed DSL and writes the messages there. No device is needed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cutesmith_agent.knowledge.retrieval import by_errors, sections
from cutesmith_agent.refine.prompts import ERROR_KNOWLEDGE
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.failures import finding_of
from knowledge_snippets import code, load, snippets

RECORDS = Path(__file__).parents[1] / "tests" / "agent" / "data" / "broken_kernels.json"


@dataclass(frozen=True)
class Broken:
    """A snippet with `old` replaced by `new`. `cure`: the section for it. `held_out`: drawn up after the sections were
    written on the others."""

    name: str
    snippet: str
    old: str
    new: str
    cure: str
    held_out: bool
    message: str

    @property
    def arch(self) -> str:
        return "sm_80" if self.cure == "arch" else "sm_90a"


def read_records() -> list[Broken]:
    return [Broken(**record) for record in json.loads(RECORDS.read_text(encoding="utf-8"))]


def message_of(broken: Broken, folder: Path) -> str | None:
    """What the evaluator says of it with the installed DSL; None where it compiles."""
    path = folder / "kernel_cute.py"
    source = code(snippets()[broken.snippet])
    assert broken.old in source, broken.name
    path.write_text(source.replace(broken.old, broken.new) if broken.old else source)
    with dsl.compiling_for(broken.arch, folder) as compiles:
        try:
            load(path).compiled("--enable-tvm-ffi")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a broken kernel may raise anything
            if compiles.error is not None:
                return dsl.finding_of_compile(compiles.error, path).message
            return finding_of(error, "warm-up-raised", "warming up", path).message
    return None


def hit_rates(records: Sequence[Broken]) -> tuple[float, float, float]:
    """The parts of the errors whose cure comes first, among the first three, and into the room that a fix's prompt has
    for knowledge."""
    ranks = [[section.name for section in by_errors([each.message], each.arch)[:3]] for each in records]
    shown = [[one.name for one in sections((), each.arch, [each.message], ERROR_KNOWLEDGE)] for each in records]
    first = sum(names[:1] == [each.cure] for names, each in zip(ranks, records, strict=True))
    among = sum(each.cure in names for names, each in zip(ranks, records, strict=True))
    came = sum(each.cure in names for names, each in zip(shown, records, strict=True))
    return first / len(records), among / len(records), came / len(records)


def record() -> None:
    dsl.load()
    recorded = []
    for broken in read_records():
        with tempfile.TemporaryDirectory() as folder:
            message = message_of(broken, Path(folder))
        print(f"{broken.name}: {message or 'compiles: left out'}")
        if message:
            recorded.append(asdict(replace(broken, message=message)))
    RECORDS.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--record", action="store_true")
    if parser.parse_args().record:
        record()
    print("| errors | number | cure first | among three | in the prompt |\n|---|---|---|---|---|")
    for words, kinds in (("the sections were written on", (False,)), ("held out", (True,)), ("both", (False, True))):
        records = [each for each in read_records() if each.held_out in kinds]
        rates = " | ".join(f"{rate:.1%}" for rate in hit_rates(records))
        print(f"| {words} | {len(records)} | {rates} |")


if __name__ == "__main__":
    main()
