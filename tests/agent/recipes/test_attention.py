"""However forward writes attention, a kernel's views of its tensors and its masks give what forward computes."""

from __future__ import annotations

import importlib.util
import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_agent.recipes.attention_formats import with_cuda_formats
from cutesmith_agent.recipes.attention_graph import SDPA
from cutesmith_agent.recipes.attention_schedules import schedules
from cutesmith_agent.recipes.attention_views import View, Views, views_of
from cutesmith_agent.recipes.ir import Expr, Load, Op
from cutesmith_evaluator.client import Worker
from cutesmith_evaluator.types import Graph, GraphInput, Node, Ref, Task, TensorSpec

FILE = """
import math

import torch
import torch.nn.functional as F
from torch import nn


class Task(nn.Module):
    def forward(self, {parameters}):
        {body}


def get_inputs():
    return [{inputs}]
"""
BATCH, HEADS, KEYS, DEPTH = 2, 4, 9, 8
PACKED = f"q, k, v = (t.view({BATCH}, {KEYS}, {HEADS}, {DEPTH}).transpose(1, 2) for t in x.chunk(3, -1))"
REPEATED = "k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))"
SCORES = (
    "q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])",
    "torch.matmul(q * 0.25, k.mT)",
    "torch.einsum('bhid,bhjd->bhij', q, k) * 0.3",
    "torch.matmul(q, k.permute(0, 1, 3, 2))",
)
MASKS = (  # of scores s of L queries and S keys, and the diagonal of a causal one
    ("s", None),
    ("s + m", None),
    ("s.masked_fill(m < 0, float('-inf'))", None),
    ("torch.where(m > 0, s, -1e4)", None),
    ("s.masked_fill(torch.ones(L, S, dtype=torch.bool, device=s.device).triu(1), float('-inf'))", 0),
    ("s.masked_fill(torch.tril(torch.ones(L, S, device=s.device), diagonal=2) == 0, float('-inf'))", 2),
    ("torch.where(torch.ones(L, S, dtype=torch.bool, device=s.device).tril(1)[None, None], s + m, float('-inf'))", 1),
)
OPTIONS = (
    ("", None),
    ("is_causal=True, ", 0),
    ("attn_mask=m, ", None),
    ("attn_mask=m > -1, ", None),
    ("scale=0.7, ", None),
)
ENDS = ("y", "y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)", "y.transpose(1, 2).contiguous()")


@dataclass(frozen=True)
class Form:
    """A forward, its tensors' shapes, and the diagonal of its causal mask."""

    lines: tuple[str, ...]
    shapes: dict[str, tuple[int, ...]]
    diagonal: int | None

    def write(self, file: Path, dtype: str = "") -> Path:
        inputs = ", ".join(f"torch.randn({shape}){dtype}" for shape in self.shapes.values())
        body = "\n        ".join(self.lines)
        file.write_text(FILE.format(parameters=", ".join(self.shapes), body=body, inputs=inputs))
        return file


