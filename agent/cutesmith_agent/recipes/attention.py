"""The attention family: softmax(Q Kᵀ · scale + mask) V in one kernel, with an online softmax."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from . import attention_split, attention_text, product_split
from .accesses import Tensors, cute_type, pointer, tensors_of
from .attention_engines import AMPERE, HOPPER, IN_TURN, WIDE, Engine
from .attention_schedules import WIDEST, HopperSchedule, Schedule, WideSchedule, hopper, schedules, wide
from .attention_views import View, Views
from .contract import Target, Unsupported
from .ir import Const, Load, Op
from .layout import nested
from .lowering import Program
from .pointwise import KernelText, parameters
from .product_engine import placed
from .product_finish import finish_of
from .variants import Variant

LOG2_E = math.log2(math.e)
SLICE = 128  # values of a head that a block splits

Constants = tuple[tuple[str, int, str], ...]


def program_of(views: Views) -> Program:
    """What a file says of the graph: sizes are fixed."""
    return Program(views.graph, (), 0, (), ())


def variants(views: Views, name: str, target: Target) -> Iterator[Variant]:
    """Best guess first."""
    is_hopper = target.arch == "sm_90a"
    of_many_columns = wide(views) if is_hopper else ()
    if max(views.depth, views.width) > WIDEST and not of_many_columns:
        raise Unsupported(f"no recipe covers attention over more than {WIDEST} columns in one kernel")
    if views.is_split and target.ieee:
        raise Unsupported('no recipe covers attention in fp32 arithmetic alone, as precision = "ieee" asks')
    accuracy = "at fp32 accuracy through fp16 splits" if views.is_split else "summed in fp32"
    title = f"{target.class_name}: attention in one kernel on tensor cores, its products {accuracy}."
    found = of_many_columns or (*(hopper(views) if is_hopper else ()), *schedules(views, target.arch))
    for schedule in found:
        engine = _engine(schedule)
        text, scratch = emit(views, engine, name), _scratch(views, engine)
        choices = {"in_turn": 1} if engine is IN_TURN else {}
        yield Variant(constants(views, schedule), text, title, scratch, choices, engine.least)


def _engine(schedule: Schedule | HopperSchedule | WideSchedule) -> Engine:
    if isinstance(schedule, WideSchedule):
        return WIDE
    if isinstance(schedule, HopperSchedule):
        return IN_TURN if schedule.is_in_turn else HOPPER
    return AMPERE


def constants(views: Views, schedule: Schedule | HopperSchedule | WideSchedule) -> Constants:
    diagonal = views.attention.diagonal
    kept = "key - query of the scores that a causal mask keeps, at most"
    return (
        ("BATCHES", views.batches, "heads of all batches"),
        ("QUERIES", views.query_count, "queries of a head"),
        ("KEYS", views.key_count, "keys and values of a head"),
        ("DEPTH", views.depth, "columns of a query and of a key"),
        ("WIDTH", views.width, "columns of a value"),
        ("PARTS", 2 if views.is_split else 1, "matrices that stand for one"),
        *schedule.constants(),
        *(_of_splitting(views, schedule) if views.is_split else ()),
        *((("DIAGONAL", diagonal, kept),) if diagonal is not None else ()),
        ("VECTOR", 4 if views.is_split else 8, "values of an access, where tensors start at multiples of 16 bytes"),
    )


def _of_splitting(views: Views, schedule: Schedule | HopperSchedule | WideSchedule) -> Constants:
    common = (
        ("PITCH", -(-views.depth // 8) * 8, "columns of a part of queries or keys"),
        ("WIDTH_PITCH", -(-views.width // 8) * 8, "columns of a part of values"),
        ("SPLIT_THREADS", 32 if views.depth > 64 else 8, "threads that split a query or a key"),
    )
    if isinstance(schedule, WideSchedule):
        return (*common, ("TILES", -(-views.key_count // schedule.keys), "tiles of keys of a head"))
    return (
        *common,
        ("SLICE", SLICE, "values that a block splits"),
        ("SLICES", -(-views.key_count // SLICE), "such slices of a head"),
    )


def _scratch(views: Views, engine: Engine) -> str | None:
    """fp32 values of workspace: parts, powers of two, and the largest magnitudes of slices; or copies for TMA."""
    if views.is_split:
        return engine.parts.scratch
    return (
        "4 if aligned else BATCHES * (QUERIES * DEPTH + KEYS * (DEPTH + WIDTH)) // 2"
        if engine in (HOPPER, IN_TURN)
        else None
    )


def emit(views: Views, engine: Engine, name: str) -> KernelText:
    scale = _scale(views)
    masks = [view.access.gmem for view in views.masks]
    epilogue = ()
    if scale is None:
        epilogue = finish_of(_tensors_of_scores(views), views.product.total, _factors(views)).lines
    pieces = (
        engine.imports + _numbers(views, scale),
        _splitting(engine) if views.is_split else engine.packing,
        *engine.helpers,
        "\n".join(epilogue),
        _mask(views, is_computed=scale is None),
        _softmax(views, engine),
        attention_text.FADE,
        attention_text.STORE,
        attention_split.PARTS + _plain(views, engine, is_computed=scale is None) if views.is_split else "",
        _kernel(views, engine, is_computed=scale is None),
        "\n".join(_host(views, engine, name)),
    )
    words = {
        "{name}": name,
        "{operand}": cute_type("float16" if views.is_split else views.dtype),
        "{parameters}": ", ".join(f"{mask}: cute.Tensor" for mask in masks),
        "{masks}": ", ".join(masks),
        "{key_batch}": "batch" if views.is_split else views.keys.place,
        "{value_batch}": "batch" if views.is_split else views.values.place,
    }
    lines = [line for piece in pieces if piece for line in (*_filled(piece, words), "")]
    return KernelText(tuple(lines[:-1]), views.tensors)


def _scale(views: Views) -> float | None:
    """The positive number that products are multiplied by, if nothing else happens to them before softmax."""
    score, total = views.score, views.product.total
    if score is total:
        return 1.0
    if not isinstance(score, Op) or score.name not in ("mul", "div") or score.args[0] is not total:
        return None
    factor = score.args[1]
    if not isinstance(factor, Const) or not factor.value > 0:
        return None
    return factor.value if score.name == "mul" else 1 / factor.value


def _tensors_of_scores(views: Views) -> Tensors:
    """With what the scores' epilogue gives."""
    return replace(views.tensors, stores=tensors_of(views.scores, ()).stores)


