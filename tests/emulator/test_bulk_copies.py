"""Bulk copies, by PTX: boxes of tensors of one to five dimensions, rows of bytes, reductions, other blocks, groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutesmith_evaluator.emulator.faults import FaultError
from ptx_kernels import kernel_text, run_kernel
from tensor_maps import aligned, box_of, encoded

SHARED = ".shared .align 1024 .b8 s[8192]; .shared .align 8 .b8 m[8];"
BEGIN = """
mov.u32 %r60, m; mov.u32 %r61, s; setp.ne.u32 %p1, %t, 0; mov.u32 %r50, %tid.x; setp.ne.u32 %p2, %r50, 0;
@!%p2 mbarrier.init.shared.b64 [%r60], 1; fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed; barrier.cluster.wait;
"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p9, [%r60], 0; @!%p9 bra W;"
EXPECT = "@!%p2 mbarrier.arrive.expect_tx.shared.b64 _, [%r60], {bytes};"
OUT = """
mov.u32 %r40, 0;
NEXT: setp.ge.u32 %p5, %r40, {bytes}; @%p5 bra DONE; mad.lo.u32 %r41, %r50, 16, %r40; add.u32 %r42, %r61, %r41;
setp.ge.u32 %p6, %r41, {bytes}; @%p6 bra SKIP; ld.shared.v4.b32 {{%r30, %r31, %r32, %r33}}, [%r42];
cvt.u64.u32 %x9, %r41; add.u64 %o, {out}, %x9; st.global.v4.b32 [%o], {{%r30, %r31, %r32, %r33}};
SKIP: add.u32 %r40, %r40, 512; bra NEXT; DONE:
"""
INWARD = ".shared::cluster.global"
COMPLETE = "mbarrier::complete_tx::bytes"


@st.composite
def boxes(draw: st.DrawFn) -> tuple[np.ndarray, list[int], list[int]]:
    """A tensor, the corner of a box, and the box."""
    dtype = draw(st.sampled_from([np.uint8, np.float16, np.float32]))
    unit = 16 // np.dtype(dtype).itemsize
    rank = draw(st.integers(1, 5))
    shape = [*(draw(st.integers(1, 5)) for _ in range(rank - 1)), unit * draw(st.integers(1, 3))]
    box = [unit * draw(st.integers(1, 2)), *(draw(st.integers(1, 3)) for _ in range(rank - 1))]
    corner = [draw(st.integers(-3, extent)) for extent in shape[::-1]]
    values = np.arange(1, 1 + int(np.prod(shape)), dtype=np.int64) % 251 + 1
    return values.astype(dtype).reshape(shape), corner, box


def placed(values: np.ndarray) -> np.ndarray:
    """At an address that is a multiple of 16."""
    return aligned(values.tobytes(), 16).view(values.dtype).reshape(values.shape)


@given(boxes())
@settings(max_examples=25, deadline=None)
def test_a_box_comes_with_zeros_for_what_lies_outside(drawn: tuple[np.ndarray, list[int], list[int]]) -> None:
    values, corner, box = drawn
    tensor = placed(values)
    size = int(np.prod(box)) * tensor.itemsize
    out = aligned(bytes(size))
    name = f"cp.async.bulk.tensor.{tensor.ndim}d{INWARD}.tile.{COMPLETE}"
    copy = f"@!%p2 {name} [%r61], [%a0, {{{', '.join(map(str, corner))}}}], [%r60];"
    body = BEGIN + EXPECT.format(bytes=size) + copy + WAIT + OUT.format(bytes=size, out="%a2")
    run_kernel(kernel_text(body, 3, before=SHARED), [encoded(tensor, box), tensor, out])
    want = box_of(tensor, corner, box)
    assert out.view(tensor.dtype).reshape(want.shape).tolist() == want.tolist()


