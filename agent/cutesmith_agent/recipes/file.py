"""The whole candidate file around a kernel: header, conditions, the op, compilation per device."""

from __future__ import annotations

from pathlib import PurePath

from cutesmith_evaluator.types import Graph, Inspection

from .accesses import fake_text
from .conditions import arguments_of, conditions, written
from .contract import Target
from .geometry import output_spec
from .held import Held, submodules
from .layout import Shapes, open_shapes
from .library import declared
from .lowering import Program
from .parts import Parts
from .space import contiguous, stored_strides
from .text import kernel_name
from .wrap import wrapped

EVIDENCE = "Evidence:"
CODE_WIDTH = 105  # of a line, before its indentation
NOTHING_YET = ("nothing was run on this file yet",)


def with_header(source: str, lines: tuple[str, ...]) -> str:
    """The same file with other evidence in its header."""
    head, _, rest = source.partition(f"{EVIDENCE}\n")
    if not rest:
        raise ValueError("the file has no evidence section in its header")
    _, quotes, body = rest.partition('"""')
    clean = [line.replace('"""', "'''").replace("\\", "/") for line in lines]
    return f"{head}{EVIDENCE}\n" + "".join(f"- {line}\n" for line in clean) + quotes + body


def write(program: Program, inspection: Inspection, target: Target, parts: Parts) -> str:
    """The candidate's source."""
    name = kernel_name(target.class_name)
    shapes = open_shapes(program)
    sections = [
        _header(target, parts, program),
        _imports(),
        _constants(parts),
        conditions(program, inspection, parts.given, shapes, parts.least, is_as_tf32=parts.is_as_tf32),
        _interface(program, inspection, parts),
        *(section for call in parts.calls for section in call.sections),
        launcher(name, program, parts, shapes),
        *(["\n".join(parts.turn.lines())] if parts.turn else []),
        program_function(name, parts),
        compiler(name, program, parts, shapes),
        _op(name, program, parts),
    ]
    return "\n\n".join(sections[:3]) + "\n\n\n" + "\n\n\n".join(sections[3:]) + "\n"


def _header(target: Target, parts: Parts, program: Program) -> str:
    found = (*(op for call in parts.calls for op in call.ops), *(n.op for n in program.graph.nodes))
    ops = ", ".join(dict.fromkeys(op.split(".")[1] for op in found))
    return "\n".join(
        (
            f'"""{parts.title}',
            "",
            f"For {target.class_name} in {PurePath(target.module_file).name}; written by CuteSmith. Fuses: {ops}.",
            "Inference only: where autograd needs the result, or `explain` names a reason, the original code runs.",
            "",
            EVIDENCE,
            *(f"- {line}" for line in NOTHING_YET),
            '"""',
        )
    )


def _imports() -> str:
    return "import functools\nimport importlib.util\nimport os\n\nimport torch"


def _constants(parts: Parts) -> str:
    constants = (*(each for call in parts.calls for each in call.constants), *parts.constants)
    lines = [f"{name} = {value}  # {why}" for name, value, why in constants]
    return "\n".join(
        (
            *lines,
            "",
            "# Read once, at import: CUTESMITH_DISABLE=1 keeps the original code everywhere.",
            'DISABLED = os.environ.get("CUTESMITH_DISABLE") == "1"',
            'HAS_DSL = all(importlib.util.find_spec(name) is not None for name in ("cutlass", "tvm_ffi"))',
            "PLAIN = (torch.Tensor, torch.nn.Parameter)  # subclasses may hold no memory that a kernel can read",
            *(
                [f"LIBRARY_CALLS = {declared(parts.calls)}  # what PyTorch does before the kernel"]
                if any(call.functions for call in parts.calls)
                else []
            ),
        )
    )


def _interface(program: Program, inspection: Inspection, parts: Parts) -> str:
    arguments = arguments_of(inspection)
    modules = submodules(program.graph)
    held = Held.of([i.path for i in parts.given.inputs if i.path], inspection.parameters, modules)
    tensors = ", ".join(written(inspection, i, held) for i in parts.given.inputs)
    return "\n".join(
        (
            f"def forward(module{arguments}):",
            '    """The module\'s result. Call it only where `supports` is true."""',
            *(f"    {line}" for line in held.bindings()),
            "    if torch.compiler.is_compiling():",
            f"        return _OP({tensors})",
            f"    return _launch({tensors})",
            "",
            "",
            f"def warm_up(module{arguments}):",
            '    """Compiles for these inputs\' device without launching: before a CUDA-graph capture, say."""',
            *(f"    {line}" for line in parts.warming(f"{written(inspection, parts.given.inputs[0])}.device.index")),
        )
    )


