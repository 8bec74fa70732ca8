"""`cute.compile` for the emulated device: the same kernel and host code, run here.

Relied on beyond what dsl names, seen in nvidia-cutlass-dsl 4.8.1: without --enable-tvm-ffi the compiled function's
`ir_module` runs in MLIR's ExecutionEngine, and its entry takes the arguments of `cute.compile` in their order: a
tensor as its pointer, its dynamic extents and its dynamic strides.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cutesmith_evaluator.emulator.device import Device
from cutesmith_evaluator.emulator.faults import EmulationError, UnsupportedError
from cutesmith_evaluator.emulator.host import HostFunction
from cutesmith_evaluator.emulator.packing import Value
from cutesmith_evaluator.emulator.properties import Properties
from cutesmith_evaluator.worker import dsl
from cutesmith_evaluator.worker.emulated_tensor import EmulatedTensor

_Arguments = tuple[Sequence[Any], dict[str, Any]]
_NUMBERS = (bool, int, float)
# Tensors of torch's types that a kernel may be compiled for under another name.
_ALIKE = {"bool": ("boolean", "uint8", "int8"), "float32": ("tfloat32",)}


@contextmanager
def emulated_compiles(arch: str, scratch: Path | None, device: Device, properties: Properties) -> Iterator[None]:
    """Inside, `cute.compile` gives functions that run on the emulated device."""

    def compile_emulated(
        original: dsl.Compile, self: Any, function: Any, *args: Any, options: Any = None, **kwargs: Any
    ) -> Any:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            told = f"--gpu-arch {arch} --keep-ptx --generate-line-info --dump-dir {folder}"
            if isinstance(options, str):
                kwargs["options"] = f"{options.replace('--enable-tvm-ffi', '')} {told}"
            else:
                self = dsl.with_options(self, told, tvm_ffi=False)
            made = original(self, function, *args, **kwargs)
            named = {name: value for name, value in kwargs.items() if name != "options"}
            return EmulatedFunction(made, Path(folder), (args, named), device, properties)

    def call_emulated(compiled: Callable[[str], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            made = compiled(f"--gpu-arch {arch} --keep-ptx --generate-line-info --dump-dir {folder}")
            function = EmulatedFunction(made, Path(folder), (args, kwargs), device, properties)
        function.call_directly(args, kwargs)

    with dsl.replaced_compile(compile_emulated), dsl.replaced_calls(call_emulated):
        yield


class EmulatedFunction:
    """What `cute.compile` gives. A call takes what the compiled function takes, with emulated tensors."""

    def __init__(
        self, made: Any, folder: Path, compiled_for: _Arguments, device: Device, properties: Properties
    ) -> None:
        texts = sorted(folder.glob("*.ptx"))
        if not texts:
            raise UnsupportedError("cute.compile left no PTX: this version of the DSL is not supported")
        self._engine = dsl.execution_engine(made.ir_module)
        self._made = made
        self._expected = _runtime_arguments(made, *compiled_for)
        self._run = HostFunction(self._engine, str(made.ir_module), texts[0].read_text(), device, properties)
        # Without stand-ins for tensors and streams the DSL itself knows how its arguments are packed.
        self._packs_itself = not any(_is_fake(each) for each in (*compiled_for[0], *compiled_for[1].values()))
        if not self._packs_itself and len(self._run.shapes) != len(self._expected):
            raise UnsupportedError("a function compiled for nested or optional arguments is not emulated yet")

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Raises EmulationError."""
        if not self._packs_itself:
            self._call_as_compiled_for(*args, **kwargs)
            return
        pointers, kept = self._made.generate_execution_args(*args, **kwargs)
        self._run.call_packed([getattr(pointer, "value", pointer) or 0 for pointer in pointers])
        del kept  # what the pointers point at

    def call_directly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """With all arguments of the function, those too that are fixed when it is compiled. Raises EmulationError."""
        self(*self._made.execution_args.get_rectified_args_from_original_args(args, kwargs))

    def _call_as_compiled_for(self, *args: Any) -> None:
        given = iter(args)
        streams = sum(_is_stream(each) for each in self._expected)
        takes_stream = len(args) == len(self._expected)
        if not takes_stream and len(args) != len(self._expected) - streams:
            raise EmulationError(
                "wrong-arguments", f"the compiled function takes {len(self._expected)} arguments and got {len(args)}"
            )
        numbers: list[Sequence[Value]] = []
        for place, expected in enumerate(self._expected):
            if _is_stream(expected):
                numbers.append((0,))
                if takes_stream:
                    next(given)
            else:
                numbers.append(_numbers(next(given), expected, place))
        self._run(numbers)


