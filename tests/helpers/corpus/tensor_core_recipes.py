"""Convolutions and attention on tensor cores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from corpus.recipe import FORMS, Recipe, of_module

_made = partial(of_module, "tensor_core_modules")


def tensor_core_recipes() -> Iterator[Recipe]:
    for kind in ("Plane", "ManyChannels", "Volume"):
        yield _made(f"convolution {kind} of 2 parts", kind, parts=2)
    yield _made("convolution ManyChannels of 1 parts", "ManyChannels", parts=1)
    for kind in ("Attention", "Causal", "Written", "WrittenMask"):
        for form in FORMS:
            yield _weighing(_made(f"attention {kind} {form}", kind, form))
    for form in FORMS:
        yield _weighing(_made(f"sm_80 attention Causal {form}", "Causal", form, arch="sm_80"))


def _weighing(recipe: Recipe) -> Recipe:
    return replace(recipe, rounds_weights=True)
