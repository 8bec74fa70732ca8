"""`explain` and `supports` of a candidate file: the conditions under which its kernel computes what the module does."""

from __future__ import annotations

from cutesmith_evaluator.types import GraphInput, Guard, Inspection, TensorSpec

from .accesses import Tensors
from .contract import Unsupported
from .held import HOOKS, NOTHING_HELD, Held, called, submodules
from .layout import Shapes
from .lowering import Program
from .text import number

CODE_WIDTH = 105  # of a line, before its indentation
_COUNT = ".__len__()"


def arguments_of(inspection: Inspection) -> str:
    """forward's parameters after the module, as the file's functions take them."""
    return "".join(f", {p}" for p in inspection.parameters)


def written(inspection: Inspection, source: GraphInput, held: Held = NOTHING_HELD) -> str:
    """How the file's functions write a graph input: a parameter of forward, or module.path."""
    if source.position is not None:
        return inspection.parameters[source.position]
    if source.path is None:
        raise Unsupported(f"the constant {source.name} cannot be read from the module again")
    return held.state(source)


def conditions(
    program: Program,
    inspection: Inspection,
    tensors: Tensors,
    shapes: Shapes,
    least: tuple[int, int],
    *,
    is_as_tf32: bool = False,
) -> str:
    """The functions, and what they need. `least`: the compute capability that the kernel asks for; `is_as_tf32`: it is
    as precise as TF32, and stands in for convolutions that may be computed so."""
    first = tensors.names[tensors.inputs[0].name]
    body = [
        "if DISABLED:",
        '    return "CUTESMITH_DISABLE=1 is set"',
        "if not HAS_DSL:",
        '    return "nvidia-cutlass-dsl or apache-tvm-ffi is not installed"',
        *_state(program, inspection, tensors),
        *(line for i in tensors.inputs for line in _tensor(i, tensors, shapes)),
        *_autograd(tensors),
        'if torch.is_autocast_enabled("cuda"):',
        '    return "autocast is on: it would choose other dtypes"',
        *_TF32 * is_as_tf32,
        "if torch.jit.is_tracing():",
        '    return "TorchScript traces the call, and would not see the kernel"',
        f"if not _capable({first}.get_device()):",
        f'    return "the device is older than sm_{least[0]}{least[1]}"',
        "return None",
    ]
    return "\n".join(
        (
            f"def explain(module{arguments_of(inspection)}):",
            '    """The first reason why the kernel cannot stand in for the module here, or None."""',
            *(f"    {line}" for line in body),
            "",
            "",
            f"def supports(module{arguments_of(inspection)}):",
            '    """Whether the kernel computes what the module would, for these inputs, here and now."""',
            f"    return explain(module{arguments_of(inspection)}) is None",
            *_NAMED * any(_is_name(guard.value) and not _is_class(guard) for guard in program.graph.guards),
            *_capable(least),
            *_ALLOWED * is_as_tf32,
        )
    )


_TF32 = (
    "if not _tf32_allowed():",
    '    return "torch.backends.cudnn.allow_tf32 is off: the kernel is as precise as TF32"',
)
_ALLOWED = (
    "",
    "",
    "def _tf32_allowed():",
    "    try:",
    "        return torch.backends.cudnn.allow_tf32",
    "    except RuntimeError:  # set by the newer names, differently for convolutions and the rest",
    "        return False",
)


def _capable(least: tuple[int, int]) -> list[str]:
    return [
        "",
        "",
        "_DEVICES = {}",
        "",
        "",
        "def _capable(index):",
        "    if index not in _DEVICES:",
        "        properties = torch.cuda.get_device_properties(index)  # torch.compile traces no get_device_capability",
        f"        _DEVICES[index] = (properties.major, properties.minor) >= {least}",
        "    return _DEVICES[index]",
    ]


_NAMED = (
    "",
    "",
    "def _named(value):",
    '    """A function or class by its name, anything else as it is."""',
    '    return f"{value.__module__}:{value.__qualname__}" if hasattr(value, "__qualname__") else value',
)


def _state(program: Program, inspection: Inspection, tensors: Tensors) -> list[str]:
    """What the module holds: tensors get local names, values baked into the kernel are compared."""
    hooked = called(program.graph)
    paths = [i.path for i in tensors.inputs if i.path] + [
        guard.path.removesuffix(_COUNT) for guard in program.graph.guards if guard.path
    ]
    paths += [f"{path}.{hooks}" for path in hooked for hooks in HOOKS]
    held = Held.of(paths, (*inspection.parameters, *tensors.names.values()), submodules(program.graph))
    reads = [
        f"{tensors.names[i.name]} = {written(inspection, i, held)}"
        for i in tensors.inputs
        if written(inspection, i) != tensors.names[i.name]
    ]
    guards = [line for guard in program.graph.guards for line in _guard(guard, inspection, held)]
    lines = [*held.bindings(), *reads, *guards, *(line for path in hooked for line in _hooks(path, held))]
    if not lines:
        return []
    return [
        "try:",
        *(f"    {line}" for line in lines),
        "except (AttributeError, LookupError, TypeError):",
        '    return "the module is not put together as the one that the kernel was made for"',
    ]


def _autograd(tensors: Tensors) -> list[str]:
    needs = [f"{tensors.names[i.name]}.requires_grad" for i in tensors.inputs if i.spec.dtype != "bool"]
    if not needs:
        return []
    return [
        *_broken(f"if torch.is_grad_enabled() and {_any(needs)}:"),
        '    return "autograd needs the result: run under torch.no_grad() or torch.inference_mode()"',
    ]