def _returns(graph: Graph) -> str:
    return f"({', '.join(['Tensor'] * len(graph.outputs))})" if graph.returns_tuple else "Tensor"


def _allocations(program: Program, parts: Parts, shapes: Shapes) -> list[str]:
    made = [_allocation(program, parts, shapes, k) for k in range(len(parts.tensors.outputs))]
    if len(made) == 1:
        return [f"return {made[0]}"]
    return [
        *(f"{out} = {text}" for out, text in zip(parts.tensors.outputs, made, strict=True)),
        f"return {', '.join(parts.tensors.outputs)}",
    ]


def _allocation(program: Program, parts: Parts, shapes: Shapes, output: int) -> str:
    spec = output_spec(program.graph, program.graph.outputs[output])
    for i in parts.given.inputs:
        opened = shapes.open_dims.get(i.name, ())
        if i.spec == spec and len(opened) == shapes.prefix:
            return f"torch.empty_like({parts.given.names[i.name]})"
    sizes = [str(n) for n in spec.shape]
    anchor = next(
        (i for i in parts.given.inputs if len(shapes.open_dims.get(i.name, ())) == shapes.prefix),
        parts.given.inputs[0],
    )
    local = parts.given.names[anchor.name]
    for d in range(min(shapes.prefix, len(sizes))):
        sizes[d] = f"{local}.shape[{d}]"
    shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
    strides = stored_strides(spec)
    if strides != contiguous(spec.shape):
        return f"torch.empty_strided({shape}, {strides}, dtype=torch.{spec.dtype}, device={local}.device)"
    if anchor.spec.dtype == spec.dtype:
        return f"{local}.new_empty({shape})"
    return f"torch.empty({shape}, dtype=torch.{spec.dtype}, device={local}.device)"


def launcher(name: str, program: Program, parts: Parts, shapes: Shapes) -> str:
    arguments = ", ".join(parts.given.names[i.name] for i in parts.given.inputs)
    outputs = ", ".join(parts.tensors.outputs)
    first = parts.given.names[parts.given.inputs[0].name]
    results = {call.result.name for call in parts.calls}
    kernels = [i for i in parts.tensors.inputs if i.spec.shape and i.name not in results]
    vectors = [parts.tensors.names[i.name] for i in kernels]
    passed = ", ".join(_passed(program, parts))
    unaligned = " or ".join(f"{v}.data_ptr() % 16" for v in vectors) or "False"
    result = f"({outputs}{',' if len(parts.tensors.outputs) == 1 else ''})" if program.graph.returns_tuple else outputs
    return "\n".join(
        (
            f"def _empty({arguments}):",
            *(f"    {line}" for line in _allocations(program, parts, shapes)),
            "",
            "",
            f"def _launch({arguments}):",
            f"    {outputs} = _empty({arguments})",
            f"    index = {first}.get_device()",
            *(f"    {line}" for call in parts.calls for line in call.lines(parts.names, parts.turned)),
            *(f"    {line}" for line in _lookup(unaligned, named="aligned" in (parts.scratch or ""))),
            *(
                [f"    scratch = torch.empty({parts.scratch}, dtype=torch.float32, device={first}.device)"]
                if parts.scratch
                else []
            ),
            "    if torch.cuda.current_device() == index:",
            f"        compiled({passed})",
            "    else:",
            "        with torch.cuda.device(index):",
            f"            compiled({passed})",
            f"    return {result}",
        )
    )


def _lookup(unaligned: str, *, named: bool) -> list[str]:
    """The compiled function for the tensors' alignment, which has a name where the workspace depends on it; many
    tensors over several lines."""
    if named:
        return [f"aligned = not ({unaligned})", "compiled = _compiled(index, aligned)"]
    line = f"compiled = _compiled(index, not ({unaligned}))"
    if len(line) <= CODE_WIDTH:
        return [line]
    first, *others = unaligned.split(" or ")
    tests = [f"    {first}", *(f"    or {other}" for other in others)]
    return ["unaligned = (", *tests, ")", "compiled = _compiled(index, not unaligned)"]


