"""Mixtures on hosts against every strategy, pair of matrices inside and pair of orders of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from p2smt.cluster.file import parse_topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.bounds import single_time
from p2smt.parallelism.folded import FoldedPlacement
from p2smt.parallelism.placement import FloatArray, IntArray, ParallelismAxis, Placement
from p2smt.parallelism.request import Problem, Request
from p2smt.result import SearchLimits, Status
from p2smt.search.allocation.cell_grids import CellGrid, grids
from p2smt.search.allocation.grid_question import switch_tree
from p2smt.training.efficiency import LayerConstants, TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import predict_on, sent, trained_seconds
from p2smt.training.on_hosts import HostRanks
from p2smt.training.pipeline import axis_requests, combine
from p2smt.training.prediction import AxisRequest
from p2smt.training.search.choices import Choices
from p2smt.training.search.hosts import search
from p2smt.training.search.hosts.boxes import LoadBoxes
from p2smt.training.search.hosts.host_orders import Orders, Unit, Uplinks
from p2smt.training.search.hosts.hosted_answer import HostsAnswer
from p2smt.training.search.hosts.ideal import Ideal, device_seconds, one_leaf
from p2smt.training.search.hosts.search import plan_on_hosts
from p2smt.training.search.plan import plan
from p2smt.training.search.question import PlanQuestion, SpaceLimits
from p2smt.training.search.strategies import space_between, space_of
from p2smt.training.strategy import AXES, EXPERT_AXES, Batch, Recompute, Strategy
from p2smt.training.transformer import Experts, LayerKind, LayerRun, Mlp, Transformer
from tests.oracles.mixture_plans import has_numbers
from tests.tiers import but_every, but_the_first
from tests.training.search.hosts.test_brute_force import (
    CLUSTERS,
    FOUR,
    NO_LIMIT,
    BruteForce,
    names_of,
)
from tests.training.search.hosts.test_brute_force import question as dense

MIXTURE = Transformer(
    *("mixture", 4, 1024, 8, 4, 2048, True, 4000, 128),
    experts=Experts(8, 2, 512, shared_width=256, groups=4, top_groups=2),
    order=(LayerRun(2, (LayerKind(), LayerKind(mlp=Mlp.EXPERTS))),),
)
THREE = ["n1", "n2", "n4"]
HOST = dict.fromkeys(("host_attention_s", "host_mlp_s", "host_experts_s", "host_expert_s"), 1e-5)
LAYERS = LayerConstants(low=(("fp8", 0.4),), **HOST)
FEWEST = SpaceLimits(
    cp=1,
    micro_batch=1,
    vpp=1,
    zero=(1,),
    recompute=(Recompute.NONE,),
    overlap=(False,),
    ep=4,
    etp=1,
)
FEW = replace(FEWEST, cp=2, ep=8, etp=2, micro_batch=2)
MORE = replace(FEW, zero=(0, 1), overlap=None, vpp=2)


def question(
    name: str, sequences: int, space: SpaceLimits, hosts: Sequence[str] = FOUR, speed: int = 20
) -> PlanQuestion:
    found = dense(name, sequences, SpaceLimits(), hosts, speed)
    efficiency = replace(found.efficiency, layers=LAYERS)
    return replace(found, model=MIXTURE, efficiency=efficiency, space=space)


def numbered(asked: PlanQuestion) -> PlanQuestion:
    """The same for a launcher, which numbers its ranks once and runs all of them."""
    return replace(asked, launcher="one")


def sides(strategy: Strategy) -> tuple[tuple[tuple[str, ...], tuple[int, ...]], ...]:
    return (AXES, strategy.sizes), (EXPERT_AXES, strategy.expert_sizes)


def pairs_inside(asked: PlanQuestion, strategy: Strategy) -> Iterator[tuple[CellGrid, CellGrid]]:
    """Both matrices of a node, as consistent pairs have them."""
    found = []
    for names, sizes in sides(strategy):
        axes = tuple(map(ParallelismAxis, names, sizes))
        some = next(axis.name for axis in axes if axis.size > 1)
        request = Request(RequestKind.ALL_REDUCE, (some,), 1)
        found.append(grids(Problem(asked.topology, axes, (request,))))
    for one in found[0]:
        for other in found[1]:
            if one.inside[0] == other.inside[0]:
                FoldedPlacement(Placement(one.inside), Placement(other.inside))
                yield one, other


@cache
def orders_of(hosts: tuple[int, ...], stages: int, cells: int) -> tuple[IntArray, IntArray]:
    """Orders of both sides, all of the hosts: every stage and pipeline is on the same ones."""
    every = np.array(list(permutations(hosts, cells)))
    columns: dict[object, list[int]] = {}
    for at, order in enumerate(every.tolist()):
        wide = len(order) // stages
        key = frozenset(tuple(order[n::wide]) for n in range(wide))
        columns.setdefault(key, []).append(at)
    both = [(a, b) for same in columns.values() for a in same for b in same]
    return every, np.array(both)


EXPERTS_ALONE = {"ed", "ep", "et"}


@dataclass
class OfMixtures(BruteForce):
    """The same with both sides; each request is costed device by device."""

    _sides: dict[object, list[float]] = field(default_factory=dict)

    def _of_row(self, columns: StrategyColumns, done: Any, row: int, batch: Batch) -> float:
        asked, one = self.asked, done.take(np.array([row]))
        run = TrainingRun(asked.model, batch, columns.strategy(row))
        constants, free = asked.efficiency, {r.column.name: 0.0 for r in one.requests}
        requests = axis_requests(*astuple_of(run), constants.framework, constants)
        hosts = asked.topology.hosts
        assert hosts is not None
        found = []
        for pair in pairs_inside(asked, run.strategy):
            orders, both = orders_of(hosts.slots, pair[0].outer[0], pair[0].cells)
            if asked.launcher:
                both = both[[self._is_numbered(run, pair, orders[one]) for one in both]]
            if not len(both):
                continue
            prices: dict[str, Any] = dict(free)
            for request in requests:
                if request.axes:
                    side = int(bool(EXPERTS_ALONE & set(request.axes)))
                    each = self._each(
                        run, pair[side], sides(run.strategy)[side][0], request, orders
                    )
                    prices[request.name] = each[both[:, side]]
            found.append(float(combine(one, prices).min()) / batch.sequences)
        return min(found)

    def _is_numbered(
        self, run: TrainingRun, pair: tuple[CellGrid, CellGrid], slots: IntArray
    ) -> bool:
        ranks = (grid.ranks(one) for grid, one in zip(pair, slots, strict=True))
        sizes = (run.strategy.sizes, run.strategy.expert_sizes)
        return has_numbers(*(one.reshape(of) for one, of in zip(ranks, sizes, strict=True)))

    def _each(
        self,
        run: TrainingRun,
        grid: CellGrid,
        names: Sequence[str],
        request: AxisRequest,
        orders: IntArray,
    ) -> FloatArray:
        real = sent(run, request)
        axes = [names.index(axis) for axis in real.axes]
        key = grid, real.axes, real.kind, real.payload_bytes
        if key not in self._sides:
            self._sides[key] = [
                single_time(
                    self.asked.topology, grid.ranks(slots), axes, real.kind, real.payload_bytes
                ).seconds
                for slots in orders
            ]
        efficiency = self.asked.efficiency
        return np.array([trained_seconds(efficiency, real, s) for s in self._sides[key]])


def astuple_of(run: TrainingRun) -> tuple[Transformer, Batch, Strategy]:
    return run.model, run.batch, run.strategy


@cache
def brute_force_s(
    name: str,
    batches: tuple[int, int],
    space: SpaceLimits,
    hosts: tuple[str, ...],
    speed: int,
    once: bool,
) -> float:
    asked = question(name, batches[1], space, hosts, speed)
    return OfMixtures(numbered(asked) if once else asked).least_s(*batches)


def held(
    name: str,
    batches: tuple[int, int],
    space: SpaceLimits,
    hosts: Sequence[str],
    speed: int,
    once: bool = False,
) -> HostsAnswer:
    """Hold an answer against brute force: equal where it is proved, else within its gap."""
    asked = question(name, batches[1], space, hosts, speed)
    asked = numbered(asked) if once else asked
    found = plan_on_hosts(asked, names_of(asked), batches, SearchLimits(time_limit_s=600))
    best, least_s = found.best[0], brute_force_s(name, batches, space, tuple(hosts), speed, once)
    assert found.bound_s <= least_s * (1 + 1e-9)
    if found.status is Status.OPTIMAL:
        assert best.sequence_s == pytest.approx(least_s, rel=1e-9)
    assert least_s * (1 - 1e-9) <= best.sequence_s <= least_s * (1 + found.gap) * (1 + 1e-9)
    assert batches[0] <= best.run.batch.sequences <= batches[1]
    assert len(best.where.hosts) * 2 == best.run.strategy.devices
    again = predict_on(best.run, best.where, asked.efficiency)
    assert again.time.iteration_s == best.prediction.time.iteration_s
    return found


@pytest.mark.parametrize("few", [0, 3000])
@pytest.mark.parametrize("name", ["scarce", "spines"])
def test_the_best_mixture_is_that_of_brute_force(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every pair of orders looked at where no bound meets the answer, and by boxes alone."""
    monkeypatch.setattr(search, "FEW_ORDERS", few)
    found = held(name, (6, 6), FEWEST, THREE, 20)
    assert found.status is Status.OPTIMAL
    assert len(found.best[0].where.hosts) > 1


