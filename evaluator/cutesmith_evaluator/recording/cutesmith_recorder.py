"""Records how the module classes of a project are built and called, without any tensor's contents.

Runs in the user's own processes on nothing but the standard library and their torch. It must never be noticed: what
cannot be recorded is left out, and no error of its own leaves it. Each process appends JSON lines to a file of its own:
a signature when it is first seen, and its count each time it has doubled and at the end: a killed process loses little.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from cutesmith_specs import Key, Specs
from cutesmith_stopwatch import Stopwatch

_MOST = 256  # signatures of a class, and ways of building it
_INSTALLED = ("site-packages", "dist-packages")
Call = Callable[..., Any]


class Known:
    """A class of the user's. `builds`: how often it was constructed in each way."""

    def __init__(self, file: str, qualname: str) -> None:
        self.file, self.qualname = file, qualname
        self.builds: dict[Key, int] = {}
        self.counts: dict[Key, list[int]] = {}  # of one element, to be added to
        self.written: dict[Key, int] = {}
        self.about: dict[Key, tuple[int, str | None]] = {}  # a signature's number, and the dtype of the parameters


class Recorder:
    """One per process. `folder`: where all processes of a run write. `timed`: with the time that calls take."""

    def __init__(self, folder: str, *, timed: bool) -> None:
        self._folder, self._timed, self._file = folder, timed, -1
        self._classes: weakref.WeakKeyDictionary[type, Known | None] = weakref.WeakKeyDictionary()
        self._known: list[Known] = []
        self._builds: dict[int, int] = {}  # id of a module → how it was built: place in its class's `builds`
        self._begun: dict[int, tuple[Known, Key]] = {}  # of one whose constructor has not come to nn.Module's yet
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._lock = threading.RLock()
        self._clock: Stopwatch | None = None

    # Put in place

    def install(self, module: ModuleType) -> None:
        """`module`: torch.nn.modules.module, right after its import."""
        self._patch(module.Module)
        atexit.register(self.flush)
        os.register_at_fork(after_in_child=self._forked)
        import multiprocessing.util as util  # its children end without atexit

        def flush_at_end(this: Recorder) -> None:
            util.Finalize(None, this.flush, exitpriority=-100)

        util.register_after_fork(self, flush_at_end)
        flush_at_end(self)

    def leave_compiled_alone(self, module: ModuleType) -> None:
        """`module`: torch._dynamo.eval_frame. What records runs as it is, and what it calls is compiled as ever."""
        for name in ("cutesmith_recorder", "cutesmith_specs", "cutesmith_stopwatch"):
            for code in _codes(sys.modules[name]):
                module.skip_code(code)

    def _patch(self, base: Any) -> None:
        original = base.__init__

        def __new__(cls: type, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            above: Call = super(base, cls).__new__
            new = above(cls) if above is object.__new__ else above(cls, *args, **kwargs)
            self._begin(cls, new, args, kwargs, whole=cls.__new__ is __new__)
            return new

        def __init__(this: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            self._built(this)
            original(this, *args, **kwargs)

        __init__.__doc__, __init__.__wrapped__ = original.__doc__, original  # type: ignore[attr-defined]
        base.__new__, base.__init__ = staticmethod(__new__), __init__

    # Constructors

    def _begin(self, cls: type, new: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, whole: bool) -> None:
        """`whole`: the arguments are the constructor's, no `__new__` of the class has changed them."""
        try:
            entry = self._classes[cls] if cls in self._classes else self._meet(cls)
            if entry is None:
                return
            self._builds.pop(id(new), None)
            self._begun.pop(id(new), None)
            if whole:
                self._begun[id(new)] = (entry, self._specs.call(args, kwargs))
        except Exception:  # noqa: BLE001 - the user's constructor runs all the same
            return

    def _built(self, module: Any) -> None:
        """Copies and unpickled modules do not come here: how they were built is not known."""
        try:
            place = id(module)
            entry, key = self._begun.pop(place, (None, None)) if self._begun else (None, None)
            if entry is None or key is None or (len(entry.builds) >= _MOST and key not in entry.builds):
                return
            entry.builds[key] = entry.builds.get(key, 0) + 1
            self._builds[place] = list(entry.builds).index(key) if entry.builds[key] > 1 else len(entry.builds) - 1
            self._alive[place] = weakref.ref(module, lambda gone: self._forget(place))
        except Exception:  # noqa: BLE001
            return

    def _forget(self, place: int) -> None:
        self._builds.pop(place, None)
        self._alive.pop(place, None)

    # Classes

    def _meet(self, cls: type) -> Known | None:
        """A class at its first instance: one of the user's gets a `__call__` that records."""
        with self._lock:
            entry = self._classes[cls] = _users(cls)
            if entry is not None:
                self._prepare()
                self._known.append(entry)
                own = next(call for each in cls.__mro__ if (call := each.__dict__.get("__call__")))
                cls.__call__ = self._calling(entry, getattr(own, "outer", own))  # type: ignore[attr-defined]
            return entry

    def _prepare(self) -> None:
        """Once torch is imported whole."""
        if self._known:
            return
        torch = sys.modules["torch"]
        self._is_grad, self._is_tracing, self._specs = torch.is_grad_enabled, torch._C._is_tracing, Specs()
        self._clock = Stopwatch() if self._timed else None

    def _calling(self, entry: Known, outer: Call) -> Call:
        is_compiling, note, clock = sys.modules["torch"].compiler.is_compiling, self._note, self._clock

        def __call__(this: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
            if is_compiling():  # torch.compile sees this as a constant
                return outer(this, *args, **kwargs)
            note(entry, this, args, kwargs)
            if clock is None:
                return outer(this, *args, **kwargs)
            begun = clock.start(entry)
            try:
                return outer(this, *args, **kwargs)
            finally:
                clock.stop(begun)

        __call__.outer = outer  # type: ignore[attr-defined]
        return __call__

    # Calls

    def _note(self, entry: Known, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            if self._is_tracing():
                return
            call = self._specs.call(args, kwargs)
            key = (self._builds.get(id(module)), module.training, self._is_grad(), call)
            cell = entry.counts.get(key)  # hashing a key takes longer than all else here: once
            if cell is None:
                if not self._may_count(entry, key, module):
                    return
                cell = entry.counts[key] = [0]
            cell[0] += 1
            if cell[0] & (cell[0] - 1) == 0:
                self._write([self._line(entry, key)])
        except Exception:  # noqa: BLE001 - the user's module is called all the same
            return

    def _may_count(self, entry: Known, key: Key, module: Any) -> bool:
        """Looks at the module itself, once a signature."""
        if len(entry.counts) >= _MOST:
            return False
        if key not in entry.about:
            dtype = _floating_dtype(module)
            entry.about[key] = (len(entry.about), dtype)
        return True

    def _line(self, entry: Known, key: Key) -> dict[str, Any]:
        build, training, grad, call = key
        number, dtype = entry.about[key]
        entry.written[key] = entry.counts[key][0]
        return {
            "file": entry.file,
            "class": entry.qualname,
            "number": number,
            "init": self._construction(entry, build),
            **self._specs.json_of_call(call),
            "training": training,
            "grad": grad,
            "dtype": dtype,
            "calls": entry.counts[key][0],
        }

    def _construction(self, entry: Known, build: int | None) -> dict[str, Any] | None:
        """Of a copy, whose own is not known: the one that is most frequent."""
        ways = list(entry.builds)
        if build is None:
            return self._specs.json_of_call(max(ways, key=lambda each: entry.builds[each])) if ways else None
        return self._specs.json_of_call(ways[build])

    # Files

    def flush(self) -> None:
        """Writes every count that has grown since it was written, and the times."""
        try:
            with self._lock:
                grown = [
                    self._line(entry, key)
                    for entry in self._known
                    for key, (count,) in list(entry.counts.items())
                    if entry.written.get(key) != count
                ]
                self._write([*grown, *(self._clock.lines() if self._clock else ())])
        except Exception:  # noqa: BLE001
            return

    def _write(self, lines: list[dict[str, Any]]) -> None:
        if not lines:
            return
        with self._lock:
            if self._file < 0:
                path = Path(self._folder, f"{os.getpid()}-{uuid.uuid4().hex}.jsonl")
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(self._file, "".join(json.dumps(line) + "\n" for line in lines).encode())

    def _forked(self) -> None:
        """In a child: what was counted is the parent's, and so is its file."""
        self._lock, self._file = threading.RLock(), -1
        for entry in self._known:
            entry.counts, entry.written = {}, {}
        if self._clock is not None:
            self._clock.reset()


def _users(cls: type) -> Known | None:
    """None for classes of installed packages, and for those that cannot be named from outside."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if not file or "<locals>" in cls.__qualname__ or not Path(file).is_file():
        return None
    path = Path(file).resolve()
    libraries = [Path(each).resolve().parent for each in (os.__file__, sys.modules["torch"].__file__ or "")]
    if any(part in _INSTALLED for part in path.parts) or any(path.is_relative_to(each) for each in libraries):
        return None
    return Known(str(path), cls.__qualname__)


def _floating_dtype(module: Any) -> str | None:
    """Of its parameters; None without one, and where the class does not let itself be asked."""
    try:
        found = next((each.dtype for each in module.parameters() if each.dtype.is_floating_point), None)
    except Exception:  # noqa: BLE001 - the user's code
        return None
    return None if found is None else str(found).removeprefix("torch.")


def _codes(module: ModuleType) -> Iterator[CodeType]:
    """Of all functions of a module, those within others too."""
    classes = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    for value in (*vars(module).values(), *(value for each in classes for value in vars(each).values())):
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield from _within(value.__code__)


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _within(constant)
