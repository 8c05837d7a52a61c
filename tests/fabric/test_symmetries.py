"""Symmetries of fabrics: their check, those found against brute force, those that files name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import load_fabric, parse_wiring
from p2smt.fabric.symmetries import (
    Effort,
    FabricSymmetry,
    all_permutations,
    check_symmetry,
    fabric_symmetries,
    identity_of,
    symmetry_of_ranks,
)
from p2smt.fabric.wiring import fabric_of
from tests.fabric.oracle import every_symmetry, small_fabrics
from tests.strategies.draws import Draws, draws


def closure(fabric: Fabric, generators: Iterable[FabricSymmetry]) -> set[FabricSymmetry]:
    """All products of some symmetries."""
    generators, found = list(generators), [identity_of(fabric)]
    known = set(found)
    for element in found:
        for image in (one.after(element) for one in generators):
            if image not in known:
                known.add(image)
                found.append(image)
    return known


@given(small_fabrics())
def test_the_generators_make_all_symmetries(fabric: Fabric) -> None:
    assert closure(fabric, fabric_symmetries(fabric)) == set(every_symmetry(fabric))


@given(small_fabrics())
def test_a_reversal_is_found_where_there_is_one(fabric: Fabric) -> None:
    plain, turns = set(every_symmetry(fabric)), set(every_symmetry(fabric, reverses=True))
    assert closure(fabric, fabric_symmetries(fabric, reversing=True)) == plain | turns


@given(small_fabrics(), draws())
def test_ranks_can_be_held_and_products_kept(fabric: Fabric, data: Draws) -> None:
    every = sorted(every_symmetry(fabric), key=lambda one: (one.ranks, one.edges))
    other = data.draw(st.sampled_from(every))
    rank = data.draw(st.integers(0, fabric.ranks - 1))
    found = closure(fabric, fabric_symmetries(fabric, commuting=[other], fixed=[rank]))
    assert found == {
        one
        for one in every
        if one.ranks[rank] == rank and one.after(other).ranks == other.after(one).ranks
    }


@given(small_fabrics(), draws())
def test_a_map_is_accepted_if_and_only_if_it_is_a_symmetry(fabric: Fabric, data: Draws) -> None:
    ranks = tuple(data.draw(st.permutations(range(fabric.ranks))))
    edges = tuple(data.draw(st.permutations(range(len(fabric.edges)))))
    drawn = FabricSymmetry(ranks, edges, data.draw(st.booleans()))
    known = {*every_symmetry(fabric), *every_symmetry(fabric, reverses=True)}
    one = data.draw(st.sampled_from([drawn, *sorted(known, key=repr)]))
    if one in known:
        check_symmetry(fabric, one)
    else:
        with pytest.raises(InputError):
            check_symmetry(fabric, one)


@given(small_fabrics(), draws())
def test_a_symmetry_is_found_for_its_ranks(fabric: Fabric, data: Draws) -> None:
    ranks = tuple(data.draw(st.permutations(range(fabric.ranks))))
    found = symmetry_of_ranks(fabric, ranks)
    wanted = {one for one in every_symmetry(fabric) if one.ranks == ranks}
    assert (found is None) == (not wanted)
    assert found is None or found in wanted


@pytest.mark.parametrize(
    ("name", "order"),
    [("dgx1", 4), ("ring:8", 16), ("torus:4x4", 384), ("cube:3", 48), ("dgx1:2", 32)],
)
def test_orders_that_are_known(name: str, order: int) -> None:
    fabric = load_fabric(name)
    assert len(closure(fabric, fabric_symmetries(fabric))) == order


@pytest.mark.parametrize(
    ("name", "gpus", "nodes"), [("dgx2", 16, 1), ("dgx-a100:4", 8, 4), ("mi300x", 8, 1)]
)
def test_very_large_groups_are_found_by_few(name: str, gpus: int, nodes: int) -> None:
    """Any order of the GPUs of a node and of the nodes: one transposition a step is enough."""
    fabric = load_fabric(name)
    found = fabric_symmetries(fabric)
    for one in found:
        check_symmetry(fabric, one)
    assert len(found) < gpus * nodes
    assert _order(found, fabric.ranks) == factorial(gpus) ** nodes * factorial(nodes)


def _order(generators: Iterable[FabricSymmetry], ranks: int) -> int:
    """The order of a permutation group, by Schreier's generators along 0, 1, .. (Sims)."""
    images, order = {one.ranks for one in generators}, 1
    for point in range(ranks):
        takers = {point: tuple(range(ranks))}
        for at in (frontier := [point]):
            for image in images:
                if image[at] not in takers:
                    takers[image[at]] = tuple(image[rank] for rank in takers[at])
                    frontier.append(image[at])
        order *= len(takers)
        images = _reduced(_schreier(images, takers), ranks)
    return order


