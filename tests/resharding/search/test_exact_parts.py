"""Tables of states, prices that are shared, and bounds: each against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2smt.cluster.file import load_topology
from p2smt.cost.link_bounds import bare_links
from p2smt.resharding import step_table as table_module
from p2smt.resharding.best_path import Relaxed, best_path
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.state_graph import StateGraph, least_seconds_per_byte
from p2smt.resharding.step_prices import StepPrices
from p2smt.resharding.step_table import StateTable, can_tabulate, count_states, deciding_levels
from p2smt.resharding.steps import MemoryLimit, StepKind, step_bytes
from p2smt.resharding.types import Uneven, parse_mesh
from p2smt.result import SearchLimits, Status, StopWatch
from tests.oracles import redistributions as oracle
from tests.resharding.search.exact_cases import CLUSTERS, cluster, ends_between
from tests.strategies.draws import Draws, draws

COLLECTIVES = (
    StepKind.ALL_GATHER,
    StepKind.ALL_TO_ALL,
    StepKind.REDUCE_SCATTER,
    StepKind.ALL_REDUCE,
)


def _ends(source: str, target: str, mesh: str = "a=4,b=4") -> Ends:
    return ends_between(parse_mesh(mesh), (64, 64), (source, target))[0]


@pytest.mark.parametrize(
    ("source", "fixed"),
    [
        ("S(a),R", ""),
        ("R,R;P(a)", ""),
        ("S(b),R;P(a:(1)2)", ""),
        ("R,R;P(a)", ";P(a:(1)2)"),
        ("S(b),R;P(a:(2)2)", ";P(a:(2)2)"),
    ],
)
def test_a_table_has_every_state(source: str, fixed: str) -> None:
    ends = _ends(source, "R,S(b)" + fixed, "a=4,b=2")
    table = StateTable.of(ends)
    states = oracle.all_states(ends.frame, ends.source.partial)
    wanted = {state for state in states if set(ends.target.partial) <= set(state.partial)}
    assert {table.state(number) for number in range(len(table))} == wanted
    assert len(table) == len(wanted) == count_states(ends)
    for number in range(len(table)):
        state = table.state(number)
        assert table.index(state) == number
        assert table.size[number] == ends.frame.local_bytes(state)


def test_digits_that_stay_partial_do_not_count() -> None:
    """With them the codes of these states would not fit into 64 bits."""
    tp = ",R" * 4
    mesh = parse_mesh("dp=1024,tp=4")
    sums = (f"S(tp){tp};P(dp)", f"R,S(tp){tp[2:]};P(dp)")
    ends = ends_between(mesh, (64,) * 5, sums)[0]
    small = ends_between(parse_mesh("tp=4"), (64,) * 5, (f"S(tp){tp}", f"R,S(tp){tp[2:]}"))[0]
    table = StateTable.of(ends)
    assert can_tabulate(ends)
    assert len(table) == len(StateTable.of(small)) == len(set(table.codes.tolist()))
    assert [table.index(table.state(k)) for k in range(len(table))] == list(range(len(table)))
    assert table.index(ends.source) != table.index(ends.target)
    topology = load_topology("dgx-h100:512").nominal()
    prices, memory = StepPrices(topology, ends.frame), MemoryLimit(ends.states_limit_bytes)
    found = best_path([ends], [prices], memory, SearchLimits())
    assert found.status is Status.OPTIMAL
    assert [step.kind for step in found.steps] == [StepKind.ALL_TO_ALL]


def test_states_without_codes_are_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = _ends("S(a),R", "R,S(b)")
    monkeypatch.setattr(table_module, "MAX_CODE", 10**4 - 1)
    assert not can_tabulate(ends)
    monkeypatch.setattr(table_module, "MAX_CODE", 10**4)
    assert can_tabulate(ends)


def test_digits_stand_at_the_levels_of_their_devices() -> None:
    topology = cluster("dgx-h100", 2, 8)
    ends = _ends("S(a),R", "R,S(b)")
    assert deciding_levels(topology, ends.frame) == (0, 1, 1, 1)
    order = np.arange(16).reshape(4, 4).T.ravel().tolist()
    turned = ends_between(parse_mesh("a=4,b=4", order), (64, 64), ("S(a),R", "R,S(b)"))[0]
    assert deciding_levels(topology, turned.frame) == (1, 1, 0, 1)
    mixed = parse_mesh("a=4,b=4", [8, *range(1, 8), 0, *range(9, 16)])
    assert deciding_levels(topology, ends_between(mixed, (64, 64), ("R,R", "R,R"))[0].frame) is None


@given(st.sampled_from(CLUSTERS), st.booleans(), st.booleans(), draws())
@settings(max_examples=10)
def test_shared_prices_are_those_of_each_step(
    name: str, nominal: bool, turned: bool, data: Draws
) -> None:
    topology = cluster(name, 2, 8)
    topology = topology.nominal() if nominal else topology
    order = np.arange(16).reshape(4, 4).T.ravel().tolist() if turned else range(16)
    mesh = parse_mesh("a=4,b=4", order)
    ends = ends_between(mesh, (64, 64), ("S(a),S(b)", "S(b),S(a)"))[0]
    table, prices = StateTable.of(ends), StepPrices(topology, ends.frame)
    graph = StateGraph(ends, table, prices, MemoryLimit(2**40), counted=True)
    number = data.draw(st.integers(0, len(table) - 1))
    edges = graph.steps_from(number, first=True)
    chosen = data.draw(st.lists(st.integers(0, len(edges.targets) - 1), max_size=20))
    for at in chosen:
        step = graph.step(number, int(edges.targets[at]), int(edges.kinds[at]))
        step.check(ends.frame)
        if not np.isnan(edges.seconds[at]):
            assert edges.seconds[at] == pytest.approx(prices.step(step).seconds, rel=1e-12)
        elif step.kind is StepKind.PERMUTE:
            least = graph.sends.least(number, edges.targets[at : at + 1])[0]
            assert least <= prices.step(step).seconds * (1 + 1e-9)


def test_on_switches_no_permute_waits_for_its_price() -> None:
    ends = _ends("S(a),S(b)", "S(b),S(a)")
    prices = StepPrices(cluster("dgx-h100", 2, 8), ends.frame)
    graph = StateGraph(ends, StateTable.of(ends), prices, MemoryLimit(2**40), counted=False)
    for number in range(0, len(graph.table), 17):
        assert not np.isnan(graph.steps_from(number, first=True).seconds).any()


@given(st.sampled_from(CLUSTERS), st.booleans(), st.permutations(range(8)), st.booleans())
@settings(max_examples=4)
def test_what_is_left_at_least_is_never_more_than_what_is_left(
    name: str, nominal: bool, order: list[int], shuffled: bool
) -> None:
    topology = cluster(name, 2, 4)
    topology = topology.nominal() if nominal else topology
    mesh = parse_mesh("a=2,b=4", order if shuffled else None)
    ends = ends_between(mesh, (64, 64), ("S(a),S(b)", "R,S(a)"))[0]
    prices = StepPrices(topology, ends.frame)
    memory = MemoryLimit(2 * ends.states_limit_bytes)
    graph = StateGraph(ends, StateTable.of(ends, memory.limit_bytes), prices, memory, counted=False)
    source, target = graph.table.index(ends.source), graph.table.index(ends.target)
    left = Relaxed(graph, source, target).left(1e9, StopWatch.start(SearchLimits()))
    assert left is not None
    for number in range(3, len(graph.table), 29):
        start = Ends(ends.frame, graph.table.state(number), ends.target)
        exact = best_path([start], [prices], memory, SearchLimits()).seconds
        assert exact is not None
        assert left[number] <= exact * (1 + 1e-9)


def test_one_message_takes_least() -> None:
    topology = load_topology("azure-ndv4:4").nominal()
    fastest = max(level.link.pieces[0].bandwidth_bytes_per_s for level in topology.levels)
    assert least_seconds_per_byte(topology) == pytest.approx(1 / fastest)


def test_too_little_time_is_no_proof() -> None:
    ends = _ends("S(a),S(b)", "R,S(a)")
    prices = StepPrices(cluster("azure-ndv4", 2, 8), ends.frame)
    memory = MemoryLimit(ends.states_limit_bytes)
    found = best_path([ends], [prices], memory, SearchLimits(time_limit_s=0.0))
    best = best_path([ends], [prices], memory, SearchLimits())
    assert found.status is Status.UNKNOWN
    assert best.seconds is not None
    assert found.bound_s <= best.seconds
    assert found.stats.reason


def test_slower_plans_do_not_count() -> None:
    ends = _ends("S(a),S(b)", "R,S(a)")
    prices = StepPrices(cluster("azure-ndv4", 2, 8), ends.frame)
    memory = MemoryLimit(ends.states_limit_bytes)
    best = best_path([ends], [prices], memory, SearchLimits()).seconds
    assert best is not None
    again = best_path([ends], [prices], memory, SearchLimits(), at_most_s=best)
    assert (again.status, again.seconds) == (Status.OPTIMAL, best)
    none = best_path([ends], [prices], memory, SearchLimits(), at_most_s=best * 0.99)
    assert (none.status, none.bound_s) == (Status.UNKNOWN, best * 0.99)


def test_more_steps_are_never_slower() -> None:
    ends = _ends("S(a),S(b)", "S(b),S(a)")
    prices = StepPrices(bare_links(cluster("azure-ndv4", 2, 8)), ends.frame)
    memory = MemoryLimit(ends.states_limit_bytes)
    found = [
        best_path([ends], [prices], memory, SearchLimits(), max_steps=most).seconds
        for most in (1, 2, 3, 4, None)
    ]
    values = [seconds for seconds in found if seconds is not None]
    assert len(values) == len(found)
    assert all(a >= b for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("shape", [(5, 4), (13, 7), (3, 8)])
def test_steps_take_the_bytes_that_memory_says(shape: tuple[int, ...], keep: bool) -> None:
    """Of nested arrays too, whose parts differ in length."""
    mesh = parse_mesh("a=2,b=3")
    ends = ends_between(mesh, shape, ("R,S(b);P(a)", "S(b),R"), uneven=Uneven.NESTED)[0]
    table = StateTable.of(ends)
    prices = StepPrices(cluster("azure-ndv4", 3, 2), ends.frame)
    limit = MemoryLimit(2**40, of_steps=True, keep_source=keep)
    graph, source = StateGraph(ends, table, prices, limit, counted=True), table.index(ends.source)
    kinds = set()
    for number in range(len(table)):
        first = number == source
        edges = graph.steps_from(number, first=first)
        for target, kind, size in zip(edges.targets, edges.kinds, edges.bytes, strict=True):
            step = graph.step(number, int(target), int(kind))
            kept = ends.frame.local_bytes(ends.source) if keep else 0
            stands = 0 if first and step.kind is not StepKind.ALL_REDUCE else kept
            assert size == step_bytes(ends.frame, step) + stands, step
            kinds.add(step.kind)
    assert kinds >= {StepKind.REDUCE_SCATTER, StepKind.ALL_TO_ALL, StepKind.ALL_GATHER}
