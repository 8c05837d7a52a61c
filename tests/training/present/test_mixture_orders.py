"""Mixtures in their best order of hosts, beside every order: of one list of ranks, and of two."""

from __future__ import annotations

import numpy as np
import pytest

from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.rank_list import inside_matrix
from p2smt.result import Status
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.training.efficiency import TrainingRun
from p2smt.training.iteration import predict_on
from p2smt.training.on_hosts import HostRanks
from p2smt.training.present.comparison import best_hosts
from p2smt.training.present.priced import Launched
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import parse_strategy
from tests.training.search.hosts.test_brute_force import names_of
from tests.training.search.hosts.test_mixtures_on_hosts import (
    FEW,
    THREE,
    numbered,
    orders_of,
    question,
)

YOURS = ("dp=6,ep=2,zero=1", "tp=2,dp=3,ep=2,zero=1,sp=1")


Places = tuple[tuple[str, int], ...]


def launched(asked: PlanQuestion, places: Places = (), experts: Places = ()) -> Launched:
    """On the hosts in reverse, or where it is told."""
    known = asked.topology, asked.efficiency, asked.capacity_bytes, tuple(names_of(asked))[::-1]
    return Launched(*known, places=places, expert_places=experts)


def every_s(asked: PlanQuestion, run: TrainingRun, lie: HostRanks, *, once: bool) -> float:
    """The least seconds of an iteration over all orders of the hosts, priced device by device."""
    hosts = asked.topology.hosts
    assert hosts is not None
    grids = []
    for ranks in (lie.ranks, lie.of_experts(run.strategy)):
        inside = inside_matrix(ranks, lie.topology)
        assert inside is not None
        outer = (n // int(np.prod(row)) for n, row in zip(ranks.axis_sizes, inside, strict=True))
        grids.append(CellGrid(inside, tuple(outer)))
    orders, both = orders_of(hosts.slots, run.strategy.pp, grids[0].cells)

    def seconds(pair: IntArray) -> float:
        ranks, theirs = (g.ranks(orders[n]) for g, n in zip(grids, pair, strict=True))
        lies = HostRanks.of(asked.topology, lie.listed, ranks, None if once else theirs)
        return predict_on(run, lies, asked.efficiency).time.iteration_s

    kept = [pair for pair in both if not once or pair[0] == pair[1]]
    return min(map(seconds, kept))


@pytest.mark.parametrize("name", ["scarce", "spines"])
@pytest.mark.parametrize("text", YOURS)
def test_experts_of_one_list_keep_it(text: str, name: str) -> None:
    """Whatever the search for the best may do: a launcher numbers its ranks once."""
    asked = question(name, 6, FEW, THREE)
    run = TrainingRun(asked.model, asked.batch, parse_strategy(text))
    now = launched(asked).price(run)
    assert now.on_hosts is not None
    found = best_hosts(asked, now)
    assert found.status is Status.OPTIMAL
    assert found.found is not None
    lie = found.found.on_hosts
    assert lie is not None
    assert lie.of_experts(run.strategy).ranks == lie.ranks.ranks
    least_s = every_s(asked, run, now.on_hosts, once=True)
    assert found.found.iteration_s == pytest.approx(least_s, rel=1e-9)
    assert found.found.iteration_s <= now.iteration_s


@pytest.mark.parametrize("text", YOURS)
@pytest.mark.parametrize("name", ["scarce", "spines"])
def test_experts_of_a_list_of_their_own_are_ordered_for_themselves(name: str, text: str) -> None:
    """As a plan file without a launcher may have them, be a launcher asked for or not."""
    asked = question(name, 6, FEW, THREE)
    run = TrainingRun(asked.model, asked.batch, parse_strategy(text))
    first, second, third = THREE
    lists = (THREE, (first, third, second))
    places = (tuple((host, local) for host in hosts for local in range(2)) for hosts in lists)
    now = launched(asked, *places).price(run)
    assert now.on_hosts is not None
    assert now.on_hosts.expert_hosts != now.on_hosts.hosts
    found = best_hosts(numbered(asked), now)
    assert found.status is Status.OPTIMAL
    assert found.found is not None
    least_s = every_s(asked, run, now.on_hosts, once=False)
    assert found.found.iteration_s == pytest.approx(least_s, rel=1e-9)
