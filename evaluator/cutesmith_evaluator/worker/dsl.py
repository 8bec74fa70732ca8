"""The one adapter to the CuTe DSL's private sides; tests/evaluator/test_dsl_adapter.py is its contract.

What is relied on, seen in nvidia-cutlass-dsl 4.8.1:
- every `cute.compile(...)` and `cute.compile[...](...)` goes through `CompileCallable.__call__`, and the last option of
  a name in `options=` wins;
- `--keep-ptx --keep-cubin --dump-dir D` leave `*.ptx` and `*.cubin` in D, with or without a GPU;
- `ir_module` prints the host code in MLIR's LLVM dialect, where a launch stores the dynamic shared memory into field 2
  of its configuration and then takes the address of `@kernels_<kernel>`;
- errors either carry a rendered diagnostic ("--> file:line") or have a frame in the user's file; invalid IR has
  a line only with `--generate-line-info` (of which ptxas fails on a file name with a quote in it).
"""

from __future__ import annotations

import copy
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from cutesmith_evaluator.types import Finding
from cutesmith_evaluator.worker.failures import TaskError, line_in, summary, text_of

Compile = Callable[..., Any]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r"--> (?P<file>.+?):(?P<line>\d+)")
_ERROR = re.compile(r"error(?:\[(?P<kind>\w+)\])?: *(?P<text>.+(?:\n {9,}.+)*)")
# MLIR's prefixes; the place is repeated by the line we name.
_LOCATION = re.compile(r'^(?:IR verification failed: (?:error: )?)?(?:".*?"\(".*?":\d+:\d+\): |unknown: )?')
_OURS = re.compile(r" --gpu-arch .+ --dump-dir [^' ]+")  # the options added below
_SUGGESTION = re.compile(r"suggestion: *(?P<text>.+(?:\n {8,}.+)*)")
_CONSTANT = re.compile(r"(%\w+) = llvm\.mlir\.constant\((\d+) : i64\)")
_SHARED_FIELD = re.compile(r"(%\w+) = llvm\.getelementptr %\w+\[0, 2\] .*struct<\(array<3 x i32>, array<3 x i32>, i64,")
_STORE = re.compile(r"llvm\.store (%\w+), (%\w+) : i64")
_KERNEL = re.compile(r"llvm\.mlir\.addressof @kernels_(\w+) ")


@dataclass(frozen=True)
class Compiled:
    """One `cute.compile`. `dynamic_shared`: bytes by kernel symbol, where the host code fixes them."""

    seconds: float
    cubin: bytes
    ptx: str
    dynamic_shared: dict[str, int]


@dataclass
class Compiles:
    """What `cute.compile` made inside `compiling_for`, and the exception that one let out."""

    done: list[Compiled] = field(default_factory=list)
    error: BaseException | None = None


def load() -> None:
    """Imports the DSL (2-3 s, once per process). Raises TaskError where it is not installed."""
    try:
        import cutlass.cute  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        message = (
            f"nvidia-cutlass-dsl does not import in {sys.executable} ({summary(error)}); "
            "run `pip install nvidia-cutlass-dsl apache-tvm-ffi` there."
        )
        raise TaskError(Finding("no-dsl", message)) from error


def is_loaded() -> bool:
    return "cutlass.cute" in sys.modules


@contextmanager
def compiling_for(arch: str, scratch: Path | None) -> Iterator[Compiles]:
    """Inside, every `cute.compile` is for `arch` ("sm_90a") and is recorded. Dumps go to a folder under `scratch`."""
    compiles = Compiles()

    def compile_for_arch(original: Compile, self: Any, *args: Any, options: Any = None, **kwargs: Any) -> Any:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            told = f"--gpu-arch {arch} --keep-ptx --keep-cubin --dump-dir {folder}"
            if isinstance(options, str):
                kwargs["options"] = f"{options} {told}"
            else:
                self = with_options(self, told)
            started = time.perf_counter()
            try:
                made = original(self, *args, **kwargs)
            except BaseException as error:
                compiles.error = _with_line(error, original, self, args, kwargs)
                raise
            compiles.done.append(_compiled(made, Path(folder), time.perf_counter() - started))
            return made

    with replaced_compile(compile_for_arch):
        yield compiles


def _with_line(error: BaseException, original: Compile, self: Any, args: Any, kwargs: dict[str, Any]) -> BaseException:
    """The error of invalid IR from a second compile, which knows its line; any other as it is."""
    if "could not build valid IR" not in text_of(error):
        return error
    if isinstance(kwargs.get("options"), str):
        kwargs = kwargs | {"options": kwargs["options"] + " --generate-line-info"}
    else:
        self = with_options(self, "--generate-line-info")
    try:
        original(self, *args, **kwargs)
    except Exception as located:  # noqa: BLE001 - the candidate's own error, as before
        return located
    return error


@contextmanager
def replaced_compile(replacement: Compile) -> Iterator[None]:
    """Inside, every `cute.compile` is `replacement(original, compile_callable, *args, **kwargs)`."""
    from cutlass.base_dsl.compiler import CompileCallable  # pyright: ignore[reportMissingImports]

    original = CompileCallable.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return replacement(original, self, *args, **kwargs)

    CompileCallable.__call__ = call
    try:
        yield
    finally:
        CompileCallable.__call__ = original


