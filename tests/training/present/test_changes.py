"""Single changes against the whole space; orders against every order; gains that sum up."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from p2smt.api.workload import estimate
from p2smt.errors import InputError
from p2smt.parallelism.matrices import matrices
from p2smt.parallelism.placement import Placement
from p2smt.result import Status
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.search.allocation.grid_question import switch_tree
from p2smt.search.allocation.host_search import every_order
from p2smt.training.efficiency import TrainingRun
from p2smt.training.iteration import predict, predict_on
from p2smt.training.on_hosts import HostRanks
from p2smt.training.present.changes import best_of_fields, single_changes
from p2smt.training.present.comparison import (
    PresentRun,
    RunComparison,
    best_hosts,
    best_placement,
    compare_with,
)
from p2smt.training.present.launch_order import LaunchOrder, parse_order
from p2smt.training.present.priced import Launched
from p2smt.training.search.choices import Choices
from p2smt.training.search.hosts.ideal import one_leaf
from p2smt.training.search.hosts.search import plan_on_hosts
from p2smt.training.search.plan import plan
from p2smt.training.search.question import SEARCHED, PlanQuestion, SpaceLimits, value_of
from p2smt.training.search.strategies import space_of
from p2smt.training.strategy import AXES, Batch, Strategy, parse_strategy, strategy_text
from tests.training.search.hosts.test_brute_force import FEW, FOUR, names_of, question
from tests.training.search.test_plan import MODEL, cluster
from tests.training.test_iteration import WHOLE

SPACE = SpaceLimits(cp=2, micro_batch=4, vpp=2)
FOUR_GPUS = cluster((2, 4), (1e8, 1e10))
YOURS = ("tp=4,pp=2", "tp=2,pp=2,dp=2,sp=1,zero=1", "tp=1,dp=8,recompute=full", "pp=2,vpp=2,dp=4")


def asked(capacity: int = 10**9) -> PlanQuestion:
    return PlanQuestion(MODEL, Batch(16, 64), FOUR_GPUS, WHOLE, SPACE, memory_bytes=capacity)


def at(one: PlanQuestion, hosts: tuple[str, ...] | None = None, order: str = "") -> Launched:
    chosen = parse_order(order) if order else LaunchOrder()
    return Launched(one.topology, one.efficiency, one.capacity_bytes, hosts, chosen)


def run_of(one: PlanQuestion, text: str) -> TrainingRun:
    return TrainingRun(one.model, one.batch, parse_strategy(text))


def differing(yours: Strategy, other: Strategy) -> list[str]:
    """Searched fields in which strategies differ; dp follows, and sp where tp ends."""
    names = [name for name in SEARCHED if value_of(yours, name) != value_of(other, name)]
    follows = {"dp"} | ({"sequence_parallel"} if other.tp == 1 < yours.tp else set())
    return [name for name in names if name not in follows]


def valid_changes(one: PlanQuestion, yours: Strategy, at: Launched) -> dict[Strategy, float]:
    """By the whole space: those that differ in one field, with their times."""
    devices = one.topology.devices if at.hosts is None else yours.devices
    inner = one
    if at.hosts is not None:
        each = one.topology.devices_under(one.topology.node_level)
        inner = replace(one, topology=one_leaf(one.topology, devices // each))
    columns = space_of(inner, Choices.of(inner))
    every = (columns.strategy(row) for row in range(len(columns)))
    found = {}
    for other in every:
        if len(differing(yours, other)) == 1:
            said = estimate(
                *(one.model, one.topology, other, one.batch, one.efficiency),
                memory=one.capacity_bytes,
                hosts=at.hosts,
            )
            if said.fits:
                found[other] = said.iteration_s
    return found


@pytest.mark.parametrize("text", YOURS)
@pytest.mark.parametrize("share", [4.0, 0.5])
def test_single_changes_are_those_of_the_whole_space(text: str, share: float) -> None:
    one = asked()
    run = run_of(one, text)
    needed = at(one).price(run).prediction.memory.total
    one = asked(int(share * needed))
    expected = valid_changes(one, run.strategy, at(one))
    found = single_changes(one, run, at(one))
    assert {c.found.run.strategy: c.found.iteration_s for c in found} == expected
    times = [c.found.iteration_s for c in found]
    assert times == sorted(times)
    assert all([c.field] == differing(run.strategy, c.found.run.strategy) for c in found)
    fields = [c.field for c in best_of_fields(found)]
    assert len(fields) == len(set(fields))
    if share > 1:
        assert len(fields) > 2


def test_single_changes_on_hosts_are_launched_alike() -> None:
    one = question("scarce", 8, SpaceLimits(micro_batch=2, vpp=2), FOUR)
    hosts = ("n6", "n1", "n4", "n2")
    run = run_of(one, "tp=2,pp=2,dp=2")
    found = single_changes(one, run, at(one, hosts))
    expected = valid_changes(one, run.strategy, at(one, hosts))
    assert {c.found.run.strategy: c.found.iteration_s for c in found} == expected
    assert len(expected) > 5


def test_each_change_has_the_largest_batch_of_a_range() -> None:
    one = asked()
    run = replace(run_of(one, "tp=2,dp=4"), batch=Batch(28, 64))
    found = single_changes(one, run, at(one), (20, 31))
    batches = {c.text: c.found.run.batch.sequences for c in found}
    assert batches["tp 2 -> 1"] == 24
    assert batches["mbs 1 -> 3"] == 24
    assert batches["pp 1 -> 2"] == 30
    rates = [c.found.tokens_per_s for c in found]
    assert rates == sorted(rates, reverse=True)


def test_what_the_launcher_lacks_is_no_change() -> None:
    one = replace(asked(), lacks=lambda strategy, _: ("no pipeline",) * (strategy.pp > 1))
    found = single_changes(one, run_of(one, YOURS[0]), at(one))
    assert {(c.field, c.found.run.strategy.pp) for c in found} == {("pp", 1)}


# The same strategy in its best order.


@pytest.mark.parametrize("text", YOURS)
@pytest.mark.parametrize("sizes", [(2, 4), (4, 2), (2, 2, 2)])
def test_the_best_placement_is_that_of_every_matrix(text: str, sizes: tuple[int, ...]) -> None:
    topology = cluster(sizes, (1e8, 1e9, 1e10)[-len(sizes) :])
    one = replace(asked(), topology=topology)
    run = run_of(one, text)
    every = [
        predict(run, topology, WHOLE, Placement(tuple(map(tuple, matrix.tolist()))))
        for matrix in matrices(topology.sizes, run.strategy.sizes)
    ]
    least_s = min(each.time.iteration_s for each in every)
    now = at(one).price(run)
    found = best_placement(one, now)
    assert found.status is Status.OPTIMAL
    assert found.found is not None
    assert found.found.iteration_s == pytest.approx(least_s, rel=1e-12)
    assert found.found.iteration_s <= now.iteration_s


@pytest.mark.parametrize("name", ["scarce", "unequal", "spines"])
@pytest.mark.parametrize("text", ["tp=2,pp=2,dp=2", "tp=2,dp=4,zero=1", "pp=4,dp=2"])
def test_the_best_order_of_hosts_is_that_of_every_order(name: str, text: str) -> None:
    one = question(name, 8, SpaceLimits(), FOUR)
    run = run_of(one, text)
    now = at(one, tuple(names_of(one))[::-1]).price(run)
    assert now.on_hosts is not None
    inside = now.on_hosts.inside
    assert inside is not None
    outer = [s // int(np.prod(row)) for s, row in zip(run.strategy.sizes, inside, strict=True)]
    grid = CellGrid(inside, tuple(outer))
    every = [
        HostRanks.of(one.topology, names_of(one), grid.ranks(slots))
        for slots in every_order(switch_tree(one.topology), grid.cells)
    ]
    least_s = min(predict_on(run, where, WHOLE).time.iteration_s for where in every)
    found = best_hosts(one, now)
    assert found.status is Status.OPTIMAL
    assert found.found is not None
    assert found.found.iteration_s == pytest.approx(least_s, rel=1e-12)
    assert found.found.on_hosts is not None
    assert found.found.on_hosts.inside == inside


# How ranks are numbered.


@pytest.mark.parametrize("axes", [*permutations(AXES)][::5])
def test_a_launch_order_is_row_major(axes: tuple[str, ...]) -> None:
    strategy = Strategy(tp=2, pp=3, dp=5, cp=7)
    laid = LaunchOrder(axes).laid(np.arange(210), strategy)
    assert laid.shape == strategy.sizes
    for rank in range(0, 210, 11):
        rest, coordinates = rank, {}
        for axis in reversed(axes):  # the last varies fastest
            rest, coordinates[axis] = divmod(rest, getattr(strategy, axis))
        assert laid[tuple(coordinates[axis] for axis in AXES)] == rank


def test_orders_are_read_as_megatron_writes_them() -> None:
    assert parse_order("tp-cp-ep-dp-pp") == parse_order("tp-cp-dp-pp") == LaunchOrder()
    assert parse_order("tp-cp-ep-pp-dp").axes == ("dp", "pp", "cp", "tp")
    assert parse_order("tp-cp-ep-pp-dp").text == "tp-cp-pp-dp"
    for text in ("tp-dp-pp", "tp-cp-dp-pp-pp", "tp,cp,dp,pp", "tp-ep-cp-ep-dp-pp", ""):
        with pytest.raises(InputError, match="each of tp, cp, dp, pp once"):
            parse_order(text)


def test_another_order_takes_what_its_ranks_take() -> None:
    """By a matrix where one expresses it, else device by device."""
    one = asked()
    run = run_of(one, "tp=2,pp=2,dp=2")
    found = at(one, order="tp-cp-pp-dp").price(run)
    assert found.placement == Placement(((1, 2), (2, 1), (1, 1), (1, 2)))
    flat = replace(one, topology=cluster((8,), (1e9,)))
    inside = at(flat, order="tp-cp-pp-dp").price(run)
    assert inside.placement is None
    assert inside.ranks is not None
    assert inside.ranks.rank_tensor()[1, 0, 0, 0] == 2  # pp next to tp, not dp
    usual = at(flat).price(run)
    assert inside.iteration_s == pytest.approx(usual.iteration_s, rel=1e-12)  # one switch
    best = best_placement(flat, inside).found
    assert best is not None
    assert best.iteration_s <= inside.iteration_s


def test_orders_of_experts_are_megatrons() -> None:
    mixed = Strategy(tp=2, dp=4, ep=2)
    LaunchOrder(("dp", "pp", "cp", "tp")).check(mixed)
    with pytest.raises(InputError, match="ranks of experts"):
        LaunchOrder(("tp", "pp", "cp", "dp")).check(mixed)


# Side by side.


def compared(one: PlanQuestion, text: str, hosts: tuple[str, ...] | None = None) -> RunComparison:
    if hosts is None:
        answer = plan(one)
        best = answer.top[0].estimate(one) if answer.top else None
    else:
        found = plan_on_hosts(one, hosts)
        best = found.best[0].estimate(found.question)
    return compare_with(one, PresentRun(run_of(one, text), at(one, hosts)), best)


@pytest.mark.parametrize("text", YOURS)
def test_order_and_degrees_sum_up_to_the_gain(text: str) -> None:
    found = compared(asked(), text)
    yours, ordered, best = found.yours, found.ordered.found, found.best
    assert yours is not None
    assert ordered is not None
    assert best is not None
    assert found.gain is not None
    assert found.order_gain is not None
    assert found.degrees_gain is not None
    assert found.gain.gain == pytest.approx(best.tokens_per_s / yours.tokens_per_s - 1)
    assert found.order_gain.gain + found.degrees_gain == pytest.approx(found.gain.gain)
    assert found.order_gain.gain >= -1e-12
    assert found.degrees_gain >= -1e-12
    assert all(one.found.iteration_s < yours.iteration_s for one in found.changes)


def test_the_parts_on_hosts_have_gains_of_their_own() -> None:
    hosts = ("n1", "n4", "n2", "n6")  # replicas lie under two leaves each
    found = compared(question("scarce", 8, FEW, FOUR), "tp=2,dp=2,pp=2", hosts)
    assert found.order_gain is not None
    assert found.degrees_gain is not None
    assert found.gain is not None
    assert found.order_gain.gain > 1e-3
    assert found.degrees_gain > 1e-3
    assert found.order_gain.gain + found.degrees_gain == pytest.approx(found.gain.gain)


def test_yours_that_is_not_searched_may_be_the_best() -> None:
    """A space without its degrees; the answer is then yours in its best order."""
    one = replace(asked(), space=replace(SPACE, tp=1, zero=(3,), recompute=asked().recomputes[-1:]))
    whole = plan(asked()).top[0]
    found = compared(one, strategy_text(whole.strategy))
    assert found.beyond
    assert found.best is found.ordered.found
    assert found.degrees_gain == pytest.approx(0.0)


def test_yours_that_breaks_a_rule_has_no_time_but_ways_out() -> None:
    found = compared(asked(), "tp=2,dp=4,mbs=3")
    assert found.yours is None
    assert not found.runs
    assert "rule batch" in found.broken
    assert found.gain is None
    assert found.order_gain is None
    assert not found.inside_error
    assert found.best is not None
    assert {one.field for one in found.changes} == {"micro_batch"}


def test_yours_of_other_devices_is_refused() -> None:
    one = question("scarce", 8, SpaceLimits(), FOUR)
    with pytest.raises(InputError, match="takes 4 devices, and there are 8"):
        PresentRun(run_of(asked(), "tp=4"), at(asked()))
    hosts = tuple(FOUR)
    for text, rule in (("tp=2,dp=5", "and there are 8"), ("pp=3", "no whole hosts of 2")):
        with pytest.raises(InputError, match=rule):
            PresentRun(run_of(one, text), at(one, hosts))
