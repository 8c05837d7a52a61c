"""The same strategy in its best order: of matrices, or of the hosts of a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from p2smt.cluster.allocation import allocated
from p2smt.errors import InputError, OutOfTimeError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.search.allocation.grids import CellGrid
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import predict
from p2smt.training.prediction import RunEstimate
from p2smt.training.search.branch import sides_of
from p2smt.training.search.candidates import Candidates
from p2smt.training.search.hosts.answer import HostedStrategy
from p2smt.training.search.hosts.ideal import one_leaf
from p2smt.training.search.hosts.orders import Unit
from p2smt.training.search.hosts.search import CLOSED, WITHOUT_LIMIT_S, HostSearch
from p2smt.training.search.pairs import placed_candidates
from p2smt.training.search.prices import SceneCache
from p2smt.training.search.question import PlanQuestion


@dataclass(frozen=True, slots=True)
class BestOrder:
    """A run in its best order of ranks; OPTIMAL: no other is faster.

    ``found`` None: it was not searched for, and ``reason`` says why.
    """

    found: RunEstimate | None
    status: Status
    reason: str = ""


def best_placement(
    question: PlanQuestion, now: RunEstimate, limits: SearchLimits | None = None
) -> BestOrder:
    """The fastest placement of a strategy under the rules of a question: all are looked at.

    An order that no matrix expresses may be faster: then that is the best.
    """
    strategy = now.run.strategy
    if strategy.dp_replicate > 1:
        return BestOrder(None, Status.UNKNOWN, "copies of shards are not placed by the search")
    asked = replace(question, batch=now.run.batch)
    candidates = Candidates.of(asked, StrategyColumns.of((strategy,)))
    if not candidates.placements[0]:
        return BestOrder(None, Status.INFEASIBLE, "no placement obeys the rules")
    watch = StopWatch.start(limits or SearchLimits())
    placed = placed_candidates(candidates, SceneCache(question.topology), watch)
    try:
        seconds, place = placed.best(np.array([0], dtype=np.int64))
    except OutOfTimeError:
        return BestOrder(None, Status.UNKNOWN, "the time limit came first")
    if seconds[0] >= now.iteration_s * (1 - SAME):
        return BestOrder(now, Status.OPTIMAL)
    matrix, experts = sides_of(placed.placed(0).matrix(int(place[0])))
    sides = Placement(matrix), None if experts is None else Placement(experts)
    said = predict(now.run, question.topology, question.efficiency, *sides)
    found = replace(now, placement=sides[0], experts=sides[1], prediction=said, ranks=None)
    return BestOrder(found, Status.OPTIMAL)


def best_hosts(
    question: PlanQuestion, now: RunEstimate, limits: SearchLimits | None = None
) -> BestOrder:
    """The fastest choice and order of the job's hosts, ranks in each node being as they are.

    Args:
        question: its topology names the hosts.
        now: the run on hosts in the order in which it is launched.
        limits: wall-clock limit; None: a minute.
    """
    lie, run = now.on_hosts, now.run
    inside = None if lie is None else lie.inside
    if lie is None or inside is None or run.strategy.dp_replicate > 1:
        return BestOrder(None, Status.UNKNOWN, "ranks lie in nodes as no matrix says")
    asked = replace(question, topology=allocated(question.topology, lie.listed), batch=run.batch)
    try:
        unit = _unit(asked, now, inside)
    except InputError as error:
        return BestOrder(None, Status.UNKNOWN, str(error))
    watch = StopWatch.start(limits or SearchLimits())
    if watch.remaining_s() is None:
        watch = watch.ending_at(WITHOUT_LIMIT_S)
    many = run.batch.sequences
    search = HostSearch(asked, (many, many), lie.listed, watch)
    first = HostedStrategy(run, lie, now.prediction)
    search.found[len(lie.hosts), run.strategy, many] = first
    search.best_s = first.sequence_s
    search.settle_unit(unit)
    best = min(search.found.values(), key=lambda one: one.sequence_s)
    proved = search.bound_s() >= best.sequence_s * (1 - 2 * CLOSED)
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    return BestOrder(now if best is first else best.estimate(asked), status)


def _unit(question: PlanQuestion, now: RunEstimate, inside: Matrix) -> Unit:
    """The strategy and its matrix inside nodes, with what it takes where nothing slows uplinks.

    Raises:
        InputError: requests of the strategy are not searched on hosts.
    """
    run = now.run
    outer = tuple(size // prod(row) for size, row in zip(run.strategy.sizes, inside, strict=True))
    leaf = one_leaf(question.topology, prod(outer))
    candidates = Candidates.of(
        replace(question, topology=leaf, rules=()), StrategyColumns.of((run.strategy,))
    )
    matrix = tuple((cells, *row) for cells, row in zip(outer, inside, strict=True))
    ideal = predict(run, leaf, question.efficiency, Placement(matrix))
    bound_s = ideal.time.iteration_s / run.batch.sequences
    return Unit(run, CellGrid(inside, outer), candidates.whole_work, bound_s)
