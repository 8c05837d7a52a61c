"""The search on hosts against every strategy, batch, matrix inside, choice and order of hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from p2smt.cluster.allocation import allocated
from p2smt.cluster.file import parse_topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import single_time
from p2smt.errors import InputError
from p2smt.parallelism.placement import ParallelismAxis
from p2smt.parallelism.request import Problem, Request
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.allocation.cell_grids import CellGrid, grids
from p2smt.search.allocation.grid_question import switch_tree
from p2smt.search.allocation.host_search import every_order
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import predict_on
from p2smt.training.on_hosts import HostRanks
from p2smt.training.pipeline import axis_requests, combine, work
from p2smt.training.search.choices import Choices
from p2smt.training.search.hosts import search
from p2smt.training.search.hosts.host_orders import Orders, Unit, Uplinks
from p2smt.training.search.hosts.ideal import Ideal, device_seconds, one_leaf
from p2smt.training.search.hosts.search import plan_on_hosts
from p2smt.training.search.question import PlanQuestion, SpaceLimits
from p2smt.training.search.strategies import space_between, space_of
from p2smt.training.strategy import AXES, Batch, Recompute, Strategy
from p2smt.training.transformer import Transformer
from tests.tiers import but_every, but_the_first
from tests.training.test_iteration import WHOLE

SMALL = Transformer("small", 4, 1024, 8, 4, 2048, True, 4000, 128)
LEVELS = """
name: leaves
library: none
algorithms: [ring]
levels:
  - {name: leaf, size: 3, link: {kind: switch, bandwidth: UPLINK GB/s, latency: 5 us, fabric: roce}}
  - {name: node, size: 3, link: {kind: switch, bandwidth: 25 GB/s, latency: 5 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 200 GB/s, latency: 1 us, fabric: nvlink4}}
switches:
  - {name: a, hosts: "n[1-3]"}
  - {name: b, hosts: "n[4-5]"OWN}
  - {name: c, hosts: "n6"}
"""
SPINES = """
name: spines
library: none
algorithms: [ring]
levels:
  - {name: spine, size: 2, link: {kind: switch, bandwidth: 6 GB/s, latency: 5 us, fabric: roce}}
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 12 GB/s, latency: 5 us, fabric: roce}}
  - {name: node, size: 2, link: {kind: switch, bandwidth: 25 GB/s, latency: 5 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 200 GB/s, latency: 1 us, fabric: nvlink4}}
switches:
  - {name: s, switches: [{name: a, hosts: "n[1-2]"}, {name: b, hosts: "n3"}]}
  - {name: t, switches: [{name: c, hosts: "n[4-5]"}, {name: d, hosts: "n6"}]}
"""
DEVICE = """
device:
  name: slow
  peak: {bf16: SPEED TFLOP/s, fp16: 20 TFLOP/s}
  memory_bandwidth: 3000 GB/s
  memory: 80 GB