def _factors(views: Views) -> tuple[Load, ...]:
    """What is no operand of the epilogue."""
    return tuple(v.access.load for v in (views.queries, views.keys, views.values) if v.access.load is not None)


def _numbers(views: Views, scale: float | None) -> str:
    """What the kernel knows when it is compiled."""
    own = (
        ("QUERIES", views.queries, views.depth),
        ("KEYS", views.keys, views.depth),
        ("VALUES", views.values, views.width),
    )
    wide = ("vector > 1" if view.has_wide_lines(columns) else "False" for _, view, columns in own)
    result = views.result
    at = (views.width, result.line, *(stride for _, stride in result.batch.pairs))
    pair = "2 if vector > 1 else 1" if result.column == 1 and not any(n % 2 for n in at) else "1"
    number = LOG2_E if scale is None else scale * LOG2_E
    lines = (
        *(f"WIDE_{name} = {text}" for (name, _, _), text in zip(own, wide, strict=True)),
        f"PAIR = {pair}  # results of an access",
        f"LOG2_STEP = {number!r}  # from a score to the logarithm of its weight to the base 2",
        f"WEIGHT_STEP = {'2.0**-14' if views.is_split else '1.0'}  # of weights as tensor cores take them",
        *(("LINES_PER_BLOCK = 256 // SPLIT_THREADS",) if views.is_split else ()),
    )
    return "\n".join((*lines, ""))


def _splitting(engine: Engine) -> str:
    return product_split.COMMON + product_split.BY_LINES + engine.parts.values


def _softmax(views: Views, engine: Engine) -> str:
    text = engine.softmax
    for word, written in (attention_split.STEP if views.is_split else attention_text.HALF_STEP).items():
        text = text.replace(word, written)
    return text


def _score(views: Views, product: str, query: str, key: str) -> str:
    """What a product becomes, before a causal mask."""
    reads = [f"{view.access.gmem}[{query}, {key}, batch].to(cutlass.Float32)" for view in views.masks]
    return f"{product} = epilogue({', '.join((product, *reads))})"


