"""What the worker writes, the client reads back equal, for any graph."""

from __future__ import annotations

import json
import math
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from cutesmith_evaluator.text import printable
from cutesmith_evaluator.types import (
    Compilation,
    Environment,
    Finding,
    Graph,
    GraphInput,
    Guard,
    Inspection,
    Node,
    Ref,
    Resources,
    TensorSpec,
)
from cutesmith_evaluator.wire import converter
from cutesmith_evaluator.worker.encoding import encode

NAMES = st.text(min_size=1, max_size=8)
REFS = st.builds(Ref, NAMES, st.integers(0, 3))
NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False)
ARGS = st.recursive(
    st.none() | st.booleans() | NUMBERS | NAMES | REFS,
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
SIZES = st.lists(st.integers(0, 2**40), max_size=4).map(tuple)
SPECS = st.builds(TensorSpec, SIZES, st.sampled_from(["float32", "bool"]), SIZES)
NODES = st.builds(
    Node,
    NAMES,
    NAMES,
    st.lists(ARGS, max_size=3).map(tuple),
    st.dictionaries(NAMES, ARGS, max_size=2),
    st.lists(SPECS, max_size=2).map(tuple),
    st.none() | st.integers(1, 10**6),
)
INPUTS = st.builds(GraphInput, NAMES, st.sampled_from(["argument", "parameter", "buffer", "constant"]), SPECS)
GUARDS = st.builds(Guard, ARGS, st.none() | NAMES, st.none() | st.integers(0, 9))
DIMS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=3).map(tuple)
GRAPHS = st.builds(
    Graph,
    st.lists(INPUTS, max_size=2).map(tuple),
    st.lists(NODES, max_size=3).map(tuple),
    st.lists(REFS, max_size=2).map(tuple),
    st.booleans(),
    st.lists(GUARDS, max_size=3).map(tuple),
    st.lists(DIMS, max_size=2).map(tuple),
    st.sampled_from(["pointwise", "mixed"]),
    st.integers(0, 2**60),
    st.integers(0, 2**60),
)
MESSAGES = NAMES.map(printable)
FINDINGS = st.builds(Finding, NAMES, MESSAGES, st.none() | st.integers(1, 99), st.none() | NAMES)
ENVIRONMENTS = st.builds(Environment, NAMES, st.none() | NAMES, st.none(), st.none(), NAMES, st.none() | NAMES)


@given(st.text(st.characters(codec=None, categories=None), max_size=300), st.integers(0, 200))
def test_messages_are_fit_to_be_shown_and_stored(text: str, limit: int):
    shown = printable(text, limit)
    shown.encode()
    assert not any(unicodedata.category(each) == "Cc" and each not in "\n\t" for each in shown)
    assert len(shown) <= 6 * limit + 1
    assert printable(text, 10**6) == text or not text.isprintable()


def test_a_finding_is_cleaned_whoever_sent_it():
    sent = Finding("kind", "a\0b\ud800\x1b[2J\u202ec" + "x" * 10**6)
    told = converter().unstructure(Compilation(False, 0.25, (), (sent,)))
    (found,) = converter().structure(told, Compilation).findings
    assert found.message.startswith("a\\x00b\\ud800\\x1b[2J\\u202ecxxx")
    assert len(found.message) < 5000


def over_the_wire(value: object) -> object:
    return converter().structure(json.loads(json.dumps(encode(value))), type(value))


@given(
    st.builds(Inspection, ENVIRONMENTS, st.none() | GRAPHS, st.lists(NAMES, max_size=2).map(tuple), st.tuples(FINDINGS))
)
def test_inspections(inspection: Inspection):
    assert over_the_wire(inspection) == inspection


@given(GRAPHS)
def test_the_converter_reads_what_it_writes(graph: Graph):
    assert converter().structure(json.loads(json.dumps(converter().unstructure(graph))), Graph) == graph


def test_types_of_numbers_survive():
    guard = Guard((True, 1, 1.0, math.inf, None, "x", Ref("y", 1)))
    read = over_the_wire(guard)
    assert isinstance(read, Guard)
    assert isinstance(read.value, tuple)
    assert [type(item) for item in read.value] == [bool, int, float, float, type(None), str, Ref]


def test_references_are_marked():
    assert encode(Guard((Ref("x", 2),))) == {
        "value": [{"ref": "x", "index": 2}],
        "path": None,
        "position": None,
        "same_as": None,
    }


def test_compilations():
    compilation = Compilation(True, 0.25, (Resources("k", "sm_90a", 14, 0, 0),), (Finding("k", "m"),))
    assert over_the_wire(compilation) == compilation
