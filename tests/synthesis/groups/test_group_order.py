"""Groups and how they move chunks: actions of groups on the demand, from the largest to none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.errors import InputError
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import load_fabric
from p2smt.fabric.symmetries import FabricSymmetry, check_symmetry
from p2smt.problems.schedule import ChunkRoute, ScheduleSymmetry
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.solvers.ask import Solver
from p2smt.synthesis.group_order import ThresholdMemory, ThresholdStep, ladder, useful_tables
from p2smt.synthesis.schedule_replay import broken_rule, disseminate, dissemination_problem, spreads
from tests.fabric.oracle import small_fabrics
from tests.strategies.draws import Draws, draws

Moves = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]


def moved(one: ScheduleSymmetry, first: Moves) -> Moves:
    """What is moved as by ``first``, and then by a symmetry."""
    ranks, edges, chunks, reverses = first
    return (
        tuple(one.ranks[n] for n in ranks),
        tuple(one.edges[n] for n in edges),
        tuple(one.chunks[n] for n in chunks),
        reverses != one.reverses,
    )


def elements(fabric: Fabric, chunks: int, generators: Iterable[ScheduleSymmetry]) -> set[Moves]:
    """All products of symmetries of a schedule."""
    generators = list(generators)
    start = (tuple(range(fabric.ranks)), tuple(range(len(fabric.edges))), tuple(range(chunks)))
    found: list[Moves] = [(*start, False)]
    known = set(found)
    for element in found:
        for image in (moved(one, element) for one in generators):
            if image not in known:
                known.add(image)
                found.append(image)
    return known


def check_rungs(
    fabric: Fabric, rungs: list[ThresholdStep], routes: tuple[ChunkRoute, ...] | None, chunks: int
) -> None:
    """Every rung is an action of its group that keeps fabric and demand; the last is trivial."""
    orders = [group.order for group, _ in rungs]
    assert orders == sorted(orders, reverse=True)
    assert rungs[-1][0].order == 1
    assert rungs[-1][1] == ()
    for group, lifted in rungs:
        every = elements(fabric, chunks, lifted)
        assert len(every) == group.order
        assert len({(ranks, edges, turns) for ranks, edges, _, turns in every}) == group.order
        for one, base in zip(lifted, group.generators, strict=True):
            check_symmetry(fabric, base)
            assert FabricSymmetry(one.ranks, one.edges, one.reverses) == base
            assert sorted(one.chunks) == list(range(chunks))
            if routes is not None:
                assert not one.reverses
                check_demand(routes, one)


def check_demand(routes: tuple[ChunkRoute, ...], one: ScheduleSymmetry) -> None:
    for number, chunk in enumerate(routes):
        image = routes[one.chunks[number]]
        assert image.root == one.ranks[chunk.root]
        assert set(image.goals) == {one.ranks[goal] for goal in chunk.goals}


@pytest.mark.parametrize(
    ("name", "collective", "chunks", "root", "largest"),
    [
        ("dgx1", "allgather", 6, 0, 4),
        ("dgx1", "alltoall", 2, 0, 4),
        ("dgx1:2", "allgather", 7, 0, 32),
        ("dgx2", "allgather", 1, 0, 16),
        ("dgx2", "broadcast", 5, 3, 15),
        ("torus:4x4", "allgather", 4, 0, 64),
        ("torus:4x4", "alltoall", 1, 0, 16),
        ("torus:4x4", "broadcast", 4, 5, 4),
        ("ring:6", "scatter", 2, 2, 2),
        ("cube:3", "gather", 1, 7, 1),
        ("cube:3", "reduce_scatter", 3, 0, 24),
        ("ring:5", "reduce", 2, 1, 2),
    ],
)
def test_every_rung_moves_chunks_as_the_demand_allows(
    name: str, collective: str, chunks: int, root: int, largest: int
) -> None:
    fabric = load_fabric(name)
    copied = {"reduce_scatter": "allgather", "reduce": "broadcast"}.get(collective, collective)
    routes = spreads(copied, fabric.ranks, chunks, root)
    rungs = list(ladder(fabric, collective, chunks, root))
    assert rungs[0][0].order == largest
    check_rungs(fabric, rungs, routes, len(routes))


@settings(max_examples=20)
@given(small_fabrics(), st.sampled_from(["allgather", "alltoall"]), st.integers(1, 3))
def test_every_rung_on_small_fabrics(fabric: Fabric, collective: str, chunks: int) -> None:
    routes = spreads(collective, fabric.ranks, chunks)
    check_rungs(fabric, list(ladder(fabric, collective, chunks)), routes, len(routes))


@settings(max_examples=20)
@given(small_fabrics(), st.integers(1, 4))
def test_every_rung_of_all_reduce_on_small_fabrics(fabric: Fabric, chunks: int) -> None:
    check_rungs(fabric, list(ladder(fabric, "allreduce", chunks)), None, chunks)


@pytest.mark.parametrize(("chunks", "orders"), [(2, {8, 4, 2, 1}), (12, {8, 4, 2, 1})])
def test_all_reduce_on_a_dgx1_has_groups_that_reverse_time(chunks: int, orders: set[int]) -> None:
    fabric = load_fabric("dgx1")
    rungs = list(ladder(fabric, "allreduce", chunks))
    check_rungs(fabric, rungs, None, chunks)
    assert {group.order for group, _ in rungs} == orders
    assert {any(one.reverses for one in lifted) for group, lifted in rungs if group.order == 4} == {
        True,
        False,
    }


@pytest.mark.parametrize(
    ("name", "collective", "steps", "rounds", "chunks"),
    [
        ("dgx1", "allgather", 3, 7, 6),
        ("dgx1", "alltoall", 3, 3, 1),
        ("torus:4x4", "allgather", 4, 15, 4),
        ("torus:4x4", "alltoall", 4, 8, 1),
    ],
)
def test_the_orbit_of_a_large_group_is_lifted(
    name: str, collective: str, steps: int, rounds: int, chunks: int
) -> None:
    fabric = load_fabric(name)
    plain = dissemination_problem(fabric, spreads(collective, fabric.ranks, chunks), steps, rounds)
    for group, lifted in ladder(fabric, collective, chunks):
        found = disseminate(replace(plain, symmetries=lifted), SearchLimits(60))
        if found.value is not None:
            assert group.order > 1
            assert broken_rule(plain, found.value) is None
            return
    raise AssertionError("none found")


@settings(max_examples=20)
@given(small_fabrics(), st.sampled_from(["allgather", "alltoall"]), st.integers(1, 2), draws())
def test_solvers_agree_under_symmetries(
    fabric: Fabric, collective: str, steps: int, data: Draws
) -> None:
    chunks = data.draw(st.integers(1, 2))
    plain = dissemination_problem(
        fabric, spreads(collective, fabric.ranks, chunks), steps, data.draw(st.integers(steps, 4))
    )
    without = disseminate(plain).status
    for _, lifted in ladder(fabric, collective, chunks):
        problem = replace(plain, symmetries=lifted)
        found = disseminate(problem)
        assert found.status is disseminate(problem, solver=Solver.Z3).status
        assert without is Status.FEASIBLE or found.status is Status.INFEASIBLE


def test_a_collective_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="is none of"):
        list(ladder(load_fabric("dgx1"), "allsorts", 1))


def test_where_all_ranks_can_be_permuted_shifts_are_tried() -> None:
    """All pairs linked alike: all permutations are too many to list, and shifts are not."""
    fabric, routes = load_fabric("mesh:8"), spreads("alltoall", 8, 1)
    rungs = list(ladder(fabric, "alltoall", 1))
    check_rungs(fabric, rungs, routes, len(routes))
    assert [group.order for group, _ in rungs] == [8, 8, 4, 4, 2, 1]
    problem = dissemination_problem(fabric, routes, 1, 1)
    for _, symmetries in rungs[:2]:
        found = disseminate(replace(problem, symmetries=symmetries))
        assert found.value is not None
        assert broken_rule(problem, found.value) is None


@pytest.mark.parametrize("collective", ["broadcast", "allreduce", "allgather"])
def test_shifts_leave_the_root_and_turn_time_round(collective: str) -> None:
    fabric, chunks = load_fabric("mesh:8"), 2
    routes = None if collective == "allreduce" else spreads(collective, 8, chunks)
    rungs = list(ladder(fabric, collective, chunks))
    check_rungs(fabric, rungs, routes, chunks if routes is None else len(routes))
    assert rungs[0][0].order == {"broadcast": 7, "allreduce": 16, "allgather": 8}[collective]


def test_once_the_time_is_over_no_group_is_made() -> None:
    watch = StopWatch.start(SearchLimits(time_limit_s=0.0))
    assert [g.order for g, _ in ladder(load_fabric("torus:4x4"), "allgather", 1, 0, watch)] == [1]


@pytest.mark.parametrize("collective", ["allreduce", "allgather", "broadcast"])
def test_what_is_remembered_changes_no_ladder(collective: str) -> None:
    fabric, memory = load_fabric("cube:2"), ThresholdMemory()
    for chunks in (2, 1, 3):
        rungs = list(ladder(fabric, collective, chunks, 0, None, memory))
        assert rungs == list(ladder(fabric, collective, chunks))


def test_groups_are_sought_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And again where the time came before all were found."""
    asked: list[object] = []
    before = useful_tables

    def counted(*given: object, **named: object) -> object:
        asked.append(given)
        return before(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(f"{ladder.__module__}.useful_tables", counted)
    fabric, memory = load_fabric("ring:4"), ThresholdMemory()
    late = StopWatch.start(SearchLimits(time_limit_s=0))
    assert len(list(ladder(fabric, "allgather", 1, 0, late, memory))) == 1
    for chunks in (1, 2, 3):
        assert len(list(ladder(fabric, "allgather", chunks, 0, None, memory))) > 1
    assert len(asked) == 2
