"""What a call of an accepted kernel costs the host, on inputs so small that launching is all there is to do.

For each example on this CUDA device, in microseconds a call: the compiled kernel by itself, the op, guard and op as an
accepted file calls them, the module, and the module under torch.compile. Rewrites results/call_overhead.jsonl.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from cutesmith_agent.recipes import Target, propose
from cutesmith_evaluator.names import snake_case
from cutesmith_evaluator.types import Task
from pipeline import KeptWorker, measure_calls, write_accepted
from records import RESULTS, append_line, environment_fields
from suite import EXAMPLE_MODULES, Example

TINY = {"ROWS": "8", "FEATURES": "128", "CLASSES": "128", "BATCH": "1", "HEADS": "1", "LENGTH": "8", "HEAD_DIM": "64"}


def main() -> None:
    results = RESULTS / "call_overhead.jsonl"
    results.unlink(missing_ok=True)
    common = environment_fields()
    with tempfile.TemporaryDirectory(prefix="cutesmith-overhead-") as work, KeptWorker() as worker:
        for example in EXAMPLE_MODULES:
            microseconds = measure(example, Path(work) / example.stem, worker)
            append_line(results, common | {"case": example.stem, "us": microseconds})
            print(example.stem, {name: round(value, 2) for name, value in microseconds.items()}, flush=True)


def measure(example: Example, folder: Path, worker: KeptWorker) -> dict[str, float]:
    """With the recipes' first draft, validated quickly: what a call costs the host is the same for every draft."""
    file = example.case(example.stem, TINY).write(folder)
    task, kernel = Task(str(file), example.qualname), f"{snake_case(example.qualname)}_cute"
    inspection = worker.inspect(task)
    draft = propose(inspection, Target(example.qualname, file, worker.hello().arch)).drafts[0]
    copy = write_accepted(file, example.qualname, kernel, draft.source, folder / "accepted")
    validation = worker.validate(task, folder / "accepted" / f"{kernel}.py", quick=True)
    if not validation.ok:
        raise RuntimeError(f"{example.stem}: {validation.findings}")
    return measure_calls(copy, example.qualname)


if __name__ == "__main__":
    main()
