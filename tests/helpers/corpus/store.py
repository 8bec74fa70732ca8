"""Recorded results on disk: one compressed stream of bytes, and an index that says what lies where."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
_BYTES, _INDEX = "results.xz", "index.json"


@dataclass
class Recording:
    """`origin`: device, driver, date. `digests`: of the kernel and its inputs. `failures`: reasons, by name."""

    origin: dict[str, str]
    digests: dict[str, str] = field(default_factory=dict)
    results: dict[str, list[Array]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, digest: str, results: list[Array]) -> None:
        self.digests[name], self.results[name] = digest, results
        self.failures.pop(name, None)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        arrays = [array for results in self.results.values() for array in results]
        (folder / _BYTES).write_bytes(lzma.compress(b"".join(array.tobytes() for array in arrays), preset=9))
        entries = {
            name: [self.digests[name], *(f"{array.dtype.str}{list(array.shape)}" for array in results)]
            for name, results in self.results.items()
        }
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
        rest = json.dumps({"origin": self.origin, "failures": self.failures}, indent=1)[1:-2]
        (folder / _INDEX).write_text(f'{{{rest},\n"entries": {{\n{lines}\n}}}}\n')


def load(folder: Path) -> Recording:
    index = json.loads((folder / _INDEX).read_text())
    data, place = lzma.decompress((folder / _BYTES).read_bytes()), 0
    recording = Recording(index["origin"], failures=index["failures"])
    for name, (digest, *forms) in index["entries"].items():
        results = []
        for form in forms:
            kind, _, shape = form.partition("[")
            extents = tuple(int(extent) for extent in shape.rstrip("]").split(",") if extent.strip())
            count = int(np.prod(extents, dtype=np.int64))
            results.append(np.frombuffer(data, kind, count, place).reshape(extents))
            place += results[-1].nbytes
        recording.add(name, digest, results)
    return recording
