"""The user's module class and how to build and call it."""

from __future__ import annotations

import inspect
import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from cutesmith_evaluator.names import snake_case
from cutesmith_evaluator.types import Finding, Task
from cutesmith_evaluator.worker.captured import Captured
from cutesmith_evaluator.worker.classes import check_class
from cutesmith_evaluator.worker.failures import TaskError, user_code
from cutesmith_evaluator.worker.placement import indexed, moved, place
from cutesmith_evaluator.worker.project import import_file


@dataclass(frozen=True)
class Reference:
    """The class of a task, with its file's functions that give constructor arguments and inputs."""

    task: Task
    cls: type[nn.Module]
    make_init: Callable[[], object] | None
    make_inputs: Callable[[], object]
    captured: Captured | None = None

    @property
    def file(self) -> Path:
        return Path(self.task.file)

    @property
    def inputs_name(self) -> str:
        """What the file calls its inputs: any callable will do, also one without a name of its own."""
        return getattr(self.make_inputs, "__name__", "get_inputs")

    def build(self, device: torch.device | str) -> nn.Module:
        """A new instance in eval mode on `device`; equal weights every time (seed 0). Raises TaskError."""
        return self.placed(self.construct(self.cls), device)

    def placed(self, module: nn.Module, device: torch.device | str) -> nn.Module:
        """`module`, one of `construct`'s, in eval mode on `device`."""
        with user_code("constructor-raised", f"moving {self.task.qualname} to {device}", self.file):
            return place(module, indexed(device)).eval()

    def construct(self, cls: type[nn.Module]) -> nn.Module:
        """`cls` (the reference's or a stand-in with the same constructor) built with the reference's arguments."""
        seed_everything(0)
        with user_code("constructor-raised", f"constructing {cls.__qualname__}", self.file):
            args, kwargs = _constructor_arguments(self.make_init() if self.make_init else [])
            module = cls(*args, **kwargs)
            module = self.captured.in_dtype(module) if self.captured else module
        if any(isinstance(part, LazyModuleMixin) for part in module.modules()):
            message = (
                f"{self.file.name}: {cls.__qualname__} has parameters without a size; use layers that are not lazy."
            )
            raise TaskError(Finding("lazy-module", message, None, str(self.file)))
        return module

    def inputs(self, seed: int, device: torch.device | str) -> tuple[object, ...]:
        """Fresh arguments of forward, all its positional parameters with defaults filled in.

        Tensors are detached, on `device`, with their strides kept. Raises TaskError.
        """
        seed_everything(seed)
        with user_code("inputs-raised", f"calling {self.inputs_name}()", self.file):
            made = self.make_inputs()
            if isinstance(made, torch.Tensor):
                made = [made]
            if not isinstance(made, list | tuple):
                raise TypeError(f"it returns {type(made).__name__}, not a list of forward's arguments")
            self._check_number(len(made))
            return tuple(moved(value, device) for value in self._with_defaults(made))

    def _with_defaults(self, arguments: Sequence[object]) -> tuple[object, ...]:
        """`arguments` bound to forward's parameters. Raises TypeError where they do not fit."""
        bound = inspect.signature(self.cls.forward).bind(None, *arguments)
        bound.apply_defaults()
        if bound.kwargs:
            name, line = self.file.name, self.cls.forward.__code__.co_firstlineno
            what = f"takes {', '.join(bound.kwargs)} by keyword only; a kernel takes arguments by position"
            raise TaskError(Finding("unsupported-argument", f"{name}:{line}: forward {what}.", line, str(self.file)))
        return bound.args[1:]

    def _check_number(self, given: int) -> None:
        least, most = _positional_parameters(self.cls)
        if least <= given <= most:
            return
        takes = f"{least}" if least == most else f"at least {least}" if math.isinf(most) else f"{least} to {most:.0f}"
        values = "1 value" if given == 1 else f"{given} values"
        message = f"{self.file.name}: {self.inputs_name}() gives {values}, forward takes {takes}."
        raise TaskError(Finding("inputs-raised", message, None, str(self.file)))


def load_reference(task: Task) -> Reference:
    """Imports the task's file and finds its class and inputs. Raises TaskError."""
    file = Path(task.file)
    check_class(file, task.qualname)
    module = import_file(file)
    cls = _find_class(module, task)
    if task.captured is not None:
        captured = Captured(task.captured)
        return Reference(task, cls, captured.make_init, captured.make_inputs(cls), captured)
    make_init = _find_function(module, task.qualname, "init_inputs")
    make_inputs = _find_function(module, task.qualname, "inputs")
    if make_inputs is None:
        raise TaskError(_no_inputs(task))
    if make_init is None:
        _require_no_arguments(cls, task)
    return Reference(task, cls, make_init, make_inputs)


def seed_everything(seed: int) -> None:
    """Seeds torch, random and, where the user's code has imported it, numpy."""
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def _positional_parameters(cls: type[nn.Module]) -> tuple[int, float]:
    """The least and the largest number of arguments that forward takes by position."""
    parameters = list(inspect.signature(cls.forward).parameters.values())[1:]
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    variadic = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    return sum(each.default is each.empty for each in positional), math.inf if variadic else len(positional)


def _find_class(module: ModuleType, task: Task) -> type[nn.Module]:
    found: object = module
    for part in task.qualname.split("."):
        found = getattr(found, part, None)
    if isinstance(found, type) and issubclass(found, nn.Module):
        return found
    name = Path(task.file).name
    if isinstance(found, type):
        message = f"{task.qualname} in {name} is not a torch.nn.Module; choose a class that derives from nn.Module."
        raise TaskError(Finding("not-a-module", message, None, task.file))
    message = f"{task.qualname} is not a class any more once {name} is imported; is it deleted or rebound?"
    raise TaskError(Finding("class-missing", message, None, task.file))


def _find_function(module: ModuleType, qualname: str, suffix: str) -> Callable[[], object] | None:
    """`get_<class>_<suffix>` of the file, else `get_<suffix>`."""
    own = (snake_case(qualname), snake_case(qualname.rpartition(".")[2]))
    for name in (*(f"get_{stem}_{suffix}" for stem in own), f"get_{suffix}"):
        function = getattr(module, name, None)
        if callable(function):
            return function
    return None


def _constructor_arguments(made: object) -> tuple[list[object], dict[str, object]]:
    """Positionals, or KernelBench's pair of positionals and keywords."""
    if isinstance(made, dict):
        return [], made
    if not isinstance(made, list | tuple):
        raise TypeError(f"get_init_inputs() returns {type(made).__name__}, not a list of constructor arguments")
    if len(made) == 2 and isinstance(made[0], list | tuple) and isinstance(made[1], dict):
        return list(made[0]), made[1]
    return list(made), {}


def _no_inputs(task: Task) -> Finding:
    name = snake_case(task.qualname)
    message = (
        f"{Path(task.file).name} does not say how to call {task.qualname}; add `def get_inputs():` returning a list of "
        f"example arguments of forward (or get_{name}_inputs, in a file with several modules), or record those of a "
        "real run: cutesmith capture -- python your_script.py."
    )
    return Finding("no-inputs", message, None, task.file)


def _require_no_arguments(cls: type[nn.Module], task: Task) -> None:
    needed = _required_parameters(cls)
    if needed:
        message = (
            f"{task.qualname} needs constructor arguments ({', '.join(needed)}); add `def get_init_inputs():` to "
            f"{Path(task.file).name} returning them as a list."
        )
        raise TaskError(Finding("no-inputs", message, None, task.file))


def _required_parameters(cls: type[nn.Module]) -> list[str]:
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in variadic]