@contextmanager
def replaced_calls(replacement: Callable[[Compile, tuple[Any, ...], dict[str, Any]], Any]) -> Iterator[None]:
    """Inside, a call of a `@cute.jit` function that is not compiled yet is `replacement(compile, args, kwargs)`.

    `compile(options)` compiles it for these arguments.
    """
    ir: Any = import_module("cutlass._mlir.ir")
    compiler: Any = import_module("cutlass.base_dsl.compiler")
    BaseDSL: Any = import_module("cutlass.base_dsl.dsl").BaseDSL  # noqa: N806 - the DSL's name

    original = BaseDSL._func

    def call(self: Any, body: Any, *args: Any, **kwargs: Any) -> Any:
        traced = ir.Context.current is not None and ir.InsertionPoint.current is not None
        if traced or kwargs.get("compile_only"):
            return original(self, body, *args, **kwargs)

        def compiled(options: str) -> Any:
            self.compile_options = compiler._parse_compile_options_from_str(options)
            return original(self, body, *args, **kwargs, compile_only=True, no_cache=True)

        return replacement(compiled, args, kwargs)

    BaseDSL._func = call
    try:
        yield
    finally:
        BaseDSL._func = original


def execution_engine(host: Any) -> Any:
    """MLIR's ExecutionEngine over a compiled function's `ir_module`."""
    from cutlass._mlir.execution_engine import ExecutionEngine  # pyright: ignore[reportMissingImports]

    return ExecutionEngine(host, opt_level=2, shared_libs=[])


def with_options(called: Any, told: str, *, tvm_ffi: bool = True) -> Any:
    """`cute.compile[Option(...)]` with ours added: a string of options would drop those in the brackets.

    `tvm_ffi` False: its call path is left out even where the brackets ask for it.
    """
    from cutlass.base_dsl import compiler  # pyright: ignore[reportMissingImports]

    ours = compiler._parse_compile_options_from_str(told)
    made = compiler.CompileCallable()
    made._compile_options = copy.deepcopy(called._compile_options)
    kinds = (compiler.GPUArch, compiler.KeepPTX, compiler.KeepCUBIN, compiler.DumpDir)
    made._compile_options.options |= {kind: ours.options[kind] for kind in kinds}
    if not tvm_ffi:
        made._compile_options.options[compiler.EnableTVMFFI] = compiler.EnableTVMFFI(False)
    return made


def _compiled(made: Any, folder: Path, seconds: float) -> Compiled:
    cubins, texts = sorted(folder.glob("*.cubin")), sorted(folder.glob("*.ptx"))
    if not cubins or not texts:
        raise RuntimeError("cute.compile left no cubin and PTX: this version of the DSL is not supported")
    return Compiled(seconds, cubins[0].read_bytes(), texts[0].read_text(), _dynamic_shared(str(made.ir_module)))


def _dynamic_shared(host: str) -> dict[str, int]:
    constants: dict[str, int] = {}
    field_of_launch = pending = None
    found: dict[str, int] = {}
    for line in host.splitlines():
        if constant := _CONSTANT.search(line):
            constants[constant[1]] = int(constant[2])
        elif shared := _SHARED_FIELD.search(line):
            field_of_launch = shared[1]
        elif (store := _STORE.search(line)) and store[2] == field_of_launch:
            pending = constants.get(store[1])
        elif (kernel := _KERNEL.search(line)) and pending is not None:
            found[kernel[1]] = max(pending, found.get(kernel[1], 0))
            pending = None
    return found


def wants_driver(error: BaseException) -> bool:
    """Whether a compile failed only because this machine has no CUDA driver (`min_blocks_per_mp` asks it)."""
    return type(error).__name__ == "DynamicLibNotFoundError"


def finding_of_compile(error: BaseException, candidate: Path) -> Finding:
    """The DSL's error at the line of the candidate that caused it."""
    text = _COLOUR.sub("", text_of(error))
    line = _rendered_line(text, candidate) or _deepest_line(error, candidate)
    where = f"{candidate.name}:{line}" if line else candidate.name
    return Finding("compile-error", f"{where} does not compile: {_explained(text, error)}", line, str(candidate))


def _rendered_line(text: str, candidate: Path) -> int | None:
    places = [place for place in _PLACE.finditer(text) if Path(place["file"]).name == candidate.name]
    return int(places[0]["line"]) if places else None


def _deepest_line(error: BaseException, candidate: Path) -> int | None:
    """The innermost frame in the candidate, of the exception that started it all."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    return next((line for each in reversed(chain) if (line := line_in(each, candidate))), None)


def _explained(text: str, error: BaseException) -> str:
    """The DSL's own words on one line, with its first suggestion.

    Of an error that it calls internal (of IR, most are the candidate's own) the causes are told, not the label."""
    found = list(_ERROR.finditer(text))
    if not found:
        return summary(error)
    internal = found[0]["kind"] == "INTERNAL" and len(found) > 1
    causes = [_cause(each["text"]) for each in (found[1:] if internal else found[:1])]
    suggestion = None if internal else _SUGGESTION.search(text)
    advice = [" ".join(suggestion["text"].split())] if suggestion else []
    return ". ".join(causes + advice)[:600]


def _cause(text: str) -> str:
    return _OURS.sub("", _LOCATION.sub("", " ".join(text.split()))).strip().rstrip(".")
