"""What to try in which order: groups of symmetries, from the largest of use down to none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, zip_longest

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.generators import fabric_symmetries
from p2smt.cluster.fabric.maps.search import Effort
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry
from p2smt.collectives.contract import RULES
from p2smt.problems.schedule import ChunkRoute, ScheduleSymmetry
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.schedule.dissemination import spreads
from p2smt.search.schedule.groups.even import even_groups
from p2smt.search.schedule.groups.lift import KnownLeavers, lifts
from p2smt.search.schedule.groups.regular import commuting_group
from p2smt.search.schedule.groups.subgroups import (
    TRIVIAL,
    Traits,
    subgroups_of_use,
    traits_of,
    with_reversal,
)
from p2smt.search.schedule.groups.table import (
    GroupTable,
    Subgroup,
    SymmetryGroup,
    group_table,
)

LadderRung = tuple[SymmetryGroup, tuple[ScheduleSymmetry, ...]]
"""A group, and generators of it that say how it moves chunks."""

_Tabled = tuple[GroupTable, Subgroup]
MAX_ORDER = 1024
"""Of a group whose elements are listed; of a larger one a part is used."""
MOST_OF_AN_ORDER = 4
MOST_WAYS = 3
_SAME_ROUTES = {"reduce_scatter": "allgather", "reduce": "broadcast"}


@dataclass(slots=True, eq=False)
class LadderMemory:
    """What the ladders of one fabric, collective and root have in common, whatever the chunks.

    ``groups``: those of use by their order; None: they were not sought to the end yet.
    """

    groups: list[list[_Tabled]] | None = None
    leavers: KnownLeavers = field(default_factory=dict)


def ladder(
    fabric: Fabric,
    collective: str,
    chunks: int,
    root: int = 0,
    watch: StopWatch | None = None,
    memory: LadderMemory | None = None,
) -> Iterator[LadderRung]:
    """Groups from the largest of use down to that without symmetries, the last one always.

    Each comes with symmetries of the chunks as :func:`.spreads` numbers them; those of
    reduce-scatter and reduce are the chunks of all-gather and broadcast, to which they are the
    reverse, on the fabric that is given.  The chunks of an all-reduce are 0, 1, .., and time may
    be reversed.  A group may come several times, with other ways to move the chunks.  Once the
    time of ``watch`` is over only that without symmetries comes.  ``memory``: of the same fabric,
    collective and root; what is in it is not sought again.

    Raises:
        InputError: no collective that is known.
    """
    routes = _routes(fabric, collective, chunks, root)
    adds = collective == "allreduce"
    fixed = [root] if collective in RULES and RULES[collective].rooted else []
    time = watch or StopWatch.start(SearchLimits())
    memory = LadderMemory() if memory is None else memory
    for groups in _groups(fabric, fixed, adds, time, memory):
        if time.expired():
            break
        ways = [lifts(fabric, *group, routes, MOST_WAYS, memory.leavers) for group in groups]
        yield from islice(_in_turn(groups, ways), MOST_OF_AN_ORDER)
    yield SymmetryGroup((), 1), ()


def _routes(fabric: Fabric, collective: str, chunks: int, root: int) -> Sequence[ChunkRoute]:
    """The chunks; those of an all-reduce are copies of a route that no symmetry changes."""
    if collective == "allreduce":
        return (ChunkRoute(-1, ()),) * chunks
    return spreads(_SAME_ROUTES.get(collective, collective), fabric.ranks, chunks, root)


def _groups(
    fabric: Fabric, fixed: Sequence[int], reversing: bool, time: StopWatch, memory: LadderMemory
) -> list[list[_Tabled]]:
    """The groups of use by their order; none where the time came."""
    if memory.groups is None:
        tables = useful_tables(fabric, fixed, reversing=reversing, watch=time)
        found = [] if time.expired() else _by_order(tables, fixed)
        if time.expired():
            return found
        memory.groups = found
    return memory.groups


def useful_tables(
    fabric: Fabric, fixed: Sequence[int], *, reversing: bool, watch: StopWatch | None = None
) -> tuple[GroupTable, ...]:
    """The group of all symmetries that leave ``fixed``, or parts of it that are not too large."""
    if even := even_groups(fabric, fixed, MAX_ORDER, reversing=reversing):
        return tuple(_largest(fabric, group) for group in even)
    effort = Effort(watch=watch)
    generators = fabric_symmetries(fabric, fixed=fixed, reversing=reversing, effort=effort)
    whole = group_table(fabric, generators, MAX_ORDER, watch)
    if whole is not None:
        return (whole,)
    part: Sequence[FabricSymmetry] = commuting_group(
        fabric, [one for one in generators if not one.reverses], fixed, watch
    )
    if reversing:
        more = fabric_symmetries(fabric, commuting=part, reversing=True, effort=Effort(watch=watch))
        part = [*part, *(one for one in more if one.reverses)]
    return (_largest(fabric, part),)


def _largest(fabric: Fabric, generators: Sequence[FabricSymmetry]) -> GroupTable:
    """The group of these, or of the first of them if that of all is too large."""
    found = group_table(fabric, generators, MAX_ORDER)
    return _largest(fabric, generators[:-1]) if found is None else found


def _by_order(tables: Sequence[GroupTable], fixed: Sequence[int]) -> list[list[_Tabled]]:
    """The groups of use with more than one element, those of one order together."""
    found: list[_Tabled] = []
    known: set[object] = set()
    for table in tables:
        traits = traits_of(table, fixed)
        every = _of_use(table, traits)
        found += [(table, one) for one in every if traits.kind(one) not in known]
        known |= {traits.kind(one) for one in every}
    found.sort(key=lambda one: -len(one[1]))
    return [list(same) for _, same in groupby(found, key=lambda one: len(one[1]))]


def _of_use(table: GroupTable, traits: Traits) -> list[Subgroup]:
    found = []
    for group in subgroups_of_use(table, traits):
        found += [*with_reversal(table, traits, group), group]
    return [one for one in found if one != TRIVIAL]


def _in_turn(
    groups: Sequence[_Tabled],
    ways: Sequence[Iterator[tuple[ScheduleSymmetry, ...]]],
) -> Iterator[LadderRung]:
    """The first way of each group, then the second of each."""
    for row in zip_longest(*ways):
        for (table, group), way in zip(groups, row, strict=True):
            if way is not None:
                yield table.named(group), way
