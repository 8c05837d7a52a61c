"""The same strategy in its best order: of matrices, or of the hosts of a job."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from p2smt.cluster.allocation import allocated
from p2smt.errors import InputError, OutOfTimeError
from p2smt.parallelism.placement import Placement
from p2smt.parallelism.rank_list import inside_matrix
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.training.efficiency import TrainingRun
from p2smt.training.formulas.stages import StrategyColumns
from p2smt.training.iteration import predict
from p2smt.training.on_hosts import HostRanks
from p2smt.training.prediction import BestRun, RunEstimate
from p2smt.training.search.branch import sides_of
from p2smt.training.search.candidates import Candidates
from p2smt.training.search.hosts.answer import HostedStrategy
from p2smt.training.search.hosts.ideal import one_leaf
from p2smt.training.search.hosts.orders import Unit
from p2smt.training.search.hosts.search import CLOSED, WITHOUT_LIMIT_S, HostSearch
from p2smt.training.search.pairs import placed_candidates
from p2smt.training.search.prices import SceneCache
from p2smt.training.search.question import PlanQuestion


def best_placement(
    question: PlanQuestion, now: RunEstimate, limits: SearchLimits | None = None
) -> BestRun:
    """The fastest placement of a strategy under the rules of a question: all are looked at.

    An order that no matrix expresses may be faster: then that is the best.
    """
    strategy = now.run.strategy
    if strategy.dp_replicate > 1:
        return BestRun(None, Status.UNKNOWN, "copies of shards are not placed by the search")
    asked = replace(question, batch=now.run.batch)
    candidates = Candidates.of(asked, StrategyColumns.of((strategy,)))
    if not candidates.placements[0]:
        return BestRun(None, Status.INFEASIBLE, "no placement obeys the rules")
    watch = StopWatch.start(limits or SearchLimits())
    placed = placed_candidates(candidates, SceneCache(question.topology), watch)
    try:
        seconds, place = placed.best(np.array([0], dtype=np.int64))
    except OutOfTimeError:
        return BestRun(None, Status.UNKNOWN, "the time limit came first")
    if seconds[0] >= now.iteration_s * (1 - SAME):
        return BestRun(now, Status.OPTIMAL)
    matrix, experts = sides_of(placed.placed(0).matrix(int(place[0])))
    sides = Placement(matrix), None if experts is None else Placement(experts)
    said = predict(now.run, question.topology, question.efficiency, *sides)
    found = replace(now, placement=sides[0], experts=sides[1], prediction=said, ranks=None)
    return BestRun(found, Status.OPTIMAL)


def best_hosts(
    question: PlanQuestion, now: RunEstimate, limits: SearchLimits | None = None
) -> BestRun:
    """The fastest choice and order of the job's hosts, ranks in each node being as they are.

    Experts of a mixture that have the ranks of attention keep them: that is how it is launched.

    Args:
        question: its topology names the hosts.
        now: the run on hosts in the order in which it is launched.
        limits: wall-clock limit; None: a minute.
    """
    lie, run = now.on_hosts, now.run
    grids = None if lie is None else _grids(run, lie)
    if lie is None or grids is None or run.strategy.dp_replicate > 1:
        return BestRun(None, Status.UNKNOWN, "ranks lie in nodes as no matrix says")
    asked = replace(question, topology=allocated(question.topology, lie.listed), batch=run.batch)
    once = run.model.experts is None or lie.of_experts(run.strategy).ranks == lie.ranks.ranks
    if not once:
        asked = replace(asked, launcher="")  # no launcher numbers ranks so
    try:
        unit = _unit(asked, now, grids)
    except InputError as error:
        return BestRun(None, Status.UNKNOWN, str(error))
    watch = StopWatch.start(limits or SearchLimits())
    if watch.remaining_s() is None:
        watch = watch.ending_at(WITHOUT_LIMIT_S)
    many = run.batch.sequences
    search = HostSearch(asked, (many, many), lie.listed, watch, numbered_once=once)
    first = HostedStrategy(run, lie, now.prediction)
    search.found[len(lie.hosts), run.strategy, many] = first
    search.best_s = first.sequence_s
    search.settle_unit(unit)
    best = min(search.found.values(), key=lambda one: one.sequence_s)
    proved = search.bound_s() >= best.sequence_s * (1 - 2 * CLOSED)
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    return BestRun(now if best is first else best.estimate(asked), status)


def _grids(run: TrainingRun, lie: HostRanks) -> tuple[CellGrid, ...] | None:
    """The grid of hosts of attention, and of a mixture that of experts; None: no matrix says how
    ranks lie in nodes."""
    lists = [lie.ranks]
    if run.model.experts is not None:
        lists.append(lie.of_experts(run.strategy))
    found = []
    for ranks in lists:
        inside = inside_matrix(ranks, lie.topology)
        if inside is None:
            return None
        outer = (size // prod(row) for size, row in zip(ranks.axis_sizes, inside, strict=True))
        found.append(CellGrid(inside, tuple(outer)))
    return tuple(found)


def _unit(question: PlanQuestion, now: RunEstimate, grids: tuple[CellGrid, ...]) -> Unit:
    """The strategy and its matrices inside nodes, with what it takes where nothing slows uplinks.

    Raises:
        InputError: requests of the strategy are not searched on hosts.
    """
    run = now.run
    leaf = one_leaf(question.topology, grids[0].cells)
    candidates = Candidates.of(
        replace(question, topology=leaf, rules=()), StrategyColumns.of((run.strategy,))
    )
    ideal = predict(run, leaf, question.efficiency, *map(_under_one_switch, grids))
    bound_s = ideal.time.iteration_s / run.batch.sequences
    return Unit(run, grids, candidates.whole_work, bound_s)


def _under_one_switch(grid: CellGrid) -> Placement:
    rows = zip(grid.outer, grid.inside, strict=True)
    return Placement(tuple((cells, *row) for cells, row in rows))
