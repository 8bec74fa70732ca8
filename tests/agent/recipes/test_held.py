from __future__ import annotations

from cutesmith_agent.recipes.held import Held
from cutesmith_evaluator.types import GraphInput, TensorSpec

PATHS = ("norm.weight", "norm.bias", "blocks[0].norm.eps", "blocks[0].norm.weight", "scale", "dropout.p")
SUBMODULES = frozenset(("norm", "blocks", "blocks[0]", "blocks[0].norm", "dropout"))
SPEC = TensorSpec((4,), "float32", (1,))


def parameter(path: str) -> GraphInput:
    return GraphInput("p", "parameter", SPEC, path=path)


def test_a_submodule_that_is_used_twice_gets_a_name() -> None:
    held = Held.of(PATHS, ("x",), SUBMODULES)
    norm_2 = 'norm_2 = module._modules["blocks"]._modules["0"]._modules["norm"]'
    assert held.bindings() == ['norm = module._modules["norm"]', norm_2]
    assert held.written("norm.weight") == "norm.weight"
    assert held.written("blocks[0].norm.eps") == "norm_2.eps"


def test_what_is_used_once_or_held_by_the_module_itself_is_written_out() -> None:
    held = Held.of(PATHS, (), SUBMODULES)
    assert held.written("dropout.p") == 'module._modules["dropout"].p'
    assert held.written("scale") == "module.scale"


def test_parameters_and_buffers_are_read_from_their_dictionaries() -> None:
    held = Held.of(PATHS, (), SUBMODULES)
    assert held.state(parameter("norm.weight")) == 'norm._parameters["weight"]'
    assert held.state(parameter("scale")) == 'module._parameters["scale"]'
    assert held.state(GraphInput("b", "buffer", SPEC, path="dropout.b")) == 'module._modules["dropout"]._buffers["b"]'
    assert held.state(GraphInput("c", "constant", SPEC, path="norm.table")) == "norm.table"


def test_what_the_trace_has_not_seen_to_be_a_submodule_is_read_as_an_attribute() -> None:
    held = Held.of((), (), frozenset(("known",)))
    assert held.state(parameter("other.weight")) == "module.other.weight"
    assert held.state(parameter("known.hidden.weight")) == "module.known.hidden.weight"
    assert held.state(parameter("weights[0]")) == "module.weights[0]"
    assert held.state(parameter("get_submodule('a.1b').weight")) == "module.get_submodule('a.1b').weight"


def test_names_that_the_function_has_are_not_taken_again() -> None:
    held = Held.of(("torch.weight", "torch.bias", "x.p", "x.q"), ("x",), frozenset())
    assert held.bindings() == ["torch_ = module.torch", "x_2 = module.x"]


def test_the_class_of_a_submodule_is_read_from_it() -> None:
    held = Held.of(("norm.__class__.__qualname__", "norm.eps"), (), SUBMODULES)
    assert held.written("norm.__class__.__qualname__") == "norm.__class__.__qualname__"
