"""What one process of a confirmation believes of the other: nothing."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import prod
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cutesmith_evaluator.confirmation import PART, Given, word_of
from cutesmith_evaluator.confirming_peers import BLOCKS, WHOLE, RefusedError, blocks_of, outputs_of
from cutesmith_evaluator.worker.confirm_handed import HandedError, received, shell
from cutesmith_evaluator.worker.confirm_launches import launch_check
from cutesmith_evaluator.worker.confirm_replay import digest_into, digest_room
from cutesmith_evaluator.worker.confirm_site import digests, word
from cutesmith_evaluator.worker.confirm_time import (
    ANSWERS,
    BUSY,
    DIGEST_FACTOR,
    FACTOR,
    LAUNCH_MS,
    NODE_MS,
    ROUND_MS,
    SLOWEST_ANSWER_MS,
    Pace,
    ReplayPace,
    Round,
    replay_finding,
    replay_words,
    time_finding,
)

WANTED = torch.arange(12, dtype=torch.float32).view(3, 4)


def given_as(path: Path, **others: object) -> Given:
    return Given((3, 4), "float32", (4, 1), str(path), **others)  # type: ignore[arg-type]


def stored(path: Path, tensor: torch.Tensor) -> Path:
    path.write_bytes(tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return path


def test_an_output_is_read_as_it_was(tmp_path: Path):
    got, judged = received(given_as(stored(tmp_path / "a", WANTED), digests=(int(digests(WANTED)),)), WANTED)
    assert torch.equal(got, WANTED)
    assert judged is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64, torch.bool, torch.float8_e4m3fn])
def test_of_any_dtype(tmp_path: Path, dtype: torch.dtype):
    wanted = (WANTED > 5).to(dtype) if dtype is torch.bool else WANTED.to(dtype)
    got, _ = received(given_as(stored(tmp_path / "a", wanted)), wanted)
    assert got.dtype is dtype
    assert torch.equal(got.float(), wanted.float())


def test_blocks_and_masks_say_what_counts(tmp_path: Path):
    file = stored(tmp_path / "a", WANTED.view(-1)[[1, 2, 10, 11]])
    mask = stored(tmp_path / "mask", torch.tensor([1, 0, 1, 1], dtype=torch.uint8))
    got, judged = received(given_as(file, blocks=((1, 2), (10, 2)), mask=str(mask)), WANTED)
    assert judged is not None
    assert judged.view(-1).nonzero().flatten().tolist() == [1, 10, 11]
    assert torch.equal(got[judged], WANTED[judged])


def link(path: Path) -> None:
    stored(path.with_name("other"), WANTED)
    path.symlink_to(path.with_name("other"))


@pytest.mark.parametrize(
    "make",
    [link, os.mkfifo, Path.mkdir, lambda path: path.write_bytes(b"short"), lambda path: path.symlink_to("/dev/zero"),
     lambda path: path.write_bytes(bytes(49)), lambda path: None],
    ids=["link", "pipe", "folder", "short", "device", "long", "nothing"],
)  # fmt: skip
def test_what_is_no_file_of_that_size_is_no_output(tmp_path: Path, make):
    make(tmp_path / "a")
    with pytest.raises(HandedError):
        received(given_as(tmp_path / "a"), WANTED)


def test_a_part_that_has_changed_since_it_was_made_is_none(tmp_path: Path):
    wanted = torch.randn(3 * PART + 5, generator=torch.Generator().manual_seed(0))
    blocks = ((0, PART), (2 * PART, PART), (3 * PART, 5))
    file = stored(tmp_path / "a", torch.cat([wanted[first : first + count] for first, count in blocks]))
    layout = Given((len(wanted),), "float32", (1,), str(file), blocks, digests=tuple(digests(wanted).tolist()))
    got, judged = received(layout, wanted)
    assert judged is not None
    assert torch.equal(got[judged], wanted[judged])
    wanted[2 * PART] += 1
    for said in (tuple(digests(wanted).tolist()), layout.digests[:2]):
        with pytest.raises(HandedError, match="another than the one"):
            received(replace(layout, digests=said), wanted)


def test_an_output_that_has_changed_since_it_was_made_is_none(tmp_path: Path):
    with pytest.raises(HandedError, match="another than the one"):
        received(given_as(stored(tmp_path / "a", WANTED), digests=(int(digests(WANTED)) + 1,)), WANTED)


@pytest.mark.parametrize("dtype", ["Tensor", "nonsense", "float33", "__class__"])
def test_a_layout_that_no_tensor_has(dtype: str):
    with pytest.raises(HandedError):
        shell(Given((1 << 62, 1 << 62), dtype, (1, 1), ""))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["shape", "dtype", "strides"]), inner),
    max_leaves=12,
)


@given(JSON)
def test_whatever_is_said_of_outputs_is_a_layout_or_refused(values: object):
    try:
        outputs = outputs_of(values)
    except RefusedError:
        return
    for each in outputs:
        with suppress(HandedError):
            assert tuple(shell(each).shape) == each.shape


@given(st.integers(1, 1 << 33))
def test_blocks_are_apart_within_the_output_and_hold_its_ends(elements: int):
    blocks = blocks_of(elements)
    assert (blocks is None) == (elements <= WHOLE)
    if blocks is not None:
        assert len(blocks) == BLOCKS
        assert blocks[0][0] == 0
        assert sum(blocks[-1]) == elements
        assert all(sum(one) <= other[0] for one, other in pairwise(blocks))
        assert all(first % PART == 0 and count == min(PART, elements - first) for first, count in blocks)


@given(st.floats(0.001, 100.0), st.floats(0.0, 10.0), st.floats(0.0, 2.0), st.floats(0.0, 9.0), st.integers(1, 32))
def test_a_time_is_refused_only_beyond_what_launching_and_the_factor_explain(
    call_ms: float, digest_ms: float, launch_ms: float, answer_ms: float, calls: int
):
    def after(per_call_ms: float) -> Round:
        answers_ms = max(ROUND_MS, ANSWERS * min(answer_ms, SLOWEST_ANSWER_MS))
        return Round(calls, (calls * per_call_ms + answers_ms) / 1e3, answer_ms)

    true_ms, pace = call_ms + digest_ms, Pace(digest_ms, launch_ms)
    slack_ms = max(LAUNCH_MS, BUSY * launch_ms)
    assert time_finding(call_ms, pace, [after(true_ms + 0.99 * slack_ms), after(9 * true_ms + 9)], "k.py") is None
    assert time_finding(call_ms, pace, [after(1.01 * (FACTOR * true_ms + slack_ms))], "k.py") is not None
    assert time_finding(call_ms, pace, [], "k.py") is None


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=20))
def test_both_sides_make_the_same_word_of_digests_and_another_when_they_differ(parts: list[int]):
    assert word_of(parts) == int(word(torch.tensor(parts)))
    assert word_of(parts) != word_of([parts[0] ^ 1, *parts[1:]])
    if parts[0] != parts[-1]:
        assert word_of(parts) != word_of(parts[::-1])


def test_shapes_are_counted_exactly():
    assert prod(outputs_of([{"shape": [3, 0], "dtype": "float32", "strides": [1, 1]}])[0].shape) == 0


@given(st.floats(0.001, 0.5), st.floats(0.0005, 0.2), st.floats(0.0, 1.0), st.floats(0.0, 9.0), st.integers(1, 64))
def test_a_replay_is_refused_only_beyond_what_the_host_once_and_the_factor_explain(
    call_ms: float, digest_ms: float, least_ms: float, answer_ms: float, calls: int
):
    """A busy host makes the one launch and the one answer late, not each call."""

    def after(per_call_ms: float) -> Round:
        answers_ms = max(ROUND_MS, ANSWERS * min(answer_ms, SLOWEST_ANSWER_MS))
        return Round(calls, (calls * per_call_ms + answers_ms) / 1e3, answer_ms)

    true_ms, pace = call_ms + digest_ms, ReplayPace(digest_ms, least_ms)
    slack_ms = NODE_MS + BUSY * least_ms / calls
    beyond_ms = 1.01 * (FACTOR * call_ms + DIGEST_FACTOR * digest_ms + slack_ms)
    assert replay_finding(call_ms, pace, [after(true_ms + 0.99 * slack_ms), after(9 * true_ms + 9)], "k.py") is None
    assert replay_finding(call_ms, pace, [after(beyond_ms)], "k.py") is not None
    assert replay_finding(call_ms, pace, [], "k.py") is None


def test_a_claim_of_five_microseconds_for_fifty_is_seen_on_a_quiet_host_and_the_truth_is_not_refused_on_a_busy_one():
    quiet, busy = ReplayPace(0.003, 0.05), ReplayPace(0.2, 2.0)
    rounds = [Round(64, (64 * 0.053 + 0.3) / 1e3, 0.1)]
    assert replay_finding(0.005, quiet, rounds, "k.py") is not None
    late = [Round(64, (64 * 0.008 + delay_ms) / 1e3, 3.0) for delay_ms in (4.0, 8.0, 15.0)]
    assert replay_finding(0.005, busy, late, "k.py") is None


@pytest.mark.parametrize("shape", [(3000, 100), (4, PART), (PART + 1,), (2, 3), (0, 5), ()])
def test_digests_of_outputs_of_any_shape_are_those_of_their_elements_in_order(shape: tuple[int, ...]):
    output = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    made = digests(output)
    assert made.tolist() == digests(output.flatten()).tolist()
    assert made.numel() == -(-output.numel() // PART)
    room = digest_room(output, 2)
    digest_into(room[1], output)
    assert room.tolist() == [[0] * made.numel(), made.tolist()]
    assert digests(output.T.contiguous().T).tolist() == made.tolist() if output.dim() == 2 else True


DECLARING = """
import cutlass.cute as cute
import torch

