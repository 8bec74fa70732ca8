from __future__ import annotations

from cutesmith_agent.recipes.held import Held

PATHS = ("norm.weight", "norm.bias", "blocks[0].norm.eps", "blocks[0].norm.weight", "scale", "dropout.p")


def test_a_submodule_that_is_used_twice_gets_a_name() -> None:
    held = Held.of(PATHS, taken=("x",))
    assert held.bindings() == ["norm = module.norm", "norm_2 = module.blocks[0].norm"]
    assert held.written("norm.weight") == "norm.weight"
    assert held.written("blocks[0].norm.eps") == "norm_2.eps"


def test_what_is_used_once_or_held_by_the_module_itself_is_written_out() -> None:
    held = Held.of(PATHS, taken=())
    assert held.written("dropout.p") == "module.dropout.p"
    assert held.written("scale") == "module.scale"


def test_names_that_the_function_has_are_not_taken_again() -> None:
    held = Held.of(("torch.weight", "torch.bias", "x.p", "x.q"), taken=("x",))
    assert held.bindings() == ["torch_ = module.torch", "x_2 = module.x"]


def test_the_class_of_a_submodule_is_read_from_it() -> None:
    held = Held.of(("norm.__class__.__qualname__", "norm.eps"), taken=())
    assert held.written("norm.__class__.__qualname__") == "norm.__class__.__qualname__"