@pytest.mark.parametrize("few", [0, 3000])
@pytest.mark.parametrize("name", ["scarce", "spines"])
def test_so_is_the_best_of_those_whose_ranks_are_numbered_once(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FEW_ORDERS", few)
    found = held(name, (6, 6), replace(FEWEST, ep=8, etp=2), THREE, 20, once=True)
    assert len(found.best[0].where.hosts) > 1
    for one in found.best:
        lie = one.where
        ranks = [np.array(of.ranks).reshape(of.axis_sizes) for of in (lie.ranks, lie.experts) if of]
        assert has_numbers(*ranks)


def test_both_orders_have_the_same_stages_and_pipelines() -> None:
    """Of all pairs none is missing, and no known one is wrong."""
    asked = question("scarce", 8, FEW)
    tree = switch_tree(asked.topology)
    pools = tree.pool_of()
    ideal = Ideal.of(asked, (8, 8), 4, NO_LIMIT)
    hosts = asked.topology.hosts
    assert ideal is not None
    assert hosts is not None
    orders = Orders(Uplinks(asked.topology), asked.efficiency)
    met = set()
    for row in ideal.rows[::9].tolist():
        work = ideal.candidates.whole_work.take(np.array([row]))
        for bound_s, found in ideal.insides(row):
            unit = Unit(ideal.run(row), found, work, bound_s)
            stages = unit.grid.outer[0]
            key = tuple(grid.outer for grid in found)
            if key in met:
                continue
            met.add(key)
            every, both = orders_of(hosts.slots, stages, 4)

            def kinds(pair: IntArray) -> tuple[int, ...]:
                return tuple(pools[slot] for slot in pair.ravel().tolist())

            wanted = {kinds(every[list(pair)]) for pair in both.tolist()}
            assert {kinds(pair) for pair in orders.every(unit, tree)} == wanted
            for pair in (*orders.every(unit, tree), *orders.known(unit)):
                mine, other = (set(map(tuple, one.reshape(stages, -1).T.tolist())) for one in pair)
                assert mine == other
    assert {key[0][0] for key in met} >= {1, 2, 4}


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", but_every(7, product(CLUSTERS, (5, 20, 80), (0, 3000))), ids=str)
def test_more_mixtures_and_batches(
    case: tuple[str, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, speed, few = case
    monkeypatch.setattr(search, "FEW_ORDERS", few)
    found = held(name, (7, 8), FEW, FOUR, speed)
    assert few == 0 or found.status is Status.OPTIMAL


@pytest.mark.parametrize("name", but_the_first("scarce", "spines", "all"))
def test_no_pair_of_orders_undercuts_its_bounds(name: str) -> None:
    """Loads of any order, the ideal leaf, and what boxes say of one side's order alone."""
    asked = question(name, 8, FEW)
    orders = Orders(Uplinks(asked.topology), asked.efficiency)
    tree, tried = switch_tree(asked.topology), 0
    for nodes in (2, 4):
        ideal = Ideal.of(asked, (8, 8), nodes, NO_LIMIT)
        assert ideal is not None
        for row in ideal.rows[::97].tolist():
            one = ideal.candidates.whole_work.take(np.array([row]))
            for bound_s, found in list(ideal.insides(row))[::2]:
                unit = Unit(ideal.run(row), found, one, bound_s)
                every = orders.every(unit, tree)[::23]
                seconds = orders.seconds(unit, every)
                boxes = LoadBoxes(
                    *(unit, orders.sides(unit), tree, NO_LIMIT),
                    lambda _: None,
                    lambda: 1.0,
                    {},
                )
                for pair, least_s in zip(every, seconds, strict=True):
                    ranks = [g.ranks(one) for g, one in zip(found, pair, strict=True)]
                    where = HostRanks.of(asked.topology, names_of(asked), *ranks)
                    exact = predict_on(unit.run, where, asked.efficiency).time.iteration_s / 8
                    assert exact >= least_s * (1 - 1e-12)
                    assert least_s >= bound_s * (1 - 1e-11)
                    assert exact >= boxes._least_s(boxes._corner(pair[unit.leading])) * (1 - 1e-9)
                    tried += 1
    assert tried > 10


def test_no_mixture_takes_less_of_its_devices_than_computing_does() -> None:
    for graphs in ("none", "partial"):
        asked = replace(question("ample", 12, MORE), graphs=graphs)
        least_s = device_seconds(asked)
        for nodes in (1, 2, 4):
            ideal = Ideal.of(asked, (10, 12), nodes, NO_LIMIT)
            assert ideal is not None
            assert ideal.free_s.min() >= least_s / (2 * nodes) * (1 - 1e-12)


@pytest.mark.parametrize(("nodes", "sequences"), [(1, 8), (2, 24), (4, 32)])
def test_one_batch_is_the_space_of_a_plan(nodes: int, sequences: int) -> None:
    inner = question("ample", sequences, MORE)
    inner = replace(inner, topology=one_leaf(inner.topology, nodes))
    choices = Choices.of(inner)
    every, between = space_of(inner, choices), space_between(inner, choices, sequences, sequences)
    assert between is not None
    found = [between.strategy(row) for row in range(len(between))]
    assert len(set(found)) == len(found)
    assert set(found) == {every.strategy(row) for row in range(len(every))}


def test_even_leaves_are_a_regular_plan() -> None:
    """Any pair of matrices over all levels is a pair of orders on hosts: none is faster."""
    text = """
name: even
library: none
algorithms: [ring]
device: {name: slow, peak: {bf16: 20 TFLOP/s}, memory_bandwidth: 3000 GB/s, memory: 80 GB}
levels:
  - {name: leaf, size: 2, link: {kind: switch, bandwidth: 6 GB/s, latency: 5 us, fabric: roce}}
  - {name: node, size: 2, link: {kind: switch, bandwidth: 25 GB/s, latency: 5 us, fabric: roce}}
  - {name: gpu, size: 2, link: {kind: switch, bandwidth: 200 GB/s, latency: 1 us, fabric: nvlink4}}
"""
    regular = parse_topology(text, "even")
    switches = """switches:
  - {name: a, hosts: "n[1-2]"}
  - {name: b, hosts: "n[3-4]"}
"""
    named = parse_topology(text + switches, "even")
    asked = replace(question("ample", 8, FEWEST), topology=named)
    found = plan_on_hosts(asked, names_of(asked), limits=SearchLimits(time_limit_s=600))
    best = plan(replace(asked, topology=regular)).best
    assert best is not None
    assert found.status is Status.OPTIMAL
    assert found.best[0].prediction.time.iteration_s == pytest.approx(best.iteration_s, rel=1e-9)