"""
FOUR, SIX = ["n1", "n2", "n4", "n6"], ["n1", "n2", "n3", "n4", "n5", "n6"]


def leaves(uplink: int, own: str = "") -> str:
    return LEVELS.replace("UPLINK", str(uplink)).replace("OWN", own)


CLUSTERS = {
    "ample": leaves(100),
    "scarce": leaves(6),
    "unequal": leaves(12, ", bandwidth: 4 GB/s"),
    "spines": SPINES,
    "all": leaves(12).replace("[ring]", "[ring, tree]"),
}
FEW = SpaceLimits(
    cp=2, micro_batch=1, vpp=1, zero=(0, 3), recompute=(Recompute.NONE,), sequence_parallel=(False,)
)
FEWEST = replace(FEW, cp=1, zero=(0,))
MORE = SpaceLimits(micro_batch=2, vpp=2, zero=(0, 1, 3))
NO_LIMIT = StopWatch.start(SearchLimits())


def question(
    name: str, sequences: int, space: SpaceLimits, hosts: Sequence[str] = SIX, speed: int = 20
) -> PlanQuestion:
    """Of a slow device more hosts are worth while."""
    text = CLUSTERS[name] + DEVICE.replace("SPEED", str(speed))
    topology = allocated(parse_topology(text, name), hosts)
    return PlanQuestion(SMALL, Batch(sequences, 2048), topology, WHOLE, space=space)


def names_of(asked: PlanQuestion) -> tuple[str, ...]:
    assert asked.topology.hosts is not None
    return asked.topology.hosts.names


@dataclass
class BruteForce:
    """Every answer on all hosts of a question, each request costed device by device."""

    asked: PlanQuestion
    _prices: dict[object, list[float]] = field(default_factory=dict)
    by_strategy: dict[Strategy, float] = field(default_factory=dict)

    def least_s(self, least: int, most: int) -> float:
        """Seconds of a sequence of the best one."""
        found = [
            self._of_space(nodes, sequences)
            for nodes in range(1, len(names_of(self.asked)) + 1)
            for sequences in range(least, most + 1)
        ]
        return min(found)

    def _of_space(self, nodes: int, sequences: int) -> float:
        batch = Batch(sequences, self.asked.batch.tokens)
        inner = replace(self.asked, topology=one_leaf(self.asked.topology, nodes), batch=batch)
        try:
            columns = space_of(inner, Choices.of(inner))
        except InputError:
            return np.inf
        device = inner.topology.known_device
        done = work(inner.model, batch, columns, device, inner.efficiency)
        fits = np.flatnonzero(done.memory_bytes <= inner.capacity_bytes)
        return min(
            (self._of_row(columns, done, row, batch) for row in fits.tolist()), default=np.inf
        )

    def _of_row(self, columns: StrategyColumns, done: Any, row: int, batch: Batch) -> float:
        strategy, one = columns.strategy(row), done.take(np.array([row]))
        framework = self.asked.efficiency.framework
        asked = axis_requests(self.asked.model, batch, strategy, framework, self.asked.efficiency)
        free: dict[str, Any] = {request.column.name: 0.0 for request in one.requests}
        found = []
        for grid in grids(_problem(self.asked, strategy)):
            prices = {request.name: np.array(self._priced(grid, request)) for request in asked}
            found.append(float(combine(one, free | prices).min()) / batch.sequences)
        known = self.by_strategy.get(strategy, np.inf)
        self.by_strategy[strategy] = min([known, *found])
        return min(found)

    def _priced(self, grid: CellGrid, request: Any) -> list[float]:
        key = grid, request.axes, request.kind, request.payload_bytes, request.closed
        if key not in self._prices:
            axes = [AXES.index(axis) for axis in request.axes]
            topology = self.asked.topology
            self._prices[key] = [
                single_time(
                    *(topology, grid.ranks(slots), axes, request.kind, request.payload_bytes),
                    closed=request.closed,
                ).seconds
                for slots in every_order(switch_tree(topology), grid.cells)
            ]
        return self._prices[key]


def _problem(asked: PlanQuestion, strategy: Strategy) -> Problem:
    """Axes alone count: which matrices there are inside the nodes."""
    axes = tuple(map(ParallelismAxis, AXES, strategy.sizes))
    some = next(axis.name for axis in axes if axis.size > 1)
    return Problem(asked.topology, axes, (Request(RequestKind.ALL_REDUCE, (some,), 1),))


@cache
def brute_force_s(
    name: str, batches: tuple[int, int], space: SpaceLimits, hosts: tuple[str, ...], speed: int
) -> float:
    return BruteForce(question(name, batches[1], space, hosts, speed)).least_s(*batches)


def held(
    name: str, batches: tuple[int, int], space: SpaceLimits, hosts: Sequence[str], speed: int
) -> int:
    """Hold an answer against brute force; how many hosts it uses."""
    asked = question(name, batches[1], space, hosts, speed)
    found = plan_on_hosts(asked, names_of(asked), batches, SearchLimits(time_limit_s=600))
    assert found.status is Status.OPTIMAL
    best = found.best[0]
    least_s = brute_force_s(name, batches, space, tuple(hosts), speed)
    assert best.sequence_s == pytest.approx(least_s, rel=1e-12)
    assert batches[0] <= best.run.batch.sequences <= batches[1]
    assert len(best.where.hosts) * 2 == best.run.strategy.devices
    again = predict_on(best.run, best.where, asked.efficiency)
    assert again.time.iteration_s == best.prediction.time.iteration_s
    return len(best.where.hosts)


@pytest.mark.parametrize("few", [0, 3000])
@pytest.mark.parametrize("name", CLUSTERS)
def test_the_best_answer_is_that_of_brute_force(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every order looked at where no bound meets the answer, and by boxes of loads alone."""
    monkeypatch.setattr(search, "FEW_ORDERS", few)
    assert held(name, (8, 8), FEWEST, FOUR, 20) > 1


NEAR = [("scarce", 0.5, FEWEST, 8), ("scarce", 0.02, FEW, 7), ("unequal", 0.5, FEW, 7)]