def _mask(views: Views, *, is_computed: bool) -> str:
    score = _score(views, "scores[i]", "cutlass.min(query, QUERIES - 1)", "cutlass.min(key, KEYS - 1)")
    is_causal = views.attention.diagonal is not None
    out = "(key >= KEYS) | (key - query > DIAGONAL)" if is_causal else "key >= KEYS"
    text = placed(attention_text.MASK, "{score}", score if is_computed else "").replace("{out}", out)
    return text.replace("{causal}", " or above the diagonal" if is_causal else "")


def _plain(views: Views, engine: Engine, *, is_computed: bool) -> str:
    score = _score(views, "score", "query", "key") if is_computed else ""
    causal = (
        "if key - query > DIAGONAL:\n    score = -cutlass.Float32.inf" if views.attention.diagonal is not None else ""
    )
    text = placed(attention_split.PLAIN, "{mask}", "\n".join(filter(None, (score, causal))))
    undo = (f"{each}: cute.Tensor," for each in engine.parts.tensors if each in ("query_undo", "key_undo"))
    return placed(text, "{undo_parameters}", "\n".join(undo)).replace("{unscaled}", engine.parts.unscaled)


def _kernel(views: Views, engine: Engine, *, is_computed: bool) -> str:
    is_causal, is_split = views.attention.diagonal is not None, views.is_split
    call = "with_masks(scores, places, first_query, first_key, batch, {masks})"
    inside = "cutlass.min(KEYS, first_query + DIAGONAL + 1)" if is_causal else "KEYS"
    blocks = {
        "{causal}": engine.causal if is_causal else "",
        **(engine.split if is_split else engine.half),
        "{masks}": call if is_computed else f"if first_key + TILE_KEYS > {inside}:\n    {call}",
        "{safe}": attention_text.SAFE if views.attention.is_safe else "",
        "{finish}": engine.finish if is_split else attention_text.HALF_FINISH,
        "{split_parameters}": "\n".join(f"{each}: cute.Tensor," for each in engine.parts.tensors) if is_split else "",
    }
    text = engine.kernel
    for mark, block in blocks.items():
        text = placed(text, mark, block)
    return text


def _host(views: Views, engine: Engine, name: str) -> list[str]:
    arguments = ", ".join(f"{p}: cute.Tensor" for p in parameters(views.tensors))
    exact = "exact_" if views.is_split else ""
    is_alone = bool(engine.copies) and not views.is_split
    keys, values = (view.alone if is_alone else view for view in (views.keys, views.values))
    seen = (
        (f"{exact}queries", views.queries, "QUERIES", "DEPTH"),
        (f"{exact}keys", keys, "KEYS", "DEPTH"),
        (f"{exact}values", values, "KEYS", "WIDTH"),
        ("result", views.result, "QUERIES", "WIDTH"),
        *((view.access.gmem, view, "QUERIES", "KEYS") for view in views.masks),
    )
    body = [
        *(f"{text} = {_tensor(view, lines, columns)}" for text, view, lines, columns in seen),
        *_lines(engine.parts.host if views.is_split else engine.copies),
        *_lines(_launch(views, engine)),
    ]
    work = "mWork: cute.Tensor, " if _scratch(views, engine) else ""
    return [
        "@cute.jit",
        f"def {name}({arguments}, {work}stream: CUstream):",
        *(f"    {line}" for line in body),
        "",
        f"return {name}",
    ]


def _launch(views: Views, engine: Engine) -> str:
    split = "\n".join(f"{each}," for each in engine.parts.tensors) if views.is_split else ""
    text = placed(engine.host, "{split}", split)
    for one in ("queries", "keys", "values"):
        part = {"queries": "query_parts", "keys": "key_parts", "values": "value_parts"}[one]
        text = text.replace(f"{{{one}}}", part if views.is_split else one)
    return text


def _lines(text: str) -> list[str]:
    return text.strip("\n").splitlines()


def _tensor(view: View, lines: str, columns: str) -> str:
    shape, stride = nested(view.batch, str(math.prod(size for size, _ in view.batch.pairs)))
    layout = f"({lines}, {columns}, {shape}), stride=({view.line}, {view.column}, {stride})"
    return f"cute.make_tensor({pointer(view.access)}, cute.make_layout({layout}))"


def _filled(piece: str, words: dict[str, str]) -> list[str]:
    """Its lines with words replaced; without those of which nothing is left."""
    lines = []
    for line in piece.strip("\n").split("\n"):
        filled = line
        for word, text in words.items():
            filled = filled.replace(word, text)
        if filled.strip() or not line.strip():
            lines.append(filled.rstrip().replace(", )", ")"))
    return lines