@st.composite
def forms(draw: st.DrawFn) -> Form:
    shapes: dict[str, tuple[int, ...]] = {"x": (BATCH, KEYS, 3 * HEADS * DEPTH)}
    lines, queries, is_shared = [PACKED], KEYS, False
    if draw(st.booleans()):
        queries, is_shared = draw(st.sampled_from([1, 7, KEYS])), draw(st.booleans())
        own = (BATCH, HEADS // 2 if is_shared else HEADS, KEYS, DEPTH)
        shapes, lines = {"q": (BATCH, HEADS, queries, DEPTH), "k": own, "v": own}, []
    if draw(st.booleans()):
        mask, diagonal = draw(st.sampled_from(MASKS))
        lines += [REPEATED] if is_shared else []
        lines += [f"L, S = {queries}, {KEYS}", f"s = {draw(st.sampled_from(SCORES))}", f"s = {mask}"]
        lines += ["y = s.softmax(-1) @ v"]
    else:
        mask, diagonal = draw(st.sampled_from(OPTIONS))
        lines += [f"y = F.scaled_dot_product_attention(q, k, v, {mask}enable_gqa={is_shared})"]
    wide = [(queries, KEYS), (BATCH, 1, 1, KEYS), (BATCH, HEADS, queries, KEYS), (HEADS, 1, KEYS)]
    if any(text in mask for text in ("m <", "m >", "+ m", "=m")):
        shapes |= {"m": draw(st.sampled_from(wide))}
    return Form((*lines, f"return {draw(st.sampled_from(ENDS))}"), shapes, diagonal)


def _machine():
    spec = importlib.util.spec_from_file_location("recipe_ir_machine", Path(__file__).parent / "ir_machine.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = _machine()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(Path(sys.executable)) as made:
        yield made


def graph_of(worker: Worker, file: Path) -> Graph:
    found = worker.inspect(Task(str(file), "Task"))
    assert found.graph is not None, found.findings
    return found.graph


@settings(max_examples=3)
@given(form=forms())
def test_views_and_masks_are_those_of_forward(
    worker: Worker, tmp_path_factory: pytest.TempPathFactory, form: Form
) -> None:
    file = form.write(tmp_path_factory.mktemp("form") / "task.py")
    graph = graph_of(worker, file)
    views = views_of(graph)
    assert views is not None
    assert views.attention.diagonal == form.diagonal
    space: dict = {}
    exec(file.read_text(), space)
    inputs = [tensor.double() for tensor in space["get_inputs"]()]
    tensors = {i.name: inputs[i.position] for i in graph.inputs if i.position is not None}
    wanted = space["Task"]()(*inputs)
    torch.testing.assert_close(attended(views, tensors, wanted.shape), wanted, equal_nan=True)


def attended(views: Views, tensors: dict[str, torch.Tensor], shape: torch.Size) -> torch.Tensor:
    """The result in float64, from matrices as the kernel sees them."""
    sizes = {"queries": views.query_count, "keys": views.key_count}

    def matrix(view: View, lines: str, columns: int) -> torch.Tensor:
        assert view.access.load is not None
        return tensors[view.access.load.name].flatten()[places(view, views.batches, sizes[lines], columns)]

    queries, keys = matrix(views.queries, "queries", views.depth), matrix(views.keys, "keys", views.depth)
    masks = {id(v.access.load): matrix(v, "queries", views.key_count) for v in views.masks}
    scores = score(views.score, views, queries @ keys.mT, masks)
    if views.attention.diagonal is not None:
        kept = torch.ones(scores.shape[-2:]).tril(views.attention.diagonal) > 0
        scores = torch.where(kept, scores, -math.inf)
    weights = scores.softmax(-1)
    if views.attention.is_safe:
        weights = weights.nan_to_num()
    result = torch.full((math.prod(shape),), math.nan, dtype=torch.float64)
    result[places(views.result, views.batches, views.query_count, views.width)] = weights @ matrix(
        views.values, "keys", views.width
    )
    return result.view(shape)


def places(view: View, batches: int, lines: int, columns: int) -> torch.Tensor:
    """Where (batch, line, column) of a view is in its tensor."""
    of_batch, rest = torch.zeros(batches, dtype=torch.long), torch.arange(batches)
    for size, stride in view.batch.pairs:
        of_batch, rest = of_batch + rest % size * stride, rest // size
    at = view.access.offset + of_batch.view(-1, 1, 1) + torch.arange(lines).view(-1, 1) * view.line
    return at + torch.arange(columns) * view.column


def score(e: Expr, views: Views, product: torch.Tensor, masks: dict[int, torch.Tensor]) -> torch.Tensor:
    if e is views.product.total:
        return product
    if isinstance(e, Load):
        return masks[id(e)]
    values = {id(a): score(a, views, product, masks) for a in e.args} if isinstance(e, Op) else {}
    return machine._value(e, values, [], {})


def test_a_softmax_over_queries_is_left_to_other_recipes(worker: Worker, tmp_path: Path) -> None:
    own = (1, 2, KEYS, KEYS)
    lines = ("return torch.softmax(q @ k.mT, -2) @ v",)
    file = Form(lines, {"q": own, "k": own, "v": own}, None).write(tmp_path / "task.py")
    assert views_of(graph_of(worker, file)) is None


def test_the_first_schedule_fits_every_device(worker: Worker, tmp_path: Path) -> None:
    own = (1, 2, 300, 64)
    lines = ("return F.scaled_dot_product_attention(q, k, v)",)
    file = Form(lines, {"q": own, "k": own, "v": own}, None).write(tmp_path / "task.py")
    views = views_of(graph_of(worker, file))
    assert views is not None
    for dtype, depth, width, arch in itertools.product(
        ("float16", "float32"), (8, 20, 64, 256), (8, 128, 256), ("sm_80", "sm_89", "sm_90a")
    ):
        queries = replace(views.queries, access=replace(views.queries.access, dtype=dtype))
        found = schedules(replace(views, queries=queries, depth=depth, width=width), arch)
        assert 1 <= len(found) <= 10
        pieces = found[0].queries * -(-depth // 16) + found[0].stages * found[0].keys * -(-max(depth, width) // 16)
        assert (4 if dtype == "float32" else 2) * 16 * pieces <= 98 * 1024


BHLD, BLHD = (160, 40, 8, 1), (160, 8, 32, 1)
FORMATS = (  # dtype, columns, ops after attention, strides on CUDA
    ("float32", 8, (), BLHD),
    ("float32", 8, (("aten.mul.Tensor", (0.5,)),), BLHD),
    ("float32", 8, (("aten.permute.default", ((0, 2, 1, 3),)),), (160, 32, 8, 1)),
    ("bfloat16", 8, (), BHLD),
    ("float32", 6, (), (120, 30, 6, 1)),
)


@pytest.mark.parametrize(("dtype", "columns", "after", "strides"), FORMATS)
def test_results_have_the_order_that_they_have_on_cuda(
    dtype: str, columns: int, after: tuple, strides: tuple[int, ...]
) -> None:
    """Four heads of five queries; PyTorch's kernel for fp32 wants multiples of four columns."""
    spec = TensorSpec((1, 4, 5, columns), dtype, (20 * columns, 5 * columns, columns, 1))
    inputs = tuple(GraphInput(name, "argument", spec, k) for k, name in enumerate("qkv"))
    nodes = [Node("y0", SDPA, tuple(Ref(name) for name in "qkv"), {}, (spec,))]
    for number, (op, args) in enumerate(after):
        shape = spec.shape if op != "aten.permute.default" else (1, 5, 4, columns)
        nodes.append(Node(f"y{number + 1}", op, (Ref(f"y{number}"), *args), {}, (replace(spec, shape=shape),)))
    graph = Graph(inputs, tuple(nodes), (Ref(nodes[-1].name),), False, (), (), "attention", 0, 0)
    assert with_cuda_formats(graph).nodes[-1].outputs[0].strides == strides