LIBRARY_CALLS = ("torch.matmul",)


@cute.kernel
def scaled_kernel(x):
    pass


def forward(module, x):
    return torch.matmul(x, x)
"""
KERNELS = "import cutlass.cute as cute\n\n\n@cute.kernel\ndef scaled_kernel(x):\n    pass\n"


@pytest.mark.parametrize(
    ("source", "symbols", "refused"),
    [
        (KERNELS, ["kernel_cutlass_scaled_kernel_tensorptrf32_0", "vectorized_elementwise_kernel"], False),
        (KERNELS, ["sm90_xmma_gemm_f32f32"], True),
        (KERNELS, [], True),
        (DECLARING, ["sm90_gemm"], False),
        ("import torch\n", ["sm90_xmma_gemm"], False),
    ],
    ids=["its own", "a library's", "none", "a library's part is declared", "no kernel is declared"],
)  # fmt: skip
def test_a_file_whose_kernels_do_not_run_is_refused(tmp_path: Path, source: str, symbols: list[str], refused: bool):
    file = tmp_path / "scaled_cute.py"
    file.write_text(source)
    words, finding = launch_check(symbols, str(file))
    assert words.startswith(f"a call launches {len(symbols)} kernels")
    assert (finding is not None) is refused
    if finding is not None:
        assert "launches none of its kernels (scaled_kernel)" in finding.message


def test_a_busy_host_is_no_measurement_and_is_not_told_as_one():
    quiet, busy = Round(64, (64 * 0.02 + 0.3) / 1e3, 0.1), Round(64, (64 * 0.02 + 3.0) / 1e3, 3.0)
    assert replay_words([busy, quiet]) == "64 calls in a CUDA graph: 0.0169 to 0.0247 ms each, with a digest of it"
    assert replay_words([busy]) == "64 calls in a CUDA graph: 0.0000 to 0.0669 ms each, with a digest of it"
