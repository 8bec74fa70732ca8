"""What an attention kernel's file is written of, for tensor cores by mma.sync and by wgmma."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from . import (
    attention_fetch,
    attention_hopper,
    attention_hopper_loops,
    attention_split,
    attention_text,
    attention_wide,
    attention_wide_softmax,
    attention_wide_split,
    product_pack,
)

Blocks = Mapping[str, str]  # the statements that stand for a kernel's marks


@dataclass(frozen=True)
class Parts:
    """How fp32 tensors become two parts each."""

    values: str  # the kernels that split values, or more than split lines
    host: str  # all launches
    tensors: tuple[str, ...]  # what the attention's kernel takes besides the parts
    unscaled: str  # a score without powers of two
    scratch: str  # fp32 values of workspace


@dataclass(frozen=True)
class Engine:
    """Text of a candidate file for one kind of tensor cores."""

    imports: str
    helpers: tuple[str, ...]
    packing: str  # a kernel that copies what the tensor cores' loads cannot read where it lies,
    copies: str  # and its launches
    kernel: str
    half: Blocks  # how scores and results are summed,
    split: Blocks  # and that of two parts of each tensor
    host: str
    least: tuple[int, int]  # compute capability
    softmax: str = attention_text.SOFTMAX
    causal: str = attention_text.CAUSAL  # how a causal mask bounds the tiles of keys
    parts: Parts = Parts(
        attention_split.VALUES,
        attention_split.HOST,
        attention_split.TENSORS,
        attention_split.UNSCALED,
        attention_split.SCRATCH,
    )
    finish: str = attention_split.FINISH  # of split values


AMPERE = Engine(
    attention_text.IMPORTS,
    (attention_fetch.FETCH, attention_fetch.BRING),
    "",
    "",
    attention_text.KERNEL,
    {"{states}": "", "{scores}": attention_text.HALF_SCORES, "{sums}": attention_text.HALF_SUMS},
    {"{states}": attention_split.STATES, "{scores}": attention_split.SCORES, "{sums}": attention_split.SUMS},
    attention_text.HOST,
    least=(8, 0),
)
HOPPER = Engine(
    attention_hopper.IMPORTS,
    (),
    product_pack.PACK,
    attention_hopper.COPIES,
    attention_hopper.KERNEL,
    {"{states}": "", "{loop}": attention_hopper_loops.OVERLAPPED_LOOP},
    {"{states}": attention_hopper_loops.SPLIT_STATES, "{loop}": attention_hopper_loops.SPLIT_LOOP},
    attention_hopper.HOST,
    least=(9, 0),
)
IN_TURN = replace(HOPPER, half={"{states}": "", "{loop}": attention_hopper_loops.HALF_LOOP})
WIDE = Engine(
    attention_wide.IMPORTS,
    (attention_wide_split.QUERIES,),
    "",
    "",
    attention_wide.KERNEL,
    {},
    {},
    attention_wide_split.HOST,
    least=(9, 0),
    softmax=attention_wide_softmax.SOFTMAX,
    causal=attention_wide.CAUSAL,
    parts=Parts(
        attention_wide_split.SPLIT_KEYS + attention_wide_split.VALUES,
        attention_wide_split.PARTS,
        attention_wide_split.TENSORS,
        attention_wide_split.UNSCALED,
        attention_wide_split.SCRATCH,
    ),
    finish=attention_wide.FINISH,
)