def _schreier(
    images: set[tuple[int, ...]], takers: dict[int, tuple[int, ...]]
) -> set[tuple[int, ...]]:
    found = set()
    for at, taker in takers.items():
        for image in images:
            back = takers[image[at]]
            inverse = {there: rank for rank, there in enumerate(back)}
            found.add(tuple(inverse[image[rank]] for rank in taker))
    return found


def _reduced(images: set[tuple[int, ...]], ranks: int) -> set[tuple[int, ...]]:
    """As few that generate the same group (Sims' filter): one a pair of first points."""
    table: dict[tuple[int, int], tuple[int, ...]] = {}
    for image in images:
        while (first := next((r for r in range(ranks) if image[r] != r), None)) is not None:
            known = table.setdefault((first, image[first]), image)
            if known is image:
                break
            inverse = {there: rank for rank, there in enumerate(known)}
            image = tuple(inverse[image[rank]] for rank in range(ranks))
    return set(table.values())


def test_without_effort_what_is_found_is_less_and_no_error() -> None:
    assert fabric_symmetries(load_fabric("dgx2"), effort=Effort(0)) == ()


SQUARE = """
name: square
ranks: 4
links:
  - {ranks: [0, 1], bandwidth: 2}
  - {ranks: [1, 2], bandwidth: 1}
  - {ranks: [2, 3], bandwidth: 2}
  - {ranks: [3, 0], bandwidth: 1}
network:
  ports: [{ranks: [0, 1, 2, 3], bandwidth: 1}]
symmetries: [[1, 0, 3, 2]]
"""


def test_symmetries_of_a_file_are_done_in_every_node() -> None:
    wiring = parse_wiring(SQUARE, "square")
    assert fabric_of(wiring).symmetries == ((1, 0, 3, 2),)
    pair = fabric_of(replace(wiring, nodes=2))
    assert pair.symmetries == ((1, 0, 3, 2, 5, 4, 7, 6),)
    assert pair.reversed().symmetries == pair.symmetries
    swap = replace(wiring, nodes=2, symmetries=((4, 5, 6, 7, 0, 1, 2, 3),))
    assert fabric_of(swap).symmetries == swap.symmetries


def test_symmetries_of_a_file_need_no_search() -> None:
    fabric = fabric_of(parse_wiring(SQUARE, "square"))
    (found,) = fabric_symmetries(fabric, effort=Effort(0))
    assert found.ranks == (1, 0, 3, 2)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("[1, 2, 3, 0]", "does not keep the bandwidths"),
        ("[1, 0, 2, 3]", "takes ranks 0 and 3 to 1 and 3, with 0 ways between them, not 1"),
        ("[0, 0, 1, 2]", "must name each of the ranks 0 to 3 once"),
        ("[1, 0]", "must name each of the ranks 0 to 3 once"),
    ],
)
def test_what_is_no_symmetry_is_refused(image: str, message: str) -> None:
    text = SQUARE.replace("[1, 0, 3, 2]", image)
    with pytest.raises(InputError, match=message):
        fabric_of(parse_wiring(text, "square"))


def test_all_permutations_are_two_generators_where_edges_are_alike() -> None:
    found = all_permutations(load_fabric("mesh:5"), reversing=True)
    assert [one.ranks for one in found] == [(1, 2, 3, 4, 0), (1, 0, 2, 3, 4), (0, 1, 2, 3, 4)]
    for one in found:
        check_symmetry(load_fabric("mesh:5"), one)
    fixed = all_permutations(load_fabric("mesh:5"), [2])
    assert [one.ranks for one in fixed] == [(1, 3, 2, 4, 0), (1, 0, 2, 3, 4)]


def test_not_all_permutations_of_a_fabric_with_unlike_edges() -> None:
    mesh = load_fabric("mesh:5")
    uneven = (replace(mesh.capacities[0], bandwidth=Fraction(2)), *mesh.capacities[1:])
    assert all_permutations(replace(mesh, capacities=uneven)) == ()
    assert all_permutations(load_fabric("ring:5")) == ()