def _runtime_arguments(made: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
    """Without those that are fixed when the function is compiled."""
    known = made.execution_args
    bound = [None] if next(iter(known.original_signature.parameters), "") == "self" else []
    return known.get_rectified_args_from_original_args([*bound, *args], kwargs)


def _is_stream(value: Any) -> bool:
    return type(value).__name__ in ("_FakeStream", "CUstream")


def _is_fake(value: Any) -> bool:
    return type(value).__name__.startswith("_Fake")


def _is_fake_tensor(value: Any) -> bool:
    return type(value).__name__ == "_FakeTensor"


def _numbers(value: Any, expected: Any, place: int) -> Sequence[Value]:
    if _is_fake_tensor(expected):
        return _of_tensor(value, expected, place)
    if type(value).__name__ == "_Tensor":
        return _of_dlpack_tensor(value)
    number = getattr(value, "value", value)
    if not isinstance(number, _NUMBERS):
        raise UnsupportedError(f"argument {place} of type {type(value).__name__} is not emulated yet")
    return (number,)


def _of_dlpack_tensor(value: Any) -> Sequence[Value]:
    """What `from_dlpack` gives: it knows itself what of it is dynamic."""
    extents = [size for size, dynamic in zip(value.shape, value.dynamic_shapes_mask, strict=True) if dynamic]
    steps = [size for size, dynamic in zip(value.stride, value.dynamic_strides_mask, strict=True) if dynamic]
    return (value.data_ptr, *extents, *steps)


def _of_tensor(value: Any, expected: Any, place: int) -> Sequence[Value]:
    """Pointer, dynamic extents, dynamic strides; what is static is checked, as the DSL's call path does."""
    if not isinstance(value, EmulatedTensor):
        words = f"argument {place} of the compiled function is no tensor on the device: {type(value).__name__}"
        raise EmulationError("wrong-arguments", words)
    host = value.host
    dtype = str(host.dtype).removeprefix("torch.")
    wanted = expected.element_type.__name__.lower()
    if dtype.replace("_", "") != wanted and wanted not in _ALIKE.get(dtype, ()):
        raise EmulationError("wrong-arguments", f"argument {place} is {dtype}, the function was compiled for {wanted}")
    _check_static(tuple(host.shape), expected.shape, "shape", place)
    strides = tuple(1 if extent == 1 else stride for extent, stride in zip(host.shape, host.stride(), strict=True))
    wanted_strides = tuple(
        1 if extent == 1 else stride for extent, stride in zip(host.shape, expected.stride, strict=True)
    )
    _check_static(strides, wanted_strides, "strides", place)
    align = getattr(expected, "_assumed_align", None) or 1
    if host.data_ptr() % align:
        words = f"argument {place} starts at no multiple of {align} bytes, which the function was compiled for"
        raise EmulationError("wrong-arguments", words)
    extents = [size for size, known in zip(host.shape, expected.shape, strict=True) if not isinstance(known, int)]
    steps = [size for size, known in zip(host.stride(), expected.stride, strict=True) if not isinstance(known, int)]
    return (host.data_ptr(), *extents, *steps)


def _check_static(actual: tuple[int, ...], expected: Sequence[Any], what: str, place: int) -> None:
    differs = len(actual) != len(expected) or any(
        isinstance(known, int) and known != size for size, known in zip(actual, expected, strict=True)
    )
    if differs:
        words = f"argument {place} has {what} {actual}, the function was compiled for {tuple(expected)}"
        raise EmulationError("wrong-arguments", words)
