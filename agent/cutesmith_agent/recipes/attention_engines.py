"""What an attention kernel's file is written of, for tensor cores by mma.sync and by wgmma."""

from __future__ import annotations

from dataclasses import dataclass

from . import attention_fetch, attention_hopper, attention_split, attention_text, product_pack


@dataclass(frozen=True)
class Products:
    """How scores and results are summed: what that needs besides, and the statements of one tile of keys."""

    states: str
    scores: str
    sums: str


@dataclass(frozen=True)
class Engine:
    """Text of a candidate file for one kind of tensor cores."""

    imports: str
    helpers: tuple[str, ...]
    packing: str  # a kernel that copies what the tensor cores' loads cannot read where it lies,
    copies: str  # and its launches
    kernel: str
    half: Products
    split: Products  # of two parts of each tensor
    host: str
    least: tuple[int, int]  # compute capability


AMPERE = Engine(
    attention_text.IMPORTS,
    (attention_fetch.FETCH, attention_fetch.BRING),
    "",
    "",
    attention_text.KERNEL,
    Products("", attention_text.HALF_SCORES, attention_text.HALF_SUMS),
    Products(attention_split.STATES, attention_split.SCORES, attention_split.SUMS),
    attention_text.HOST,
    least=(8, 0),
)
HOPPER = Engine(
    attention_hopper.IMPORTS,
    (),
    product_pack.PACK,
    attention_hopper.COPIES,
    attention_hopper.KERNEL,
    Products("", attention_hopper.HALF_SCORES, attention_hopper.HALF_SUMS),
    Products(attention_hopper.SPLIT_STATES, attention_hopper.SPLIT_SCORES, attention_hopper.SPLIT_SUMS),
    attention_hopper.HOST,
    least=(9, 0),
)
