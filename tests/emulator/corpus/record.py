"""Records the corpus on this machine's GPU: `python tests/emulator/corpus/record.py --out DIR`, about a minute.

Needs NumPy and a CUDA driver for the PTX kernels; torch and the CuTe DSL for the rest. A kernel that fails is named,
and what it was in the way of goes on without it. `--new` records only what `recorded/` has not, or has of other inputs,
and writes it together with what is there.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[3]
_PATHS = [str(_ROOT / folder) for folder in ("tests/helpers", "evaluator", "agent", "server", "benchmarks")]
sys.path[:0] = _PATHS
os.environ["PYTHONPATH"] = os.pathsep.join([*_PATHS, os.environ.get("PYTHONPATH", "")])

from corpus.driver import Driver  # noqa: E402
from corpus.kernels import kernels  # noqa: E402
from corpus.recorder import recorded_by  # noqa: E402
from corpus.store import Recording, load  # noqa: E402

_RECORDED = Path(__file__).parent / "recorded"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, required=True, help="folder for results.xz and index.json")
    options.add_argument("--only", default="", help="record kernels whose name contains this")
    options.add_argument("--new", action="store_true", help="record what is not recorded yet, on the same device")
    chosen = options.parse_args()
    driver = Driver()
    recording = Recording({"device": driver.device, "cuda": driver.version, "date": f"{datetime.now(UTC):%Y-%m-%d}"})
    if chosen.new:
        recording = load(_RECORDED)
        if recording.origin["device"] != driver.device:
            print(f"recorded on {recording.origin['device']}, and this is {driver.device}: record all, without --new")
            return 2
    started = time.perf_counter()
    _record_kernels(recording, chosen.only)
    recording.save(chosen.out)
    print(f"{len(recording.results)} kernels after {time.perf_counter() - started:.1f} s", flush=True)
    _record_cute(recording, chosen.only)
    recording.save(chosen.out)
    for name, reason in recording.failures.items():
        print(f"failed: {name}: {reason}")
    seconds = time.perf_counter() - started
    print(f"{len(recording.results)} kernels recorded, {len(recording.failures)} failed, {seconds:.1f} s")
    return 0


def _record_kernels(recording: Recording, only: str) -> None:
    known = {name: entry.digest for name, entry in kernels().items() if only in name}
    _record(recording, "corpus.recorder", known, processes=4)


def _record_cute(recording: Recording, only: str) -> None:
    try:
        from corpus.cute_cases import cute_cases
    except ImportError as error:
        print(f"no CuTe kernel is recorded: {error}")
        return
    known = {name: case.digest for name, case in cute_cases().items() if only in name}
    _record(recording, "corpus.cute_recorder", known, processes=max(3, min(8, (os.cpu_count() or 1) // 2)))


def _record(recording: Recording, module: str, digests: dict[str, str], processes: int) -> None:
    wanted = [name for name, digest in digests.items() if recording.digests.get(name) != digest]
    for name, answer in recorded_by(processes, module, wanted).items():
        if isinstance(answer, str):
            recording.failures[name] = answer
        else:
            recording.add(name, digests[name], answer)


if __name__ == "__main__":
    sys.exit(main())
