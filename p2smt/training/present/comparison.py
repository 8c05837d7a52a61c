"""A training as it is launched now beside the best one: what of the gain is the order of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from p2smt.training.gain import RateGain, rate_gain
from p2smt.training.iteration import estimate_range, predict
from p2smt.training.measured.prediction_errors import iteration_range
from p2smt.training.on_hosts import HostRanks
from p2smt.training.prediction import BestRun, RunEstimate
from p2smt.training.present.changes import SingleChange, single_changes
from p2smt.training.present.priced import Launched
from p2smt.training.search.branch import sides_of
from p2smt.training.search.candidates import Candidates
from p2smt.training.search.hosts.host_orders import Unit
from p2smt.training.search.hosts.hosted_answer import HostedStrategy
from p2smt.training.search.hosts.ideal import one_leaf
from p2smt.training.search.hosts.search import CLOSED, WITHOUT_LIMIT_S, HostSearch
from p2smt.training.search.pairs import placed_candidates
from p2smt.training.search.prices import SceneCache
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import RARE_FIELDS, Strategy, key_of


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


@dataclass(frozen=True, slots=True)
class NearMeasured:
    """A strategy as it is planned, and the measured run by ``name`` that it is nearest to."""

    found: RunEstimate
    name: str
    distance: float


@dataclass(frozen=True, slots=True)
class PresentRun:
    """What somebody runs, where and how it is ``launched``.

    ``batches``: the least and the largest that strategies with one field changed may have; None:
    that of the run.  ``assumed``: what its text leaves open, with the values that it has then.

    Raises:
        InputError: it is none of these devices: it does not fill them, or there are not so many.
    """

    run: TrainingRun
    launched: Launched
    batches: tuple[int, int] | None = None
    assumed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        topology, hosts = self.launched.topology, self.launched.hosts
        each = topology.devices_under(topology.node_level)
        most = topology.devices if hosts is None else len(hosts) * each
        needed = self.run.strategy.devices
        self.launched.order.check(self.run.strategy)
        if needed == most or (hosts is not None and needed < most and needed % each == 0):
            return
        rule = f"takes {needed:,} devices, and there are {most:,}"
        if hosts is not None and needed < most:
            rule = f"takes {needed:,} devices, which are no whole hosts of {each}"
        raise InputError("--compare", rule, "change a degree, or leave dp out: it follows")


@dataclass(frozen=True, slots=True)
class RunComparison:
    """What somebody runs, the same in its best order, and the best.

    ``yours`` None: it cannot run, and ``broken`` says the rule.  ``planned``: the best that was
    searched for; None: there is none.  ``near``: the one of those as good as the best that is
    nearest to a measured run.  ``changes``: single ones, the fastest first: those that are faster
    than yours, or, where yours cannot run, those that can.  ``assumed``: as of the present run.
    """

    run: TrainingRun
    launched: Launched
    yours: RunEstimate | None
    broken: str
    ordered: BestRun
    planned: RunEstimate | None
    near: NearMeasured | None
    changes: tuple[SingleChange, ...]
    assumed: tuple[str, ...] = ()

    @property
    def best(self) -> RunEstimate | None:
        """The best that is known: the search may not look at strategies like yours."""
        return (self.ordered.found or self.yours) if self.beyond else self.planned

    @property
    def beyond(self) -> bool:
        """Whether yours in its best order is faster than all that was searched."""
        mine = self.ordered.found or self.yours
        if mine is None or not mine.fits:
            return False
        return self.planned is None or mine.tokens_per_s > self.planned.tokens_per_s * (1 + SAME)

    @property
    def runs(self) -> bool:
        """Whether yours can run: it is valid and fits into memory."""
        return self.yours is not None and self.yours.fits

    @property
    def gain(self) -> RateGain | None:
        """Of the best over yours, in tokens a second; None: one of them has no time."""
        if self.yours is None or self.best is None:
            return None
        return rate_gain(self.yours, self.best)

    @property
    def order_gain(self) -> RateGain | None:
        """What of it the order of ranks gains alone; None: it was not searched for."""
        if self.yours is None or self.ordered.found is None:
            return None
        return rate_gain(self.yours, self.ordered.found)

    @property
    def degrees_gain(self) -> float | None:
        """The rest of the gain, as a part of what yours trains on: both sum up."""
        whole, order = self.gain, self.order_gain
        return None if whole is None or order is None else whole.gain - order.gain

    @property
    def device_gain(self) -> float | None:
        """The gain in tokens a second of a device; None: the best has as many devices as yours, or
        one of them has no time."""
        whole, best = self.gain, self.best
        if whole is None or best is None:
            return None
        mine, then = self.run.strategy.devices, best.run.strategy.devices
        return None if mine == then else (1 + whole.gain) * mine / then - 1

    @property
    def inside_error(self) -> bool:
        """Whether yours takes no longer than the best may take by the error of the model."""
        if self.yours is None or self.best is None:
            return False
        within = iteration_range(self.best, estimate_range(self.best))
        slowest_s = within.high_s / self.best.prediction.tokens
        return self.yours.iteration_s / self.yours.prediction.tokens <= slowest_s * (1 + SAME)

    @property
    def apart(self) -> tuple[str, ...]:
        """Fields of yours that the search does not choose and that the best has otherwise."""
        if self.planned is None:
            return ()
        return tuple(_apart(self.run.strategy, self.planned.run.strategy))


def _apart(yours: Strategy, best: Strategy) -> Iterator[str]:
    for name in ("split", "flash", "dtype", "dropout", "graphs", "fp8_params", *RARE_FIELDS):
        if getattr(yours, name) != getattr(best, name):
            yield key_of(name) if name not in ("recompute_layers", "mtp_chunk") else name


def compare_with(
    question: PlanQuestion,
    present: PresentRun,
    planned: RunEstimate | None,
    near: NearMeasured | None = None,
    limits: SearchLimits | None = None,
) -> RunComparison:
    """What somebody runs beside the best that was planned.

    Args:
        question: what was asked for the best.
        present: its batch may be another than that of the best.
        planned: the best; None: none was found.
        near: as good as the best, and nearest to a measured run.
        limits: of the search for its best order; None: on hosts a minute.
    """
    run, launched = present.run, present.launched
    yours, broken = _priced(run, launched)
    ordered = BestRun(None, Status.UNKNOWN, broken)
    if yours is not None:
        search = best_placement if launched.hosts is None else best_hosts
        ordered = search(question, yours, limits)
    changes = single_changes(question, run, launched, present.batches)
    if yours is not None and yours.fits:
        least = yours.tokens_per_s * (1 + SAME)
        changes = [one for one in changes if one.found.tokens_per_s > least]
    found = (run, launched, yours, broken, ordered, planned, near, tuple(changes))
    return RunComparison(*found, present.assumed)


def _priced(run: TrainingRun, launched: Launched) -> tuple[RunEstimate | None, str]:
    """Yours, or the rule that it breaks in words."""
    try:
        return launched.price(run), ""
    except InputError as error:
        return None, str(error)