@pytest.mark.parametrize("case", but_the_first(*NEAR))
def test_strategies_near_the_best_are_those_of_brute_force(
    case: tuple[str, float, SpaceLimits, int],
) -> None:
    name, within, space, least = case
    asked = replace(question(name, 8, space, FOUR), within=within)
    limits = SearchLimits(time_limit_s=600)
    found = plan_on_hosts(asked, FOUR, (least, 8), limits, most_near=10**6)
    every = BruteForce(asked)
    limit_s = every.least_s(least, 8) * (1 + within)
    near = found.near
    assert near is not None
    assert near.status is Status.COMPLETE
    expected = {one for one, s in every.by_strategy.items() if s <= limit_s * (1 + 1e-12)}
    assert {one.run.strategy for one in near.members} == expected
    for one in near.members:
        assert every.by_strategy[one.run.strategy] * (1 - 1e-12) <= one.sequence_s
        assert one.sequence_s <= limit_s * (1 + 1e-12)
    assert list(near.members) == sorted(near.members, key=lambda one: one.sequence_s)
    assert near.members[0] == found.best[0]


def test_few_units_leave_the_list_open_and_the_proof_as_it_is() -> None:
    asked = replace(question("scarce", 8, FEWEST, FOUR), within=0.5)
    cut = plan_on_hosts(asked, FOUR, (7, 8), most_near=1)
    whole = plan_on_hosts(asked, FOUR, (7, 8), most_near=10**6)
    assert cut.near is not None
    assert whole.near is not None
    assert cut.near.status is Status.TRUNCATED
    assert {one.run.strategy for one in cut.near.members} < {
        one.run.strategy for one in whole.near.members
    }
    assert cut.status is whole.status is Status.OPTIMAL
    assert cut.best[0].sequence_s == whole.best[0].sequence_s


def test_so_many_hosts_whichever_are_best() -> None:
    asked = question("unequal", 8, FEWEST)
    found = plan_on_hosts(asked, SIX, limits=SearchLimits(time_limit_s=600), most_hosts=2)
    pairs = [
        plan_on_hosts(asked, pair, limits=SearchLimits(time_limit_s=600)).best[0].sequence_s
        for pair in combinations(SIX, 2)
    ]
    assert found.status is Status.OPTIMAL
    assert len(found.best[0].where.hosts) == 2
    assert found.best[0].sequence_s == pytest.approx(min(pairs), rel=1e-12)


CHUNKS = SpaceLimits(
    cp=1, micro_batch=1, zero=(0,), recompute=(Recompute.NONE,), sequence_parallel=(False,)
)
CHUNKED = (("pp", 2), ("vpp", 2), ("tp", 1))


