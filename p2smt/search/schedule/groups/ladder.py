"""What to try in which order: groups of symmetries, from the largest of use down to none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice, zip_longest

from p2smt.cluster.fabric.fabric import Fabric
from p2smt.cluster.fabric.maps.generators import fabric_symmetries
from p2smt.cluster.fabric.maps.symmetry import FabricSymmetry
from p2smt.collectives.contract import RULES
from p2smt.problems.schedule import ChunkRoute, ScheduleSymmetry
from p2smt.search.schedule.dissemination import spreads
from p2smt.search.schedule.groups.lift import lifts
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

MAX_ORDER = 1024
"""Of a group whose elements are listed; of a larger one a part is used."""
MOST_OF_AN_ORDER = 4
MOST_WAYS = 3
_SAME_ROUTES = {"reduce_scatter": "allgather", "reduce": "broadcast"}


def ladder(fabric: Fabric, collective: str, chunks: int, root: int = 0) -> Iterator[LadderRung]:
    """Groups from the largest of use down to that without symmetries, the last one always.

    Each comes with symmetries of the chunks as :func:`.spreads` numbers them; those of
    reduce-scatter and reduce are the chunks of all-gather and broadcast, to which they are the
    reverse, on the fabric that is given.  The chunks of an all-reduce are 0, 1, .., and time may
    be reversed.  A group may come several times, with other ways to move the chunks.

    Raises:
        InputError: no collective that is known.
    """
    routes = _routes(fabric, collective, chunks, root)
    adds = collective == "allreduce"
    fixed = [root] if collective in RULES and RULES[collective].rooted else []
    table = useful_table(fabric, fixed, reversing=adds)
    traits = traits_of(table, fixed)
    for groups in _by_order(table, traits):
        ways = [lifts(fabric, table, group, routes, MOST_WAYS) for group in groups]
        yield from islice(_in_turn(table, groups, ways), MOST_OF_AN_ORDER)
    yield SymmetryGroup((), 1), ()


def _routes(fabric: Fabric, collective: str, chunks: int, root: int) -> Sequence[ChunkRoute]:
    """The chunks; those of an all-reduce are copies of a route that no symmetry changes."""
    if collective == "allreduce":
        return (ChunkRoute(-1, ()),) * chunks
    return spreads(_SAME_ROUTES.get(collective, collective), fabric.ranks, chunks, root)


def useful_table(fabric: Fabric, fixed: Sequence[int], *, reversing: bool) -> GroupTable:
    """The group of all symmetries that leave ``fixed``, or a part of it that is not too large."""
    generators = fabric_symmetries(fabric, fixed=fixed, reversing=reversing)
    whole = group_table(fabric, generators, MAX_ORDER)
    if whole is not None:
        return whole
    part: Sequence[FabricSymmetry] = commuting_group(
        fabric, [one for one in generators if not one.reverses], fixed
    )
    if reversing:
        part = [*part, *(one for one in fabric_symmetries(fabric, commuting=part, reversing=True)
                         if one.reverses)]  # fmt: skip
    return _largest(fabric, part)


def _largest(fabric: Fabric, generators: Sequence[FabricSymmetry]) -> GroupTable:
    """The group of these, or of the first of them if that of all is too large."""
    found = group_table(fabric, generators, MAX_ORDER)
    return _largest(fabric, generators[:-1]) if found is None else found


def _by_order(table: GroupTable, traits: Traits) -> Iterator[list[Subgroup]]:
    """The groups of use with more than one element, those of one order together."""
    found = []
    for group in subgroups_of_use(table, traits):
        found += [*with_reversal(table, traits, group), group]
    found = sorted((one for one in found if one != TRIVIAL), key=lambda one: -len(one))
    return (list(same) for _, same in groupby(found, key=len))


def _in_turn(
    table: GroupTable,
    groups: Sequence[Subgroup],
    ways: Sequence[Iterator[tuple[ScheduleSymmetry, ...]]],
) -> Iterator[LadderRung]:
    """The first way of each group, then the second of each."""
    for row in zip_longest(*ways):
        for group, way in zip(groups, row, strict=True):
            if way is not None:
                yield table.named(group), way