def _passed(program: Program, parts: Parts) -> list[str]:
    """The compiled function's arguments; a tensor without dimensions goes as one of one element."""
    shapes = [(parts.tensors.names[i.name], i.spec.shape) for i in parts.tensors.inputs]
    outputs = zip(parts.tensors.outputs, program.graph.outputs, strict=True)
    shapes += [(name, output_spec(program.graph, ref).shape) for name, ref in outputs]
    return [name if shape else f"{name}.view(1)" for name, shape in shapes] + (["scratch"] if parts.scratch else [])


def program_function(name: str, parts: Parts) -> str:
    return "\n".join(
        (
            "@functools.cache",
            "def _program(vector):",
            '    """The kernel and its host function, for accesses of `vector` elements. Imports the DSL (2-3 s)."""',
            *(["    import operator", ""] if any("operator." in line for line in parts.program) else []),
            "    import cutlass",
            "    import cutlass.cute as cute",
            "    from cuda.bindings.driver import CUstream",
            "",
            *(f"    {line}" if line else "" for line in wrapped(list(parts.program))),
        )
    )


def compiler(name: str, program: Program, parts: Parts, shapes: Shapes) -> str:
    specs = [(i.spec, len(shapes.open_dims.get(i.name, ()))) for i in parts.tensors.inputs]
    for ref in program.graph.outputs:
        spec = output_spec(program.graph, ref)
        specs.append((spec, min(shapes.prefix, len(spec.shape))))
    fakes = [f"        {fake_text(spec, opened)}," for spec, opened in specs]
    if parts.scratch:
        varies = "numel" in parts.scratch or "aligned" in parts.scratch
        size = "cute.sym_int()" if varies else parts.scratch
        fakes.append(f"        fake(cutlass.Float32, ({size},)),")
    align = "16 if aligned else dtype.width // 8 if dtype.width >= 8 else 1"
    return "\n".join(
        (
            "_COMPILED = {}",
            "",
            "",
            "def _compiled(index, aligned):",
            '    """The launcher for a device. `aligned`: every tensor starts at a multiple of 16 bytes."""',
            "    found = _COMPILED.get((index, aligned))",
            "    if found is None:",
            "        found = _COMPILED[index, aligned] = _compile(aligned)",
            "    return found",
            "",
            "",
            "def _compile(aligned):",
            "    import cutlass",
            "    import cutlass.cute as cute",
            "    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream",
            "",
            "    def fake(dtype, shape, order=None):",
            f"        align = {align}",
            "        order = order or tuple(reversed(range(len(shape))))",
            "        return make_fake_compact_tensor(dtype, shape, stride_order=order, assumed_align=align)",
            "",
            "    return cute.compile(",
            "        _program(VECTOR if aligned else 1),",
            *fakes,
            "        make_fake_stream(use_tvm_ffi_env_stream=True),",
            '        options="--enable-tvm-ffi",',
            "    )",
        )
    )


def _op(name: str, program: Program, parts: Parts) -> str:
    arguments = ", ".join(f"Tensor {parts.given.names[i.name]}" for i in parts.given.inputs)
    call = ", ".join(parts.given.names[i.name] for i in parts.given.inputs)
    fake = f"_empty({call})"
    if program.graph.returns_tuple and len(parts.tensors.outputs) == 1:
        fake = f"({fake},)"
    return "\n".join(
        (
            "# An op, so that torch.compile and export see one opaque node; eager calls skip the dispatcher.",
            f'_NAME = "{name}_" + (__name__.replace(".", "_") if __name__.isascii() else __name__.encode().hex())',
            'if "_LIBRARY" in globals():  # reloaded: the old definition goes first',
            "    _LIBRARY._destroy()",
            'while hasattr(torch.ops.cutesmith, _NAME):  # imported twice, and in use perhaps\n    _NAME += "_again"',
            '_LIBRARY = torch.library.Library("cutesmith", "FRAGMENT")',
            f'_SCHEMA = "({arguments}) -> {_returns(program.graph)}"',
            "_LIBRARY.define(_NAME + _SCHEMA, tags=(torch.Tag.pt2_compliant_tag,))",
            '_LIBRARY.impl(_NAME, _launch, "CUDA")',
            "",
            "",
            '@torch.library.register_fake(f"cutesmith::{_NAME}", lib=_LIBRARY)',
            f"def _fake({call}):",
            f"    return {fake}",
            "",
            "",
            "_OP = getattr(torch.ops.cutesmith, _NAME).default",
        )
    )