@pytest.mark.parametrize("few", but_the_first(3000, 0))
def test_chunks_of_a_stage_send_back_to_the_first_one(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FEW_ORDERS", few)
    asked = replace(question("scarce", 8, CHUNKS, FOUR), fixed=CHUNKED)
    found = plan_on_hosts(asked, FOUR, limits=SearchLimits(time_limit_s=600))
    assert found.status is Status.OPTIMAL
    assert found.best[0].run.strategy.vpp == 2
    least_s = BruteForce(asked).least_s(8, 8)
    assert found.best[0].sequence_s == pytest.approx(least_s, rel=1e-12)


def test_loads_of_closed_sends_are_bounds() -> None:
    asked = replace(question("scarce", 8, CHUNKS), fixed=CHUNKED)
    orders, tree = Orders(Uplinks(asked.topology), asked.efficiency), switch_tree(asked.topology)
    ideal = Ideal.of(asked, (8, 8), 4, NO_LIMIT)
    assert ideal is not None
    row = int(ideal.rows[0])
    one, more = ideal.candidates.whole_work.take(np.array([row])), 0
    for bound_s, found in ideal.insides(row):
        unit = Unit(ideal.run(row), found, one, bound_s)
        every = np.stack(list(every_order(tree, 4)))[::5]
        (side,) = orders.sides(unit)
        sends = dict(zip(side.names, side.terms, strict=True))["pp send"]
        for slots, least_s in zip(
            every, orders.call_s(unit.grid, sends, every).tolist(), strict=True
        ):
            ranks, axes = unit.grid.ranks(slots), [AXES.index("pp")]
            chain, closed = (
                single_time(
                    *(asked.topology, ranks, axes, RequestKind.SEND, sends.request.payload_bytes),
                    closed=back,
                ).seconds
                for back in (False, True)
            )
            assert closed == pytest.approx(least_s, rel=1e-9)
            assert closed >= chain * (1 - 1e-12)
            more += closed > chain * 1.5
    assert more  # where one replica's stages lie on the other one's hosts the other way round


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", but_every(7, product(CLUSTERS, (5, 20, 80), (0, 3000))), ids=str)
def test_more_strategies_batches_and_devices(
    case: tuple[str, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, speed, few = case
    monkeypatch.setattr(search, "FEW_ORDERS", few)
    assert held(name, (7, 8), FEW, FOUR, speed) >= 1


@pytest.mark.evidence
@pytest.mark.parametrize("name", CLUSTERS)
def test_six_hosts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for few in (0, 3000):
        monkeypatch.setattr(search, "FEW_ORDERS", few)
        assert held(name, (11, 12), MORE, SIX, 20) >= 1


@pytest.mark.parametrize("name", CLUSTERS)
def test_no_order_undercuts_its_loads_or_the_ideal_leaf(name: str) -> None:
    asked = question(name, 8, FEW)
    orders = Orders(Uplinks(asked.topology), asked.efficiency)
    tree, tried = switch_tree(asked.topology), 0
    for nodes in (2, 4):
        ideal = Ideal.of(asked, (8, 8), nodes, NO_LIMIT)
        assert ideal is not None
        for row in ideal.rows[::5].tolist():
            one = ideal.candidates.whole_work.take(np.array([row]))
            for bound_s, found in ideal.insides(row):
                unit = Unit(ideal.run(row), found, one, bound_s)
                every = np.stack(list(every_order(tree, nodes)))[::7]
                for slots, least_s in zip(every, orders.seconds(unit, every[:, None]), strict=True):
                    where = HostRanks.of(asked.topology, names_of(asked), unit.grid.ranks(slots))
                    exact = predict_on(unit.run, where, asked.efficiency).time.iteration_s / 8
                    assert exact >= least_s * (1 - 1e-12) >= bound_s * (1 - 1e-11)
                    tried += 1
    assert tried > 20


@pytest.mark.parametrize("graphs", ["none", "partial"])
@pytest.mark.parametrize(("nodes", "sequences"), [(1, 8), (2, 24), (3, 12), (4, 32), (6, 24)])
def test_one_batch_is_the_space_of_a_plan(nodes: int, sequences: int, graphs: str) -> None:
    inner = question("ample", sequences, MORE)
    inner = replace(inner, topology=one_leaf(inner.topology, nodes), graphs=graphs)
    choices = Choices.of(inner)
    every, between = space_of(inner, choices), space_between(inner, choices, sequences, sequences)
    assert between is not None
    found = [between.strategy(row) for row in range(len(between))]
    assert len(set(found)) == len(found)
    assert set(found) == {every.strategy(row) for row in range(len(every))}


def test_larger_batches_take_less_of_a_sequence_and_no_less_memory() -> None:
    """What a space of batches leaves out is no better than what it has."""
    inner = question("ample", 40, MORE)
    inner = replace(inner, topology=one_leaf(inner.topology, 2))
    ideal = Ideal.of(inner, (1, 40), 2, NO_LIMIT)
    assert ideal is not None
    kept: dict[Strategy, list[tuple[int, float]]] = {}
    for row in range(len(ideal.candidates)):
        strategy, sequences = ideal.strategy(row), ideal.sequences(row)
        kept.setdefault(strategy, []).append((sequences, ideal.priced.seconds(row).min()))
    device, tried = inner.topology.known_device, 0
    for sequences in range(1, 41):
        batch = Batch(sequences, 2048)
        try:
            columns = space_of(replace(inner, batch=batch), Choices.of(inner))
        except InputError:
            continue
        done = work(inner.model, batch, columns, device, inner.efficiency)
        free = combine(done, {one.column.name: 0.0 for one in done.requests})
        for row in range(0, len(columns), 3):
            strategy = columns.strategy(row)
            largest = max(kept[strategy])
            assert sequences <= largest[0]
            exact = {s for s, _ in kept[strategy]}
            if sequences not in exact:
                bigger = replace(columns.take(np.array([row])), sequences=np.array([largest[0]]))
                other = work(inner.model, batch, bigger, device, inner.efficiency)
                assert other.memory_bytes[0] == done.memory_bytes[row]
                less = combine(other, {one.column.name: 0.0 for one in other.requests})
                assert less[0] / largest[0] <= free[row] / sequences * (1 + 1e-12)
                tried += 1
    assert tried > 50


def test_no_strategy_takes_less_of_its_devices_than_computing_does() -> None:
    asked = question("ample", 12, MORE)
    least_s = device_seconds(asked)
    for nodes in (1, 2, 3, 4, 6):
        ideal = Ideal.of(asked, (10, 12), nodes, NO_LIMIT)
        assert ideal is not None
        assert ideal.free_s.min() >= least_s / (2 * nodes) * (1 - 1e-12)


def test_what_is_not_searched_on_hosts() -> None:
    asked = question("ample", 8, FEW)
    with pytest.raises(InputError, match="'n9'"):
        plan_on_hosts(asked, ["n1", "n9"])
    none = plan_on_hosts(replace(asked, memory_bytes=1), names_of(asked))
    assert none.status is Status.INFEASIBLE
    assert none.best == ()


def test_a_time_limit_is_no_proof() -> None:
    asked = question("scarce", 8, FEW)
    cut = plan_on_hosts(asked, names_of(asked), limits=SearchLimits(time_limit_s=0.0))
    assert cut.status is Status.UNKNOWN
