"""Subgroups, actions on copies, and groups that leave no rank: against brute force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest

from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import load_fabric
from p2smt.fabric.symmetries import FabricSymmetry, fabric_symmetries
from p2smt.problems.schedule import ChunkRoute
from p2smt.result import Status
from p2smt.synthesis.group_order import (
    classes,
    commuting_group,
    copy_action,
    has_ways_left_alone,
    lifts,
    splits,
)
from p2smt.synthesis.schedule_replay import disseminate, dissemination_problem
from p2smt.synthesis.subgroups import TRIVIAL, GroupTable, Subgroup, all_subgroups, group_table


def whole(name: str) -> tuple[Fabric, GroupTable]:
    """A fabric with all its symmetries."""
    fabric = load_fabric(name)
    return fabric, table_of(fabric, fabric_symmetries(fabric))


def table_of(fabric: Fabric, generators: Sequence[FabricSymmetry]) -> GroupTable:
    """The table of a group that is small."""
    table = group_table(fabric, generators, 1024)
    assert table is not None
    return table


def closed_sets(table: GroupTable) -> set[Subgroup]:
    """All subgroups: the sets with the identity that products do not leave."""
    more = range(1, len(table.elements))
    sizes = range(len(more) + 1)
    sets = (frozenset({0, *some}) for size in sizes for some in combinations(more, size))
    return {s for s in sets if all(int(table.product[a, b]) in s for a in s for b in s)}


@pytest.mark.parametrize("name", ["ring:3", "ring:4", "mesh:3", "dgx1", "ring:5"])
def test_all_subgroups_are_found(name: str) -> None:
    _, table = whole(name)
    everything = frozenset(range(len(table.elements)))
    found = all_subgroups(table, everything)
    assert set(found) == closed_sets(table)
    assert [len(one) for one in found] == sorted(map(len, found), reverse=True)


def test_products_and_inverses_of_a_table() -> None:
    _, table = whole("cube:2")
    for a, one in enumerate(table.elements):
        for b, other in enumerate(table.elements):
            assert table.elements[int(table.product[a, b])] == one.after(other)
        assert int(table.product[a, table.inverse[a]]) == 0
    assert table.named(frozenset(range(8))).order == 8


def test_a_group_that_is_too_large_has_no_table() -> None:
    fabric = load_fabric("dgx2")
    assert group_table(fabric, fabric_symmetries(fabric), 1000) is None


def test_classes_hold_one_of_each() -> None:
    _, table = whole("mesh:3")  # the six orders of three ranks
    everything = frozenset(range(6))
    assert [len(one) for one in classes(table, everything)] == [1, 2, 3, 6]


def test_copies_are_split_into_orbits() -> None:
    _, table = whole("mesh:3")
    everything = frozenset(range(6))
    allowed = classes(table, everything)
    sizes = [[6 // len(one) for one in split] for split in splits(4, everything, allowed)]
    assert sizes == [[3, 1], [2, 2], [2, 1, 1], [1, 1, 1, 1]]
    for split in splits(4, everything, allowed):
        action = copy_action(table, everything, split).images
        for a in everything:
            for b in everything:
                both = tuple(action[a][copy] for copy in action[b])
                assert both == action[int(table.product[a, b])]


@pytest.mark.parametrize(
    ("name", "order"), [("dgx2", 16), ("dgx-h100:2", 16), ("mi300x", 8), ("dgx-a100:2", 16)]
)
def test_groups_that_leave_no_rank(name: str, order: int) -> None:
    fabric = load_fabric(name)
    generators = commuting_group(fabric, fabric_symmetries(fabric))
    table = table_of(fabric, generators)
    assert len(table.elements) == order
    for one in table.elements[1:]:
        assert all(image != rank for rank, image in enumerate(one.ranks))


def test_a_chunk_cannot_stay_where_its_way_must_move() -> None:
    """On a ring of 4 the reflection that keeps 0 and 2 swaps the two ways between them."""
    fabric, table = whole("ring:4")
    mirror = next(
        frozenset({0, n}) for n, one in enumerate(table.elements) if one.ranks == (0, 3, 2, 1)
    )
    across, beside = ChunkRoute(0, (2,)), ChunkRoute(0, (1, 3))
    assert not has_ways_left_alone(fabric, table, mirror, across)
    assert has_ways_left_alone(fabric, table, mirror, beside)
    assert has_ways_left_alone(fabric, table, TRIVIAL, across)
    assert list(lifts(fabric, table, mirror, [across], 3)) == []
    (one, *_) = lifts(fabric, table, mirror, [beside], 3)
    problem = dissemination_problem(fabric, (across,), 2, 2)
    still = replace(problem, symmetries=one)
    assert disseminate(problem).status is Status.FEASIBLE
    assert disseminate(still).status is Status.INFEASIBLE
