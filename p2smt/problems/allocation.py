"""Which hosts get which cells of a grid?  The question as plain integers.

Hosts under the same switches form a *pool*: nodes are all alike.
Cells come in *blocks* of as many cells each; an answer says how many cells of each block lie in
each pool.  With blocks of one cell that is where every cell lies, and the loads are exact.  With
larger blocks (the groups of one axis, say) only counts are asked for, and the loads are what any
order of the cells puts on the uplinks at least: a relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.errors import InputError

Counts = tuple[tuple[int, ...], ...]
"""How many cells of each block (row) lie in each pool (column)."""


@dataclass(frozen=True, slots=True)
class Messages:
    """A load by messages from block to block: ``edges`` are (from, to, how many of each cell).

    Out of an entity go at least as many as the first block has more cells in it than the second,
    into it the reverse; the larger sum of the two is the load of its uplink.
    """

    edges: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """A load by how many cells of a group an entity holds: ``sent[n]`` for n cells, per group.

    ``groups`` are of blocks; ``sent`` begins and ends with 0.  The sum over groups is the load.
    """

    groups: tuple[tuple[int, ...], ...]
    sent: tuple[int, ...]


Load = Messages | Shares


@dataclass(frozen=True, slots=True)
class UplinkTicks:
    """What an entity's load costs: ``ticks[v]`` for the load v, not falling; beyond: the last.

    ``load`` is the index of the load that it carries.
    """

    load: int
    ticks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WayTicks:
    """One way to carry out a request: the largest of these in ticks.

    ``least`` whatever the answer, and what the load of each entity costs (None: its uplink does not
    matter).
    """

    least: int
    uplinks: tuple[UplinkTicks | None, ...]


@dataclass(frozen=True, slots=True)
class FixedCounts:
    """A side constraint: so many cells of these blocks together lie in each pool."""

    blocks: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AllocationProblem:
    """Cells in pools at least cost.

    ``pools`` are numbers of hosts, ``entities`` the pools under each switch, ``members`` the cells
    of each of ``blocks`` blocks.  ``requests`` are the ways of each, of which the cheapest runs;
    the objective is the sum over requests, or (``worst``) the largest.  ``mirrored``: the order of
    the blocks can be reversed without changing any load; ``alike``: they can be exchanged at will.
    ``held`` and ``at_most`` restrict the answers, ``start`` is one to begin with.
    """

    pools: tuple[int, ...]
    entities: tuple[tuple[int, ...], ...]
    blocks: int
    members: int
    loads: tuple[Load, ...]
    requests: tuple[tuple[WayTicks, ...], ...]
    worst: bool = False
    mirrored: bool = False
    alike: bool = False
    held: tuple[FixedCounts, ...] = ()
    at_most: int | None = None
    start: Counts | None = None

    def __post_init__(self) -> None:
        cells, hosts = self.blocks * self.members, sum(self.pools)
        if min(self.blocks, self.members, *self.pools) < 1 or cells > hosts:
            raise InputError(f"{cells} cells on {hosts} hosts", "each needs a host of its own")
        if not self.requests or not all(self.requests):
            raise InputError("a request without a way", "needs at least one")
        for way in (way for ways in self.requests for way in ways):
            self._check(way)

    def _check(self, way: WayTicks) -> None:
        if len(way.uplinks) != len(self.entities):
            raise InputError("ticks of a way", "need one entry for each entity")
        for uplink in way.uplinks:
            if uplink is not None and list(uplink.ticks) != sorted(uplink.ticks):
                raise InputError("ticks of an uplink", "must not fall with the load")

    @property
    def idle(self) -> int:
        """Hosts that get no cell."""
        return sum(self.pools) - self.blocks * self.members


def least_parts(problem: AllocationProblem, entity: int, moved: int) -> int:
    """Blocks that an entity holds in part at least, if so many cells enter and leave it at most.

    For blocks in a chain along which every cell has a message.  More than there are blocks: it
    cannot be.
    """
    hosts = sum(problem.pools[p] for p in problem.entities[entity])
    held = range(max(0, hosts - problem.idle), min(hosts, problem.blocks * problem.members) + 1)
    return min(parts_held(problem.blocks, problem.members, c, moved) for c in held)


def parts_held(blocks: int, members: int, cells: int, moved: int) -> int:
    """The same for an entity that holds so many cells of all blocks together.

    With fewer than a block's members moved the counts lie within ``moved`` of each other: none of
    them is whole, or none is 0, or all are parts.
    """
    missing = blocks * members - cells
    if not cells or not missing:
        return 0
    if moved >= members:
        return 1 if cells % members else 0
    if not moved:
        return blocks if cells % blocks == 0 else blocks + 1
    return min(-(-cells // moved), -(-missing // moved), blocks)