def _broken(line: str) -> list[str]:
    """A long `if … (a or b):` over several lines."""
    if len(line) <= CODE_WIDTH:
        return [line]
    head, _, rest = line.partition(" and (")
    first, *others = rest.removesuffix("):").split(" or ")
    return [f"{head} and (", f"    {first}", *(f"    or {other}" for other in others), "):"]


def _any(conditions: list[str]) -> str:
    return conditions[0] if len(conditions) == 1 else f"({' or '.join(conditions)})"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and ":" in value


def _hooks(path: str, held: Held) -> list[str]:
    """The kernel does not call a submodule, so neither what hooks on it do."""
    tests = " or ".join(held.written(f"{path}.{hooks}") for hooks in HOOKS)
    return [f"if {tests}:", f"    return {f'module.{path} has hooks, which the kernel would bypass'!r}"]


def _is_class(guard: Guard) -> bool:
    return (guard.path or "").endswith("__class__")


def _guard(guard: Guard, inspection: Inspection, held: Held) -> list[str]:
    """A Python value the kernel has baked in."""
    if guard.same_as is not None:
        test = f"{held.written(guard.path or '')} is not {held.written(guard.same_as)}"
        return [f"if {test}:", f"    return {f'module.{guard.path} is not module.{guard.same_as}'!r}"]
    if _is_class(guard):
        name = f"torch.nn.{str(guard.value).partition(':')[2]}"
        test = f"{held.written(guard.path or '')} is not {name}"
        part = (guard.path or "").removesuffix(".__class__")
        return [f"if {test}:", f"    return {f'module.{part} is not a {name}'!r}"]
    if guard.position is not None:
        named = place = inspection.parameters[guard.position]
    elif (guard.path or "").endswith(_COUNT):
        counted = (guard.path or "").removesuffix(_COUNT)
        named, place = f"len(module.{counted})", f"len({held.written(counted)})"
    else:
        named, place = f"module.{guard.path}", held.written(guard.path or "")
    value = guard.value
    if isinstance(value, bool) and guard.path and guard.path.rsplit(".", 1)[-1] == "training":
        test = f"not {place}" if value else place
    elif value is None or isinstance(value, bool):
        test = f"{place} is not {value}"
    else:
        test = f"{f'_named({place})' if _is_name(value) else place} != {_literal(value)}"
    return [f"if {test}:", f"    return {f'{named} is not {value!r}'!r}"]


def _literal(value: object) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _tensor(source: GraphInput, tensors: Tensors, shapes: Shapes) -> list[str]:
    """Kind, place, dtype, layout and shape of one tensor."""
    local, first = tensors.names[source.name], tensors.names[tensors.inputs[0].name]
    dtype = source.spec.dtype
    is_first = local == first
    where = f"{local}.is_cuda" if is_first else f"{local}.get_device() == {first}.get_device()"
    place = f"a contiguous {dtype} CUDA tensor" if is_first else f"a contiguous {dtype} tensor on {first}'s device"
    must = (f"type({local}) in PLAIN", where, f"{local}.dtype is torch.{dtype}", f"{local}.is_contiguous()")
    return [*_unless(must), f'    return "{local} is not {place}"', *_shape(source, tensors, shapes)]


def _shape(source: GraphInput, tensors: Tensors, shapes: Shapes) -> list[str]:
    local, shape = tensors.names[source.name], source.spec.shape
    opened = len(shapes.open_dims.get(source.name, ()))
    if not opened:
        return [f"if {local}.shape != {_literal(shape)}:", f'    return "{local} is not of shape {shape}"']
    anchor = next(i for i in tensors.inputs if shapes.open_dims.get(i.name))
    few = [f"if not 0 < {local}.numel() < 2**31:", f'    return "{local} has no elements, or 2**31 or more"']
    if anchor.name != source.name:
        both = len(shapes.open_dims[anchor.name]) == opened and source.spec.shape == anchor.spec.shape
        other = tensors.names[anchor.name]
        if both:
            return [f"if {local}.shape != {other}.shape:", f'    return "{local} and {other} differ in shape"']
        return [*_like(local, other, source.spec, opened), *few]
    if opened == len(shape):
        return [f"if {local}.dim() != {len(shape)}:", f'    return "{local} has not {len(shape)} dimensions"', *few]
    fixed = ", ".join(map(str, shape[opened:]))
    test = f"{local}.dim() != {len(shape)} or {_tail(local, shape, opened)}"
    return [f"if {test}:", f'    return "{local} is not (*, {fixed})"', *few]


def _tail(local: str, shape: tuple[int, ...], opened: int) -> str:
    """That the dimensions past the open ones are others; one of them is read faster than a slice of the shape."""
    if opened == len(shape) - 1:
        return f"{local}.shape[{opened}] != {shape[opened]}"
    return f"{local}.shape[{opened}:] != {_literal(shape[opened:])}"


def _unless(conditions: tuple[str, ...]) -> list[str]:
    """`if not (a and b):`, over several lines where one would be long."""
    line = f"if not ({' and '.join(conditions)}):"
    if len(line) <= CODE_WIDTH:
        return [line]
    return ["if not (", f"    {conditions[0]}", *(f"    and {c}" for c in conditions[1:]), "):"]


def _like(local: str, other: str, spec: TensorSpec, opened: int) -> list[str]:
    """That the open dimensions are the other tensor's, and the rest as traced."""
    rest = f"{local}.dim() != {opened}" if opened == len(spec.shape) else _tail(local, spec.shape, opened)
    test = f"{local}.shape[:{opened}] != {other}.shape[:{opened}] or {rest}"
    if opened < len(spec.shape):
        test = f"{local}.dim() != {len(spec.shape)} or {test}"
    return [f"if {test}:", f'    return "{local} does not fit {other}"']