@given(boxes(), st.booleans())
@settings(max_examples=15, deadline=None)
def test_a_box_goes_out_but_for_what_lies_outside(drawn: tuple[np.ndarray, list[int], list[int]], add: bool) -> None:
    values, corner, box = drawn
    add = add and values.dtype != np.uint8
    tensor = placed(values)
    size = int(np.prod(box)) * tensor.itemsize
    data = placed(np.arange(size // tensor.itemsize).astype(tensor.dtype))
    name = "cp.reduce.async.bulk" if add else "cp.async.bulk"
    form = f"{tensor.ndim}d.global.shared::cta.{'add.' if add else ''}tile.bulk_group"
    coordinates = f"{{{', '.join(map(str, corner))}}}"
    body = f"""
{BEGIN} {EXPECT.format(bytes=size)}
@!%p2 cp.async.bulk{INWARD}.{COMPLETE} [%r61], [%a2], {size}, [%r60]; {WAIT}
@!%p2 {name}.tensor.{form} [%a0, {coordinates}], [%r61];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
"""
    before = tensor.copy()
    run_kernel(kernel_text(body, 3, before=SHARED), [encoded(tensor, box), tensor, data])
    given_box = data.reshape(box[::-1])
    want = before.copy()
    for place in np.ndindex(*given_box.shape):
        index = tuple(start + step for start, step in zip(corner[::-1], place, strict=True))
        if all(0 <= each < extent for each, extent in zip(index, tensor.shape, strict=True)):
            want[index] = given_box[place] + (before[index] if add else 0)
    assert tensor.tolist() == want.tolist()


@pytest.mark.parametrize("swizzle", [1, 2, 3])
def test_swizzled_boxes(swizzle: int) -> None:
    """Within each row, the 16 bytes of a place are mixed with the number of the 128 bytes they lie in."""
    span = 16 << swizzle
    tensor = placed(np.arange(32 * span // 2, dtype=np.uint16).reshape(32, span // 2))
    size = tensor.nbytes
    out = aligned(bytes(size))
    copy = f"@!%p2 cp.async.bulk.tensor.2d{INWARD}.tile.{COMPLETE} [%r61], [%a0, {{0, 0}}], [%r60];"
    body = BEGIN + EXPECT.format(bytes=size) + copy + WAIT + OUT.format(bytes=size, out="%a2")
    run_kernel(kernel_text(body, 3, before=SHARED), [encoded(tensor, (span // 2, 32), swizzle), tensor, out])
    chunks = out.view(np.uint16).reshape(-1, 8)
    for number, want in enumerate(tensor.reshape(-1, 8).tolist()):
        row = number * 16 // 128
        assert chunks[number ^ (row & ((1 << swizzle) - 1))].tolist() == want


def test_multicast_reaches_every_block_that_is_named() -> None:
    data, out = placed(np.arange(16, dtype=np.uint32)), np.zeros((4, 16), np.uint32)
    body = f"""
{BEGIN} mov.u16 %h1, 13; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p3, %r1, 2; setp.eq.u32 %p4, %r1, 1;
@%p4 exit; {EXPECT.format(bytes=64)} @!%p3 bra {"W"};
@!%p2 cp.async.bulk{INWARD}.{COMPLETE}.multicast::cluster [%r61], [%a0], 64, [%r60], %h1;
{WAIT} mad.wide.u32 %x8, %r1, 64, %a1; {OUT.format(bytes=64, out="%x8")}
"""
    run_kernel(kernel_text(body, 2, before=SHARED), [data, out], grid=4, cluster=(4, 1, 1))
    assert out.tolist() == [[*range(16)], [0] * 16, [*range(16)], [*range(16)]]


def test_what_is_wrong_with_a_copy_is_said() -> None:
    data = placed(np.arange(16, dtype=np.uint32))
    copy = f"{BEGIN} {EXPECT.format(bytes=64)} @!%p2 cp.async.bulk{INWARD}.{COMPLETE} [%r61], [%a0+{{}}], {{}}, [%r60];"
    for offset, size, says in (
        (16, 64, "past the end of array 0"),
        (4, 48, "multiples of 16"),
        (0, 40, "multiples of 16"),
    ):
        with pytest.raises(FaultError, match=says):
            run_kernel(kernel_text(copy.format(offset, size), 1, before=SHARED), [data])


def test_shared_memory_is_read_until_the_group_is_waited_for() -> None:
    data = placed(np.arange(16, dtype=np.uint32))
    body = f"""
{BEGIN} {EXPECT.format(bytes=64)} @!%p2 cp.async.bulk{INWARD}.{COMPLETE} [%r61], [%a0], 64, [%r60]; {WAIT}
@!%p2 cp.async.bulk.global.shared::cta.bulk_group [%a0], [%r61], 64; cp.async.bulk.commit_group;
{{}} @!%p2 st.shared.b32 [%r61], 5;
"""
    run_kernel(kernel_text(body.format("cp.async.bulk.wait_group.read 0;"), 1, before=SHARED), [data])
    with pytest.raises(FaultError, match="a bulk store of warp 0 read") as caught:
        run_kernel(kernel_text(body.format("cp.async.bulk.wait_group.read 1;"), 1, before=SHARED), [data])
    assert caught.value.kind == "race"


@pytest.mark.parametrize("memory", ["global", "shared::cta"])
def test_a_kernel_changes_the_map_itself(memory: str) -> None:
    """Another tensor, with other extents and strides, at the place that the kernel is given."""
    first, other = placed(np.zeros((2, 8), np.uint32)), placed(np.arange(48, dtype=np.uint32).reshape(3, 16))
    tensor_map, out = encoded(first, (8, 4)), aligned(bytes(128))
    words = (f"ld.global.b64 %d1, [%a0+{byte}]; @!%p2 st.shared.b64 [%r62+{byte}], %d1;" for byte in range(0, 128, 8))
    copied = "\n".join(words) if memory == "shared::cta" else ""
    at = "%r62" if copied else "%a0"
    replaced = "\n".join(
        f"@!%p2 tensormap.replace.tile.{field}.{memory}.b1024.{kind} [{at}], {value};"
        for field, kind, value in (
            ("global_address", "b64", "%a1"),
            ("global_dim", "b32", "0, %r1"),
            ("global_dim", "b32", "1, %r2"),
            ("global_stride", "b64", "0, %d2"),
        )
    )
    back = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%a0], [%r62], 128;"
    load = f"cp.async.bulk.tensor.2d{INWARD}.tile.{COMPLETE} [%r61], [%a0, {{8, 1}}], [%r60]"
    body = f"""
{BEGIN} mov.u32 %r1, 16; mov.u32 %r2, 3; mov.u64 %d2, 64; add.u32 %r62, %r61, 1024;
{copied} {replaced} bar.warp.sync -1; {back if copied else ""}
fence.proxy.tensormap::generic.acquire.gpu [%a0], 128; {EXPECT.format(bytes=128)} @!%p2 {load};
{WAIT} {OUT.format(bytes=128, out="%a2")}
"""
    run_kernel(kernel_text(body, 3, before=SHARED), [tensor_map, other, out])
    assert out.view(np.uint32).reshape(4, 8)[:2].tolist() == other[1:, 8:].tolist()
    assert not out.view(np.uint32).reshape(4, 8)[2:].any()
