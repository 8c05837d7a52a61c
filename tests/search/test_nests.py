"""The cheapest nest, against brute force; no answer beyond the range of the proof is worse."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.cluster.topology import Algorithm, Level, Link, LinkKind, Piece, Topology
from p2smt.collectives.demand import demand_of, plain_kind
from p2smt.collectives.names import Collective, Form, RequestKind
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import chunk_counts
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem, Request, parse_axes
from p2smt.problems.placement import InstructionSet, ProgramProblem
from p2smt.programs.check import check_program
from p2smt.programs.program import Grouping, Hierarchy
from p2smt.result import SearchLimits, Status
from p2smt.search import nests
from p2smt.search.nests import Cost, priced_nest
from p2smt.search.one_request import answer_request, best_merged_levels
from p2smt.search.program_synthesis import Task
from p2smt.search.programs_pipelined import Catalogs, SoughtProgram
from p2smt.search.warm_start import RowCounts, known_programs, least_known
from p2smt.solvers.ask import Solver
from tests.oracles.nests import Block, least_limited_nest, least_nest, tilings
from tests.strategies.clusters import switches
from tests.tiers import examples_of

KINDS = [kind for kind in RequestKind if kind.has_programs]
OVER = SearchLimits(time_limit_s=0.0)


def best_nest(problem: ProgramProblem, cost: Cost) -> nests._Nest | None:
    """The cheapest nest that the problem allows, the shortest of equal ones, and its seconds.

    None: the restrictions allow none.  Beyond the bounds of the search (`MAX_STATES`) it is the
    cheapest that is known, and None says that none of those is allowed.
    """
    found = nests._nests(problem, 1).best_of_each_length(cost)
    return nests._least(found) if found else None


def task(kind: RequestKind, factors: tuple[int, ...], length: int) -> Task:
    return Task(kind, Hierarchy.plain(factors), length)


@settings(max_examples=examples_of(250))
@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(2, 3), min_size=1, max_size=5),
    st.integers(1, 9),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_no_nest_is_cheaper_at_any_prices(
    kind: RequestKind, factors: list[int], length: int, seed: int, steady: bool
) -> None:
    """Prices of steps may have nothing to do with each other, as where a library chooses badly."""
    asked = task(kind, tuple(factors), length)
    problem, dice = asked.problem(), random.Random(seed)
    each = {number: dice.random() for number in range(len(problem.instructions.items))}

    @cache
    def cost(number: int, rows: int) -> float:
        return each[number] * rows if steady else random.Random(f"{seed} {number} {rows}").random()

    numbers = {item: number for number, item in enumerate(problem.instructions.items)}

    def price(collective: Collective, block: Block, rows: int) -> float:
        return cost(numbers[collective, Grouping(*block)], rows)

    found, least = best_nest(problem, cost), least_nest(kind, tuple(factors), length, price)
    assert found is not None  # the single collective is one
    indices, seconds = found
    assert len(indices) <= length
    assert seconds <= least * (1 + 1e-12)  # gathers may take other blocks than scatters
    checked = check_program(demand_of(kind), asked.hierarchy, asked.program(problem, indices))
    assert checked.trace.violation is None
    rows = RowCounts(problem.demand, problem.factors, problem.instructions.items)
    payloads = rows.payloads(indices)
    assert payloads == checked.trace.payload_rows
    total = sum(cost(i, n) for i, n in zip(indices, payloads or (), strict=True))
    assert seconds == pytest.approx(total)


@pytest.mark.parametrize("kind", KINDS)
def test_programs_known_beforehand_are_nests(kind: RequestKind) -> None:
    """Where one of them is free and nothing else is, it is found."""
    asked = task(kind, (2, 3, 2, 2), 7)
    problem = asked.problem()
    rows = RowCounts(problem.demand, problem.factors, problem.instructions.items)
    for program in known_programs(problem):
        free = set(zip(program, rows.payloads(program) or (), strict=True))
        found = best_nest(problem, lambda *key, free=free: 0.0 if key in free else 1.0)
        assert found is not None
        assert found[1] == 0.0


def test_of_equal_nests_the_shortest_is_taken() -> None:
    asked = task(RequestKind.ALL_REDUCE, (2, 2, 2), 7)
    found = best_nest(asked.problem(), lambda _, __: 0.0)
    assert found is not None
    assert len(found[0]) == 1


def test_restrictions_hold() -> None:
    asked = task(RequestKind.ALL_REDUCE, (2, 2, 2), 7)

    def cost(number: int, rows: int) -> float:
        """Small steps are cheap: five steps are best."""
        _, grouping = asked.problem().instructions.items[number]
        return rows * (100.0 if grouping.inner - grouping.outer > 1 else 10.0**-grouping.outer)

    def texts(one: Task) -> list[str]:
        found = best_nest(one.problem(), cost)
        return (
            []
            if found is None
            else [str(i) for i in one.program(one.problem(), found[0]).instructions]
        )

    assert len(texts(asked)) == 5
    assert len(texts(replace(asked, max_length=3))) == 3
    inside = replace(asked, forbidden_forms=frozenset({Form.PARALLEL}))
    assert texts(inside) == ["all-reduce inside root"]
    once = replace(asked, step_limits=(("l1", 1),))
    hierarchy = asked.hierarchy
    assert texts(once)
    assert sum("root" in text for text in texts(once)) == 1
    assert texts(replace(asked, step_limits=(("l1", 0),))) == []
    twice = replace(asked, step_limits=(("l2", 2), ("l1", 1)))
    crossing = [t for t in texts(twice) if "inside l2" not in t]
    assert 0 < len(crossing) <= 2
    assert hierarchy.depth == 3


# Limits on the steps across levels ---------------------------------------------------------------


def limited(asked: Task, limits: Sequence[int]) -> Task:
    """With a limit for each level from the outermost on."""
    return replace(asked, step_limits=tuple((f"l{j}", n) for j, n in enumerate(limits, start=1)))


def obeys(problem: ProgramProblem, indices: Sequence[int]) -> bool:
    counts = [sum(i in limit.instructions for i in indices) for limit in problem.limits]
    return all(n <= one.at_most for n, one in zip(counts, problem.limits, strict=True))


@settings(max_examples=examples_of(600))
@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(2, 3), min_size=1, max_size=4),
    st.integers(1, 8),
    st.lists(st.integers(0, 7), min_size=4, max_size=4),
    st.integers(0, 2**32),
)
def test_limits_on_every_level_leave_the_cheapest_that_obeys(
    kind: RequestKind, factors: list[int], length: int, most: list[int], seed: int
) -> None:
    limits = most[: len(factors)]
    asked = limited(task(kind, tuple(factors), length), limits)
    problem = asked.problem()
    numbers = {item: number for number, item in enumerate(problem.instructions.items)}

    @cache
    def cost(number: int, rows: int) -> float:
        return random.Random(f"{seed} {number} {rows}").random()

    def price(collective: Collective, block: Block, rows: int) -> float:
        return cost(numbers[collective, Grouping(*block)], rows)

    found = best_nest(problem, cost)
    least = least_limited_nest(kind, tuple(factors), length, price, limits)
    assert (found is None) == (least == math.inf)
    if found is not None:
        assert found[1] == pytest.approx(least)
        assert len(found[0]) <= length
        assert obeys(problem, found[0])
        checked = check_program(
            demand_of(kind), asked.hierarchy, asked.program(problem, found[0])
        ).trace
        assert checked.violation is None
        total = sum(map(cost, found[0], checked.payload_rows))
        assert found[1] == pytest.approx(total)


@cache
def any_cost(number: int, rows: int) -> float:
    """Has nothing to do with what the step is; small steps cost less."""
    return rows * random.Random(f"{number} {rows}").random()


def test_a_limit_that_all_levels_share_is_one_on_the_length() -> None:
    asked = task(RequestKind.ALL_REDUCE, (2,) * 8, 9)
    found = best_nest(limited(asked, [4] * 8).problem(), any_cost)
    free = best_nest(asked.problem(), any_cost)
    assert found is not None
    assert free is not None
    assert len(found[0]) <= 4 < len(free[0])
    assert found == best_nest(replace(asked, max_length=4).problem(), any_cost)


def test_eight_levels_have_a_limit_each() -> None:
    problem = limited(task(RequestKind.ALL_REDUCE, (2,) * 8, 9), range(1, 9)).problem()
    found, known = best_nest(problem, any_cost), least_known(problem, any_cost)
    assert found is not None
    assert known is not None
    assert obeys(problem, found[0])
    assert found[1] <= known[1]


def test_limits_that_forbid_all_leave_none() -> None:
    for kind in KINDS:
        asked = task(kind, (2, 2), 5)
        assert best_nest(limited(asked, [0, 0]).problem(), any_cost) is None
        every = frozenset(range(len(asked.problem().instructions.items)))
        assert best_nest(replace(asked.problem(), forbidden=every), any_cost) is None


@pytest.mark.parametrize("bound", ["MAX_STATES", "MAX_VISITS"])
def test_beyond_a_bound_the_cheapest_known_program_stands_in(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = limited(task(RequestKind.ALL_REDUCE, (2, 3, 2, 2), 7), [2, 3, 4, 6]).problem()
    exact = best_nest(problem, any_cost)
    known = least_known(problem, any_cost)
    monkeypatch.setattr(nests, bound, 100)
    found = best_nest(problem, any_cost)
    assert exact is not None
    assert found is not None
    assert found == known
    assert exact[1] < found[1]


# On real scenes --------------------------------------------------------------------------------


def topology(library: str, kinds: str, seed: int, depth: int) -> Topology:
    """Levels of two, the rates of whose links grow inwards; ``kinds``: which are rings."""
    dice, rate, levels = random.Random(seed), 1e9, []
    for j in range(depth):
        kind = LinkKind.RING if kinds[j % len(kinds)] == "r" and j > depth // 2 else LinkKind.SWITCH
        fabric = "infiniband" if j < depth // 2 else "nvlink4"
        piece = Piece("simple", dice.choice([0.0, 1e-6, 5e-6]), rate)
        levels.append(Level(f"l{j}", 2, Link(kind, (piece,), fabric=fabric)))
        rate *= dice.choice([1.0, 1.5, 2.0, 4.0])
    return Topology("t", tuple(levels)).under(library)


def scene_of(one: Topology) -> Scene:
    return Scene.of(one, Placement((one.sizes,)), (0,))


def least_on(scene: Scene, kind: RequestKind, length: int, payload: int) -> float:
    """Of all nests, priced step by step on the scene."""
    size = scene.hierarchy.size

    @cache
    def price(collective: Collective, block: Block, rows: int) -> float:
        return scene.step_time(collective, Grouping(*block), payload * rows / size).seconds

    return least_nest(kind, scene.hierarchy.factors, length, price)


@settings(max_examples=examples_of(60))
@given(
    kind=st.sampled_from(KINDS),
    library=st.sampled_from(["", "", "nccl-2.30", "rccl", "gloo"]),
    kinds=st.sampled_from(["s", "sr", "r"]),
    depth=st.integers(6, 8),
    length=st.integers(7, 9),
    seed=st.integers(0, 2**32),
    payload=st.sampled_from([2**16, 2**24, 2**30]),
)
def test_no_answer_of_many_levels_is_worse_than_a_nest(
    kind: RequestKind, library: str, kinds: str, depth: int, length: int, seed: int, payload: int
) -> None:
    """Even where there is no time for anything else."""
    one = topology(library, kinds, seed, depth)
    scene, axes = scene_of(one), parse_axes(f"dp={2**depth}")
    request = Request(kind, ("dp",), payload)
    problem = Problem(one, axes, (request,), max_length=length)
    found = answer_request(problem, request, scene, OVER, Solver.CPSAT, Catalogs())
    assert found is not None
    assert found.program is not None
    assert found.seconds <= least_on(scene, kind, length, payload) * (1 + 1e-9)
    assert found.bound_s <= found.seconds <= found.single_s * (1 + 1e-9)
    checked = check_program(demand_of(kind), found.hierarchy, found.program)
    assert checked.trace.violation is None


@pytest.mark.exhaustive
@pytest.mark.parametrize("library", ["", "nccl-2.30"])
def test_solve_with_all_its_time_is_no_worse(library: str) -> None:
    one = topology(library, "s", 3, 6)
    request = Request(RequestKind.ALL_REDUCE, ("dp",), 2**30)
    problem = Problem(one, parse_axes("dp=64"), (request,), max_length=9)
    found = p2smt.solve(problem, top=1)
    assert found.best is not None
    least_s = least_on(scene_of(one), plain_kind(request.kind), 9, request.payload_bytes)
    assert found.bound_s <= found.best.objective_s <= least_s * (1 + 1e-9)


def plain(depth: int) -> Topology:
    """Rings on levels each four times as fast as the one further out, without latency."""
    return rings((2,) * depth)


def rings(sizes: tuple[int, ...]) -> Topology:
    levels = [(f"l{j}", size, 4.0**j * 1e9) for j, size in enumerate(sizes)]
    return switches(*levels, latency_s=0.0, algorithms=(Algorithm.RING,))


def test_seven_levels_are_scattered_one_by_one() -> None:
    """Thirteen steps: more than any list over merged levels has."""
    scene = scene_of(plain(7))
    asked = Task(RequestKind.ALL_REDUCE, scene.hierarchy, 13)
    found = priced_nest(SoughtProgram(asked, scene, 2**30, 1, Catalogs()))
    assert found is not None
    assert len(found.program) == 13
    assert found.seconds == pytest.approx(least_on(scene, asked.kind, 13, 2**30))
    short = priced_nest(SoughtProgram(replace(asked, max_length=7), scene, 2**30, 1, Catalogs()))
    assert short is not None
    assert len(short.program) == 7
    assert found.seconds < short.seconds


@pytest.mark.parametrize("pipeline", [4, None])
def test_pipelined_nests_are_timed_as_what_they_are(pipeline: int | None) -> None:
    scene = scene_of(plain(6))
    asked = Task(RequestKind.ALL_REDUCE, scene.hierarchy, 7)
    whole = priced_nest(SoughtProgram(asked, scene, 2**30, 1, Catalogs()))
    found = priced_nest(SoughtProgram(asked, scene, 2**30, pipeline, Catalogs()))
    assert whole is not None
    assert found is not None
    assert found.chunks > 1
    assert found.seconds < whole.seconds


def test_what_is_too_large_to_check_gets_a_shorter_one() -> None:
    sizes = (4, 4, 4, 4, 4, 4, 8)  # 32,768 devices: seven levels apart cannot be simulated
    scene = scene_of(rings(sizes))
    asked = Task(RequestKind.ALL_REDUCE, scene.hierarchy, 13)
    found = priced_nest(SoughtProgram(asked, scene, 2**30, 1, Catalogs()))
    assert found is not None
    assert 1 < len(found.program) < 13


@pytest.mark.parametrize(
    ("limits", "pipeline", "whole"),
    [([7] * 8, 1, True), ([2 * j + 1 for j in range(8)], None, False)],
)
def test_limits_on_eight_levels_are_answered(
    limits: list[int], pipeline: int | None, whole: bool
) -> None:
    """With all of them different, twelve numbers of chunks are more work than there may be."""
    one, most = plain(8), tuple((f"l{j}", n) for j, n in enumerate(limits))
    request = Request(RequestKind.ALL_REDUCE, ("dp",), 2**30)
    problem = Problem(
        one,
        parse_axes("dp=256"),
        (request,),
        pipeline=pipeline,
        max_length=16,
        step_limits=most,
    )
    found = answer_request(problem, request, scene_of(one), OVER, Solver.CPSAT, Catalogs())
    assert found is not None
    assert found.program is not None
    assert found.seconds < found.single_s
    asked = Task(plain_kind(request.kind), found.hierarchy, 16, step_limits=most)
    times = len(chunk_counts(pipeline, 16))
    assert (nests._paths(nests._Space(asked.problem()), times) is not None) is whole
    items = InstructionSet.of(8).items
    used = [
        items.index((step.collective, found.hierarchy.grouping(step)))
        for step in found.program.instructions
    ]
    assert obeys(asked.problem(), used)
    checked = check_program(demand_of(request.kind), found.hierarchy, found.program)
    assert checked.trace.violation is None


def test_a_nest_stands_beside_what_merged_levels_have() -> None:
    scene = scene_of(plain(6))
    asked = Task(RequestKind.ALL_REDUCE, scene.hierarchy, 9)
    sought = SoughtProgram(asked, scene, 2**30, 1, Catalogs())
    found = best_merged_levels(sought, OVER)
    assert found.status is Status.FEASIBLE
    assert found.best is not None
    assert found.best.seconds <= least_on(scene, asked.kind, 9, 2**30) * (1 + 1e-9)


def test_tilings_are_all_compositions() -> None:
    assert [len(list(tilings(depth))) for depth in range(1, 9)] == [2**n for n in range(8)]
    assert math.prod(b - a for a, b in next(iter(tilings(4)))) == 4
