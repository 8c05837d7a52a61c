"""Pipelined programs: the formula against a simulator, the bounds, and known numbers."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import p2smt
from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import priced_bound_s
from p2smt.cost.scene import Scene
from p2smt.cost.step_time import CHUNK_COUNTS, StepTime, best_chunks, chunk_counts, program_s
from p2smt.programs.check import check_program
from p2smt.programs.program import Hierarchy, Program
from p2smt.result import SearchLimits
from p2smt.search.program_synthesis import Task, list_programs
from p2smt.search.warm_start import RowCounts
from tests.oracles.pipeline import SimStep, simulated_s
from tests.strategies.topologies import Case, cases
from tests.tiers import examples_of

KINDS = [kind for kind in RequestKind if kind.has_programs]
CHUNKS = st.sampled_from([1, 2, 3, 8, 20])
SECONDS = st.sampled_from([0.0, 0.125, 0.5, 1.0, 3.0, 7.0])


def timed(steps: list[SimStep], chunks: int) -> float:
    """The formula for steps of one chunk."""
    return program_s([step_time(step) for step in steps], chunks)


def step_time(step: SimStep) -> StepTime:
    wire = max(step.wire_s)
    return StepTime(step.seconds, wire, "ring", "simple", 0, 0.0, 1.0, step.wire_s)


def level_s(steps: list[SimStep]) -> float:
    """Wire time of the most occupied level for one chunk."""
    levels = range(len(steps[0].wire_s))
    return max(sum(step.wire_s[level] for step in steps) for level in levels)


@st.composite
def any_steps(draw: st.DrawFn) -> list[SimStep]:
    """One to five steps that use up to three levels in any way; each takes some time."""
    levels = draw(st.integers(1, 3))
    step = st.builds(SimStep, SECONDS, st.tuples(*[SECONDS] * levels))
    return draw(st.lists(step.filter(lambda one: one.seconds > 0), min_size=1, max_size=5))


# Against the simulator --------------------------------------------------------------------


@settings(max_examples=examples_of(300))
@given(any_steps())
def test_one_chunk_takes_the_sum_of_its_steps(steps: list[SimStep]) -> None:
    assert timed(steps, 1) == sum(step.seconds for step in steps)
    assert simulated_s(steps, 1) == pytest.approx(timed(steps, 1))


@settings(max_examples=examples_of(300))
@given(st.lists(st.tuples(SECONDS, st.sampled_from([0.25, 1.0, 4.0])), max_size=5), CHUNKS)
def test_exact_where_no_steps_share_a_level(times: list[tuple[float, float]], chunks: int) -> None:
    levels = range(len(times))
    steps = [
        SimStep(latency, tuple(wire if level == n else 0.0 for level in levels))
        for n, (latency, wire) in enumerate(times)
    ]
    if steps:
        assert simulated_s(steps, chunks) == pytest.approx(timed(steps, chunks))


@settings(max_examples=examples_of(300))
@given(SECONDS, SECONDS, SECONDS, SECONDS, SECONDS, SECONDS, CHUNKS)
def test_exact_where_one_step_dominates(
    before_s: float,
    after_s: float,
    before_wire_s: float,
    after_wire_s: float,
    latency_s: float,
    more_s: float,
    chunks: int,
) -> None:
    """Two steps share the inner level; the one between them takes longer than both."""
    longest = before_s + after_s + before_wire_s + after_wire_s + 0.25 + more_s
    steps = [
        SimStep(before_s, (0.0, before_wire_s + 0.125)),
        SimStep(latency_s, (longest, 0.0)),
        SimStep(after_s, (0.0, after_wire_s + 0.125)),
    ]
    assert simulated_s(steps, chunks) == pytest.approx(timed(steps, chunks))


@settings(max_examples=examples_of(400))
@given(any_steps(), CHUNKS)
def test_never_below_what_steps_and_links_allow(steps: list[SimStep], chunks: int) -> None:
    """Both bounds hold for every execution; the formula exceeds their maximum by less than the
    time of one chunk."""
    fill, slowest = sum(step.seconds for step in steps), max(step.seconds for step in steps)
    least = max(fill + (chunks - 1) * slowest, chunks * level_s(steps))
    predicted, run = timed(steps, chunks), simulated_s(steps, chunks)
    assert least <= predicted * (1 + 1e-9)
    assert least <= run * (1 + 1e-9)
    assert predicted <= least + fill - level_s(steps) + 1e-9


@pytest.mark.parametrize(("size", "most"), [("256MiB", 1.36), ("16GiB", 1.1)])
def test_an_execution_that_hides_no_latency_takes_longer(size: str, most: float) -> None:
    """The simulator waits for all latencies of a step before its transfer; docs/cost-model.md
    quotes the first number."""
    problem = p2smt.Problem(
        p2smt.load_topology("dgx-a100:4").nominal(),
        p2smt.parse_axes("dp=32"),
        (p2smt.reduce(f"dp={size}"),),
        pipeline=None,
    )
    best = p2smt.solve(problem, top=1).best
    assert best is not None
    (plan,) = best.requests
    steps = [SimStep(s.seconds - s.wire_s, s.level_wire_s) for s in plan.steps]
    assert plan.chunks > 1
    assert 1 <= simulated_s(steps, plan.chunks) / plan.seconds < most


# Known numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "chunks", "seconds"),
    [
        ([SimStep(1.0, (2.0, 0.0)), SimStep(0.0, (0.0, 1.0))], 3, 3 + 1 + 2 * 3),
        ([SimStep(0.0, (2.0, 0.0)), SimStep(0.0, (1.0, 0.0))], 3, 3 + 2 * 3),
        ([SimStep(4.0, (2.0, 0.0)), SimStep(0.0, (1.0, 0.0))], 3, 7 + 2 * 6),
        ([SimStep(0.0, (2.0, 1.0)), SimStep(0.0, (1.0, 2.0))], 2, 4 + 3),
    ],
)
def test_known_times(steps: list[SimStep], chunks: int, seconds: float) -> None:
    assert timed(steps, chunks) == seconds


def test_the_chunks_to_choose_from() -> None:
    assert chunk_counts(None, 3) == CHUNK_COUNTS
    assert chunk_counts(7, 3) == (7,)
    for pipeline in (None, 1, 7):
        assert chunk_counts(pipeline, 1) == chunk_counts(pipeline, 0) == (1,)


def test_the_fewest_chunks_of_a_tie() -> None:
    """On one level without latency there is nothing to gain."""
    best = best_chunks((4, 1, 2), lambda m: (step_time(SimStep(0.0, (3.0 / m,))),) * 2)
    assert (best.chunks, best.seconds) == (1, 6.0)
    best = best_chunks(
        CHUNK_COUNTS,
        lambda m: tuple(step_time(SimStep(0.5, wire)) for wire in ((12 / m, 0.0), (0.0, 12 / m))),
    )
    # 1 + 24/m + (m - 1)(0.5 + 12/m) = 12.5 + 12/m + m/2 is least at m = sqrt(24)
    assert (best.chunks, best.seconds) == (4, 17.5)


def test_nothing_to_do_takes_no_time() -> None:
    assert program_s((), 1) == program_s((), 5) == 0.0


# On programs ------------------------------------------------------------------------------


@cache
def programs(kind: RequestKind, factors: tuple[int, ...], length: int) -> tuple[Program, ...]:
    task = Task(kind, Hierarchy.plain(factors), length)
    return list_programs(task, SearchLimits())[0].value or ()


@settings(max_examples=examples_of(60))
@given(cases(), st.sampled_from([1, 1000, 10**6]), CHUNKS, st.sampled_from(KINDS))
def test_no_pipelined_program_beats_the_links(
    case: Case, payload: int, chunks: int, kind: RequestKind
) -> None:
    scene = Scene.of(case.topology, case.placement, case.axes)
    hierarchy = scene.hierarchy
    bound = priced_bound_s(case.topology, scene.digits, kind, payload)
    plain = Hierarchy.plain(hierarchy.factors)
    for program in programs(kind, hierarchy.factors, 3) if hierarchy.depth else ():
        rows = check_program(demand_of(kind), plain, program).trace.payload_rows
        steps = [
            scene.step_time(i.collective, plain.grouping(i), payload * count / plain.size / chunks)
            for i, count in zip(program.instructions, rows, strict=True)
        ]
        assert bound <= program_s(steps, chunks) * (1 + 1e-9) + 1e-12, str(program)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("factors", "length"),
    [((6,), 5), ((2, 2), 5), ((2, 3), 5), ((3, 4), 5), ((2, 3, 5), 4), ((4, 2, 3), 4)],
)
def test_row_counts_are_those_of_the_semantics(
    kind: RequestKind, factors: tuple[int, ...], length: int
) -> None:
    hierarchy = Hierarchy.plain(factors)
    items = Task(kind, hierarchy, length).problem().instructions.items
    numbers = {item: n for n, item in enumerate(items)}
    counts = RowCounts(demand_of(kind), factors, items)
    for program in programs(kind, factors, length):
        instructions = [numbers[i.collective, hierarchy.grouping(i)] for i in program.instructions]
        rows = check_program(demand_of(kind), hierarchy, program).trace.payload_rows
        assert counts.payloads(instructions) == rows, str(program)


def test_an_uneven_split_is_no_program() -> None:
    """Rows of the third that a first reduce-scatter leaves cannot be halved."""
    items = Task(RequestKind.ALL_REDUCE, Hierarchy.plain((2, 3)), 2).problem().instructions.items
    scatter = [n for n, (c, _) in enumerate(items) if c.value == "reduce-scatter"]
    outer = next(n for n in scatter if items[n][1].outer == 0 and items[n][1].inner == 1)
    counts = RowCounts(demand_of(RequestKind.ALL_REDUCE), (2, 3), items)
    assert counts.payloads([outer]) == (6,)
    assert counts.payloads([outer, outer]) is None
