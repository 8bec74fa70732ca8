"""Records entries on a GPU in a process of its own, which is started again when a kernel takes the device down.

`python -m corpus.recorder` is that process: names come in on its stdin, one JSON line for each goes out.
"""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from corpus.store import Array

_FIRST_SECONDS, _SECONDS = 60.0, 30.0  # until the first answer, and between two
_FATAL = 3  # exit status: the context is lost


def recorded_by(processes: int, module: str, names: Sequence[str]) -> dict[str, list[Array] | str]:
    """What `recorded` gives, from several processes at once, in the order of the names."""
    shares = [names[place::processes] for place in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        answers = dict(pair for share in pool.map(lambda some: list(recorded(module, some)), shares) for pair in share)
    return {name: answers[name] for name in names}


def recorded(module: str, names: Sequence[str]) -> Iterator[tuple[str, list[Array] | str]]:
    """(name, results or what went wrong) for each name; `module` is the process to start."""
    left = list(names)
    while left:
        for name, answer in _one_process(module, list(left)):
            left.remove(name)
            yield name, answer


def _one_process(module: str, names: list[str]) -> Iterator[tuple[str, list[Array] | str]]:
    """Answers until the process ends. The name that it was at when it ended without one is answered for it."""
    process = subprocess.Popen([sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    process.stdin.write("\n".join(names) + "\n")
    process.stdin.close()
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_pump, args=(process, lines), daemon=True).start()
    for place, name in enumerate(names):
        try:
            line = lines.get(timeout=_SECONDS if place else _FIRST_SECONDS)
        except queue.Empty:
            line = ""
        if not line:
            ended = process.poll()
            process.kill()
            yield name, "gives no answer in time" if ended is None else f"ends its process with status {ended}"
            return
        answer = json.loads(line)
        yield name, answer["error"] if "error" in answer else [_array(each) for each in answer["results"]]
        if answer.get("fatal"):
            process.wait()
            return
    process.wait()


def _pump(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def serve(run: Callable[[str], list[Array]], *, survives: bool) -> None:
    """Answers each name of stdin. `survives`: whether the process is of use after a failure."""
    for name in sys.stdin.read().splitlines():
        try:
            answer: dict[str, Any] = {"results": [_text(array) for array in run(name)]}
        except Exception as error:  # noqa: BLE001 - the answer for this name; the parent goes on with the others
            lost = not survives or "cuModuleLoadData" not in str(error)
            answer = {"error": f"{type(error).__name__}: {error}"[:600], "fatal": lost}
        print(json.dumps(answer), flush=True)
        if answer.get("fatal"):
            sys.exit(_FATAL)


def _text(array: Array) -> list[Any]:
    return [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def _array(parts: list[Any]) -> Array:
    kind, shape, text = parts
    return np.frombuffer(base64.b64decode(text), kind).reshape(shape)


def main() -> None:
    from corpus.driver import Driver
    from corpus.kernels import kernels

    driver, known = Driver(), kernels()
    serve(lambda name: driver.run(known[name]), survives=True)


if __name__ == "__main__":
    main()
