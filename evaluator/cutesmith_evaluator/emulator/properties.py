"""What an emulated device says of itself, by arch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Properties:
    """Sizes in bytes (CUDA C++ Programming Guide, compute capabilities; multiprocessors of the largest product)."""

    capability: tuple[int, int]
    multiprocessors: int
    shared_per_block: int
    shared_per_multiprocessor: int
    threads_per_multiprocessor: int = 2048
    blocks_per_multiprocessor: int = 32
    blocks_per_cluster: int = 1

    def attribute(self, number: int) -> int | None:
        """The value of a cudaDeviceAttr; None for one that nobody needed so far."""
        return {
            1: 1024,  # threads per block
            8: 48 << 10,  # shared memory per block without opting in
            10: 32,  # warp size
            12: 65536,  # registers per block
            16: self.multiprocessors,
            39: self.threads_per_multiprocessor,
            75: self.capability[0],
            76: self.capability[1],
            81: self.shared_per_multiprocessor,
            82: 65536,  # registers per multiprocessor
            97: self.shared_per_block,
            106: self.blocks_per_multiprocessor,
        }.get(number)

    def resident_blocks(self, threads: int, shared: int) -> int:
        """Blocks on a multiprocessor at once, by threads and shared memory; registers are not known here."""
        by_shared = self.shared_per_multiprocessor // (shared + 1024)
        return max(
            0, min(self.blocks_per_multiprocessor, self.threads_per_multiprocessor // max(threads, 1), by_shared)
        )


_PROPERTIES = {
    "sm_80": Properties((8, 0), 108, 163 << 10, 164 << 10),
    "sm_86": Properties((8, 6), 84, 99 << 10, 100 << 10, 1536, 16),
    "sm_89": Properties((8, 9), 142, 99 << 10, 100 << 10, 1536, 24),
    "sm_90": Properties((9, 0), 132, 227 << 10, 228 << 10, blocks_per_cluster=16),
}


def properties_of(arch: str) -> Properties | None:
    """Of "sm_90a"; None for an arch that is not emulated."""
    return _PROPERTIES.get(arch.rstrip("af"))
