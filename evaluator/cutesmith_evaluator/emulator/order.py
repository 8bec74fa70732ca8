"""What happened before what, for kernels whose warps wait for each other in other ways than by whole blocks.

Every warp has a vector clock: how much it knows of each agent of its cluster. Agents are the warps themselves, the
`wgmma` of each warp group, the bulk stores of each warp, and the meeting points: barriers in memory, on behalf of the
bulk copies that complete there. An access is ordered after an earlier one if its warp knows of that one's agent as much
as the agent's clock was. A second vector holds what is known *and* fenced for the asynchronous proxy.

Coarser than threads: what one lane of a warp has waited for, the others know too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cutesmith_evaluator.emulator.memory import AccessFaultError

Array = np.ndarray[Any, np.dtype[Any]]

_WARP = 32
_CLOCK, _COLUMN = np.int64(32), np.int64(8)  # places of the parts of a stamp; the lane is lowest
_COLUMN_BITS, _LANE_BITS = np.int64(0xFFFFFF), np.int64(0xFF)
_SEVERAL = np.int64(0xFF)
_GROWTH = 16


@dataclass(frozen=True)
class Agent:
    """Somebody who accesses memory without a thread: its column, and the clock of the access. `warp`: who issued it."""

    warp: int
    column: int
    clock: int


class Order:
    """A Tracker. Warps are numbered through the batch, whose blocks come cluster by cluster."""

    def __init__(self, blocks: int, padded: int, cluster: int) -> None:
        self._warps = padded // _WARP
        self.group = cluster * self._warps  # warps of a cluster
        total = blocks * self._warps
        self._fixed = 3 * self.group  # columns: warps, their wgmma, their bulk stores; then meeting points
        self._own = np.arange(total) % self.group
        self._meetings = np.zeros(blocks // cluster, np.int64)  # of each cluster, so far
        self._room = _GROWTH
        columns = self._fixed + self._room
        self.known = np.zeros((2, total, columns), np.int32)  # known; known and fenced
        self.known[0, np.arange(total), self._own] = 1
        self._fenced = np.zeros_like(self.known)  # as it was at the warp's last fence
        self._met = np.zeros((2, blocks // cluster, self._room, columns), np.int32)  # what arrivals have brought
        self._passed = self._met.copy()  # what those learn that wait
        self._base = 0
        self._writer = self._reader = np.zeros(0, np.int64)
        self._reads = np.zeros((0, 0), np.int32)

    # Accesses of threads

    def watch(self, pieces: int, base: int) -> None:
        self._base = base
        self._writer, self._reader = np.zeros(pieces, np.int64), np.zeros(pieces, np.int64)
        self._reads = np.zeros((pieces, self._fixed), np.int32)  # the clock of each agent's last read

    def note_reads(self, pieces: Array, threads: Array, addresses: Array) -> None:
        warps, stamps = self._stamps(threads)
        self._check_writer(pieces, warps, stamps, addresses, "reads")
        now = np.broadcast_to(stamps[:, None], pieces.shape)
        before = self._reader[pieces]
        mixed = ((before | _LANE_BITS) == (now | _LANE_BITS)) & (before != now)
        self._reader[pieces] = now = np.where(mixed, now | _SEVERAL, now)
        last = self._reader[pieces]
        together = last != now  # several lanes read the piece at once
        self._reader[pieces[together]] = last[together] | _SEVERAL
        self._reads[pieces, self._own[warps][:, None]] = (stamps >> _CLOCK)[:, None]

    def note_writes(self, pieces: Array, threads: Array, addresses: Array) -> None:
        warps, stamps = self._stamps(threads)
        self._check_writer(pieces, warps, stamps, addresses, "writes")
        self._check_readers(pieces, warps, stamps, addresses)
        self._writer[pieces] = np.broadcast_to(stamps[:, None], pieces.shape)

    def _stamps(self, threads: Array) -> tuple[Array, Array]:
        warps = threads // _WARP
        own = self._own[warps]
        clocks = self.known[0, warps, own].astype(np.int64)
        return warps, (clocks << _CLOCK) | (own << _COLUMN) | (threads % _WARP)

    def stamp(self, warp: int) -> int:
        """Of something that the warp does now."""
        own = int(self._own[warp])
        return int(self.known[0, warp, own]) << int(_CLOCK) | own << int(_COLUMN)

    def unknown(self, warps: Array, stamps: Array) -> Array:
        """Where the warp does not know of what was stamped."""
        return (stamps >> _CLOCK) > self.known[0, warps, (stamps >> _COLUMN) & _COLUMN_BITS]

    def _check_writer(self, pieces: Array, warps: Array, stamps: Array, addresses: Array, verb: str) -> None:
        writer = self._writer[pieces]
        if not writer.any():
            return
        column = (writer >> _COLUMN) & _COLUMN_BITS
        known = self.known[0][warps[:, None], column]
        now = stamps[:, None]
        own_other_lane = ((writer | _LANE_BITS) == (now | _LANE_BITS)) & (writer != now)
        self._raise_race(((writer >> _CLOCK) > known) | own_other_lane, column, addresses, f"{verb} {{}} wrote")

    def _check_readers(self, pieces: Array, warps: Array, stamps: Array, addresses: Array) -> None:
        late = self._reads[pieces] > self.known[0, warps, : self._fixed][:, None, :]
        if late.any():
            self._raise_race(late.any(axis=2), late.argmax(axis=2), addresses, "writes {} read")
        reader, now = self._reader[pieces], stamps[:, None]
        other_lane = ((reader | _LANE_BITS) == (now | _LANE_BITS)) & (reader != now)
        self._raise_race(other_lane, (reader >> _COLUMN) & _COLUMN_BITS, addresses, "writes {} read")

    def _raise_race(self, racing: Any, columns: Array, addresses: Array, words: str) -> None:
        if racing.any():
            access, piece = (int(place[0]) for place in np.nonzero(racing))
            raise self._race(int(columns[access, piece]), words, int(addresses[access]), access)

    def _race(self, column: int, words: str, address: int, position: int) -> AccessFaultError:
        where = f"shared memory at offset {(address & 0xFFFFFF) - self._base}, which {self._named(column)}"
        return AccessFaultError("race", f"{words.format(where)} with no wait or barrier in between", position, address)

    def _named(self, column: int) -> str:
        kind, number = divmod(column, self.group)
        block, warp = divmod(number, self._warps)
        of = f"warp {warp}" + (f" of block {block} of the cluster" if self.group > self._warps else "")
        if column >= self._fixed:
            return "a bulk copy"
        return (of, f"a wgmma of the group of {of}", f"a bulk store of {of}")[kind]

    # Accesses of the asynchronous proxy

    def wgmma(self, warp: int, group: int) -> Agent:
        """Of the whole warp group: who has waited for it knows that all four warps' parts are done."""
        first = warp - warp % self._warps % 4
        return Agent(warp, self.group + int(self._own[first]), group)

    def bulk_store(self, warp: int, group: int) -> Agent:
        return Agent(warp, 2 * self.group + int(self._own[warp]), group)

    def bulk_load(self, warp: int, meeting: int, phase: int) -> Agent:
        return Agent(warp, self._fixed + meeting, phase)

    def async_write(self, pieces: Array, agent: Agent, address: int, position: int) -> None:
        """`pieces`: of the whole access; `position`: of the issuing thread among those that run."""
        known = self.known[0, agent.warp]
        self._check_async(self._writer[pieces], known, "writes {} wrote", address, position)
        late = (self._reads[pieces] > known[: self._fixed]).any(axis=0)
        if late.any():
            raise self._race(int(np.flatnonzero(late)[0]), "lets a bulk copy write {} read", address, position)
        self._writer[pieces] = (agent.clock << int(_CLOCK)) | (agent.column << int(_COLUMN))

    def async_read(self, pieces: Array, agent: Agent, address: int, position: int) -> None:
        writer = self._writer[pieces]
        self._check_async(writer, self.known[0, agent.warp], "reads {} wrote", address, position)
        column = (writer >> _COLUMN) & _COLUMN_BITS
        unfenced = (column < self.group) & ((writer >> _CLOCK) > self.known[1, agent.warp][column])
        if unfenced.any():
            who = self._named(int(column[unfenced][0]))
            offset = (address & 0xFFFFFF) - self._base
            words = (
                f"reads shared memory at offset {offset} through the asynchronous proxy, which {who} wrote by ordinary "
                "stores with no fence.proxy.async after them"
            )
            raise AccessFaultError("missing-proxy-fence", words, position, address)
        self._reads[pieces, agent.column] = agent.clock

    def _check_async(self, writer: Array, known: Array, words: str, address: int, position: int) -> None:
        column = (writer >> _COLUMN) & _COLUMN_BITS
        late = (writer >> _CLOCK) > known[column]
        if late.any():
            raise self._race(int(column[late][0]), words, address, position)

    def complete(self, agent: Agent) -> None:
        """The issuing warp has waited for the agent's accesses."""
        clock = self.known[0, agent.warp, agent.column]
        self.known[0, agent.warp, agent.column] = max(int(clock), agent.clock)

    # Who learns from whom

    def pass_block_barrier(self, blocks: Array) -> None:
        rows = self.known.reshape(2, -1, self._warps, self.known.shape[2])
        rows[:, blocks] = rows[:, blocks].max(axis=2, keepdims=True)
        self._tick((blocks[:, None] * self._warps + np.arange(self._warps)).reshape(-1))

    def pass_barrier(self, threads: Array) -> None:
        """`threads`: those that leave barriers together, block by block."""
        warps = np.unique(threads // _WARP)
        for block in np.unique(warps // self._warps):
            members = warps[warps // self._warps == block]
            self.known[:, members] = self.known[:, members].max(axis=1, keepdims=True)
        self._tick(warps)

    def pass_warp_barrier(self, threads: Array) -> None:
        self._tick(np.unique(threads // _WARP))

    def fence(self, threads: Array, *, proxy: bool) -> None:
        warps = np.unique(threads // _WARP)
        if proxy:
            self.known[1, warps] = np.maximum(self.known[1, warps], self.known[0, warps])
        self._fenced[:, warps] = self.known[:, warps]
        self._tick(warps)

    def new_meeting(self, block: int) -> int:
        """A meeting point of the block's cluster, by number there."""
        cluster = block * self._warps // self.group
        number = int(self._meetings[cluster])
        self._meetings[cluster] += 1
        if number >= self._room:
            self._grow()
        return number

    def arrive(self, block: int, meeting: int, warp: int, *, relaxed: bool = False) -> None:
        """What the warp knows is handed on. `block`: any of the cluster."""
        known = self._fenced if relaxed else self.known
        met = self._met[:, block * self._warps // self.group, meeting]
        np.maximum(met, known[:, warp], out=met)
        self._tick(np.array([warp]))

    def meet(self, block: int, meeting: int, phase: int) -> None:
        """All have arrived: phase number `phase`, from 1, is complete."""
        cluster = block * self._warps // self.group
        passed = self._passed[:, cluster, meeting]
        np.maximum(passed, self._met[:, cluster, meeting], out=passed)
        passed[0, self._fixed + meeting] = phase
        self._met[:, cluster, meeting] = 0

    def learn(self, block: int, meeting: int, warp: int) -> None:
        """The warp has seen the phase complete."""
        known = self.known[:, warp]
        np.maximum(known, self._passed[:, block * self._warps // self.group, meeting], out=known)

    def _tick(self, warps: Array) -> None:
        self.known[0, warps, self._own[warps]] += 1

    def _grow(self) -> None:
        more = ((0, 0), (0, 0), (0, _GROWTH))
        self.known, self._fenced = np.pad(self.known, more), np.pad(self._fenced, more)
        wider = ((0, 0), (0, 0), (0, _GROWTH), (0, _GROWTH))
        self._met, self._passed = np.pad(self._met, wider), np.pad(self._passed, wider)
        self._room += _GROWTH
