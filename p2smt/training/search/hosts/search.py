"""The search: one queue of host counts, strategies and matrices inside nodes, by their bounds.

What is taken from the queue has the least bound of all that is left.  A host count is opened into
its strategies, a strategy into its matrices inside the nodes (units), and of a unit the orders that
are known beforehand are costed.  Where one takes what the ideal leaf takes, the unit is settled.
Else it goes back once; then every order is looked at if there are few, or boxes of loads are
emptied one by one.

The fastest strategy by the model is often one that nobody has run; of those near it a measured one
may be the better choice.  So each strategy near the best one is searched for an order that is near,
until it has one or none is left.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

import numpy as np

from p2smt.cluster.allocation import allocated, check_orders_priced, check_stated
from p2smt.errors import EncodingBug, InputError
from p2smt.parallelism.placement import IntArray
from p2smt.problems.allocation import AllocationProblem, Counts
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.allocation.grid_question import Tree, switch_tree
from p2smt.search.allocation.host_search import number_of_orders
from p2smt.training.iteration import predict_on
from p2smt.training.on_hosts import HostRanks
from p2smt.training.search.hosts.boxes import LoadBoxes
from p2smt.training.search.hosts.host_orders import Orders, Unit, Uplinks
from p2smt.training.search.hosts.hosted_answer import (
    HostedStrategy,
    HostsAnswer,
    HostsNearBest,
    HostsSearched,
)
from p2smt.training.search.hosts.ideal import Ideal, device_seconds, nearest_to_fitting
from p2smt.training.search.question import COPIES, PlanQuestion, Prices
from p2smt.training.strategy import Strategy

WITHOUT_LIMIT_S = 60.0
"""Seconds after which a search without a limit stops."""
CLOSED = 1e-9
"""Relative: what differs by less is as good."""
_TOGETHER = 256
"""Strategies that are bounded at once."""
_COSTED = 3
"""Of the known orders of a unit so many are costed device by device."""
FEW_ORDERS = 3000
"""Up to so many orders of a unit are looked at one by one."""


@dataclass(frozen=True)
class _Count:
    nodes: int


@dataclass(frozen=True)
class _Rest:
    """The strategies of a host count from this one on, by what they compute."""

    ideal: Ideal
    first: int


@dataclass(frozen=True)
class _Row:
    ideal: Ideal
    row: int


_Item = _Count | _Rest | _Row | Unit


@dataclass
class HostSearch:
    """A search on the hosts of a job; ``found`` is what was costed, ``open_s`` bounds left open.

    Of what takes up to ``1 + question.within`` times as long as the best nothing is forgotten: it
    is in the queue, or among the ``units`` that were opened.  ``most_hosts``: so many may be used.
    ``numbered_once``: experts have the ranks of attention; None: as the question has it.
    """

    question: PlanQuestion
    batches: tuple[int, int]
    listed: tuple[str, ...]
    watch: StopWatch
    found: dict[object, HostedStrategy] = field(default_factory=dict)
    open_s: list[float] = field(default_factory=list)
    best_s: float = math.inf
    tally: dict[str, int] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)
    most_hosts: int | None = None
    numbered_once: bool | None = None

    def __post_init__(self) -> None:
        if self.numbered_once is None:
            self.numbered_once = self.question.numbered_once
        uplinks = Uplinks(self.question.topology)
        self.orders = Orders(uplinks, self.question.efficiency, self.numbered_once)
        self._queue: list[tuple[float, int, _Item]] = []
        self._number = count()
        self._answers: dict[AllocationProblem, Counts | None] = {}

    def run(self) -> bool:
        """Search to the end or the limit; whether it was interrupted."""
        hosts, each = min(len(self.listed), self.most_hosts or len(self.listed)), self._each()
        least_s = device_seconds(self.question)
        for nodes in range(hosts, 0, -1):
            self._push(least_s / (nodes * each), _Count(nodes))
        return self.drain()

    def settle_unit(self, unit: Unit) -> bool:
        """Search the orders of one unit alone; whether it was interrupted."""
        self._push(unit.bound_s, unit)
        return self.drain()

    def drain(self) -> bool:
        """Take what is left in the queue, to the end or the limit; whether it was interrupted."""
        try:
            self.loop(self._cutoff_s, self.take)
        except KeyboardInterrupt:
            return True
        return False

    def loop(self, cutoff_s: Callable[[], float], take: Callable[[float, _Item], None]) -> None:
        """Take what may be below a cutoff, the least bound first, until the time is over."""
        while self._queue and self._queue[0][0] < cutoff_s():
            if self.watch.expired():
                break
            known_s = None if math.isinf(self.best_s) else self.best_s
            bound_s, _, item = heapq.heappop(self._queue)
            self.watch.tell(f"{len(self._queue):,} parts open, of a sequence", known_s, bound_s)
            try:
                take(bound_s, item)
            except BaseException:
                self._push(bound_s, item)
                raise

    def bound_s(self) -> float:
        """No answer takes less of a sequence."""
        return min([self.queue_s, *self.open_s, self.best_s])

    @property
    def queue_s(self) -> float:
        """The least bound in the queue; infinite: it is empty."""
        return self._queue[0][0] if self._queue else math.inf

    def _each(self) -> int:
        topology = self.question.topology
        return topology.devices_under(topology.node_level)

    @property
    def done(self) -> bool:
        """Whether nothing that may be better was left open."""
        return not self.open_s and self.queue_s >= self._cutoff_s()

    def _cutoff_s(self) -> float:
        return self.best_s * (1 - CLOSED)

    def near_s(self) -> float:
        """What is slower, in seconds of a sequence, is not near the best."""
        return self.best_s * (1 + self.question.within)

    def _push(self, bound_s: float, item: _Item) -> None:
        heapq.heappush(self._queue, (bound_s, next(self._number), item))

    def _count(self, what: str, many: int = 1) -> None:
        self.tally[what] = self.tally.get(what, 0) + many

    def take(self, bound_s: float, item: _Item) -> None:
        """The next step for what is in the queue."""
        match item:
            case _Count():
                ideal = Ideal.of(self.question, self.batches, item.nodes, self.watch)
                self._count("host counts")
                if ideal is not None:
                    self._count("strategies", len(ideal.candidates))
                    self._rest(ideal, 0, bound_s)
            case _Rest():
                self._bounded(item, bound_s)
            case _Row():
                self._opened(item, bound_s)
            case Unit():
                self._settle(item)

    def _rest(self, ideal: Ideal, first: int, bound_s: float) -> None:
        if first < len(ideal.rows):
            self._push(max(bound_s, float(ideal.free_s[first])), _Rest(ideal, first))

    def _bounded(self, item: _Rest, bound_s: float) -> None:
        """The next strategies, each with what its requests take alone."""
        ideal, last = item.ideal, item.first + _TOGETHER
        rows = ideal.rows[item.first : last]
        self._count("bounded", len(rows))
        for row, least_s in zip(rows.tolist(), ideal.least_s(rows).tolist(), strict=True):
            if least_s <= self.near_s():
                self._push(max(bound_s, least_s), _Row(ideal, row))
        self._rest(ideal, last, bound_s)

    def _opened(self, item: _Row, bound_s: float) -> None:
        """The matrices inside the nodes of a strategy."""
        ideal, row = item.ideal, item.row
        if not ideal.runs(row):
            return
        work = ideal.candidates.whole_work.take(np.array([row]))
        run = ideal.run(row)
        for least_s, grids in ideal.insides(row, self.near_s()):
            unit = Unit(run, grids, work, max(bound_s, least_s))
            self._push(unit.bound_s, unit)
            self.units.append(unit)
            self._count("units")

    def _settle(self, unit: Unit) -> None:
        """The next step for a unit: it is settled, or goes back to the queue."""
        if unit.stage == 0:
            self.cost(unit, self.orders.known(unit), _COSTED)
            following = unit.bound_s
        else:
            following = self._every(unit)
        if following < self._cutoff_s() and following < math.inf:
            if unit.stage:
                self.open_s.append(following)
            else:
                self._push(following, replace(unit, bound_s=following, stage=1))

    def _every(self, unit: Unit) -> float:
        """Look at all orders, if there are few; else what the unit takes at least."""
        orders = self.every_order(unit)
        if orders is None:
            return self._boxes(unit, switch_tree(self.question.topology))
        self.cost(unit, orders, len(orders))
        return math.inf

    def every_order(self, unit: Unit) -> IntArray | None:
        """All orders of a unit; None: there are too many to look at."""
        tree = switch_tree(self.question.topology)
        free = 1 if self.numbered_once else len(unit.grids)
        if number_of_orders(tree, unit.grid.cells) ** free > FEW_ORDERS:
            return None
        return self.orders.every(unit, tree)

    def _boxes(self, unit: Unit, tree: Tree) -> float:
        """Empty the boxes of loads in which a better order may be."""
        sides = self.orders.sides(unit)
        if not sides:
            return unit.bound_s
        boxes = LoadBoxes(
            *(unit, sides, tree, self.watch),
            lambda slots: self.cost(
                unit, self.orders.folded(unit, slots[None], unit.leading), _COSTED
            ),
            self._cutoff_s,
            self._answers,
        )
        found_s = boxes.run()
        self._count("calls", boxes.calls)
        return max(found_s, unit.bound_s)

    def cost(self, unit: Unit, orders: IntArray, most: int, below_s: float | None = None) -> float:
        """Cost the best of some orders device by device, as far as they may be below these seconds
        of a sequence, or be the best; what the loads of all of them take at least."""
        seconds = self.orders.seconds(unit, orders)
        for at in np.argsort(seconds, kind="stable")[:most].tolist():
            if seconds[at] >= (self._cutoff_s() if below_s is None else below_s) and self.found:
                break
            one = self._costed(unit, orders[at])
            if one.sequence_s < float(seconds[at]) * (1 - CLOSED):
                raise EncodingBug(
                    "an order is faster than its loads", unit.run.strategy, orders[at]
                )
        return float(seconds.min())

    def _costed(self, unit: Unit, slots: IntArray) -> HostedStrategy:
        self._count("costed")
        ranks = [grid.ranks(one) for grid, one in zip(unit.grids, slots, strict=True)]
        where = HostRanks.of(self.question.topology, self.listed, *ranks)
        one = HostedStrategy(unit.run, where, predict_on(unit.run, where, self.question.efficiency))
        if one.sequence_s < unit.bound_s * (1 - CLOSED):
            raise EncodingBug("an order is faster than the ideal leaf", unit.run.strategy, slots)
        key = len(where.hosts), unit.run.strategy, unit.sequences
        if key not in self.found or one.sequence_s < self.found[key].sequence_s:
            self.found[key] = one
        self.best_s = min(self.best_s, one.sequence_s)
        return one


def plan_on_hosts(
    question: PlanQuestion,
    hosts: Sequence[str],
    batches: tuple[int, int] | None = None,
    limits: SearchLimits | None = None,
    most_near: int | None = None,
    most_hosts: int | None = None,
) -> HostsAnswer:
    """Degrees, batch, hosts and their order of most tokens a second, with a proof or a gap.

    Args:
        question: its topology names its hosts; its batch says the tokens of a sequence.
        hosts: those that the job got.
        batches: the least and the largest global batch; None: that of the question.
        limits: wall-clock limit; None: a minute.
        most_near: also list the strategies within ``question.within`` of the best, for which so
            many pairs of a strategy and a matrix inside are looked at, at most; None: do not.
        most_hosts: so many of the hosts may be used, whichever; None: all.

    Raises:
        InputError: the topology lacks a host, nobody stated a bandwidth, a rule is on a switch,
            no strategy is valid on any number of the hosts, or what is asked is not searched on
            hosts: copies of shards, prices of programs.
        EncodingBug: an order is faster than what was proved.

    On KeyboardInterrupt the best answer so far is returned, ``interrupted`` set.
    """
    if dict(question.fixed).get(COPIES, question.space.dp_replicate or 1) != 1:
        rule = "are not searched for on named hosts yet"
        remedy = "estimate --hosts prices a strategy with them"
        raise InputError("copies of shards (dp_replicate)", rule, remedy)
    question = replace(question, space=replace(question.space, dp_replicate=1))
    if question.prices is Prices.PROGRAMS:
        rule = "are not searched on named hosts, where a single collective answers each request"
        raise InputError("prices of programs", rule, "drop --prices")
    cluster = allocated(question.topology, hosts)
    check_stated(cluster)
    check_orders_priced(cluster)
    watch = StopWatch.start(limits or SearchLimits())
    if watch.remaining_s() is None:
        watch = watch.ending_at(WITHOUT_LIMIT_S)
    asked = replace(question, topology=cluster)
    sequences = question.batch.sequences
    search = HostSearch(
        *(asked, batches or (sequences, sequences), tuple(hosts), watch), most_hosts=most_hosts
    )
    interrupted = search.run()
    bound_s, done = search.bound_s(), search.done  # of what is searched for the best
    near = None
    if most_near is not None and search.found and not interrupted:
        near = near_best(search, most_near)
        interrupted = near.interrupted
    best = tuple(sorted(search.found.values(), key=lambda one: one.sequence_s))
    bound_s = min([bound_s, *(one.sequence_s for one in best[:1])])
    proved = bool(best) and bound_s >= best[0].sequence_s * (1 - 2 * CLOSED)
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    short = None
    if not best:
        status = Status.INFEASIBLE if done else Status.UNKNOWN
    if status is Status.INFEASIBLE:
        most = min(len(hosts), most_hosts or len(hosts))
        short = nearest_to_fitting(asked, search.batches, most, watch)
    names = ("host counts", "strategies", "bounded", "units", "costed", "calls")
    searched = HostsSearched(*(search.tally.get(name, 0) for name in names))
    return HostsAnswer(
        asked,
        search.batches,
        tuple(hosts),
        best,
        bound_s if best else 0.0,
        status,
        searched,
        SolveStats("best first", watch.elapsed_s(), 1),
        interrupted,
        near,
        short,
    )


_NEAR_COSTED = 1
"""Of the known orders of a unit so many are costed device by device."""


class Searched(Protocol):
    """What is asked of a :class:`~p2smt.training.search.hosts.search.HostSearch`."""

    question: PlanQuestion
    watch: StopWatch
    found: dict[object, HostedStrategy]
    units: list[Unit]
    orders: Orders

    @property
    def queue_s(self) -> float:
        """The least bound in its queue."""

    def near_s(self) -> float:
        """What is slower is not near."""

    def loop(self, cutoff_s: Callable[[], float], take: Callable[[float, Any], None]) -> None:
        """Take what may be below a cutoff."""

    def take(self, bound_s: float, item: Any) -> None:
        """The next step for what is in the queue."""

    def every_order(self, unit: Unit) -> IntArray | None:
        """All orders of a unit, if there are few."""

    def cost(self, unit: Unit, orders: IntArray, most: int, below_s: float | None = None) -> float:
        """Cost the best of some orders."""


def near_best(search: Searched, most: int) -> HostsNearBest:
    """The strategies within the question's ``within`` of the best of a search that has ended.

    ``most``: so many units are opened, and looked at, at most.
    """
    limit_s, decided, interrupted = search.near_s(), False, False
    try:
        opened = _opened(search, limit_s, most)
        decided = _looked_at(search, limit_s, most) and opened
    except KeyboardInterrupt:
        interrupted = True
    limit_s = search.near_s()
    members = [one for one in _fastest(search).values() if one.sequence_s <= limit_s]
    members.sort(key=lambda one: one.sequence_s)
    status = Status.COMPLETE if decided else Status.TRUNCATED
    return HostsNearBest(search.question.within, status, tuple(members), interrupted)


def _fastest(search: Searched) -> dict[Strategy, HostedStrategy]:
    """Of each strategy the fastest batch and order that are known."""
    least: dict[Strategy, HostedStrategy] = {}
    for one in search.found.values():
        strategy = one.run.strategy
        if strategy not in least or one.sequence_s < least[strategy].sequence_s:
            least[strategy] = one
    return least


def _opened(search: Searched, limit_s: float, most: int) -> bool:
    """Open all that may be near; whether nothing is left."""

    def wanted() -> float:
        enough = len(search.units) >= most
        return -math.inf if enough else math.nextafter(limit_s, math.inf)

    def take(bound_s: float, item: Any) -> None:
        if not isinstance(item, Unit):  # those are in the list of units
            search.take(bound_s, item)

    search.loop(wanted, take)
    return search.queue_s > limit_s


def _looked_at(search: Searched, limit_s: float, most: int) -> bool:
    """Cost an order of each unit that may be near; whether each strategy is decided."""
    decided = True
    units = sorted((one for one in search.units if one.bound_s <= limit_s), key=_bound)
    for unit in units[:most]:
        if search.watch.expired():
            return False
        known_s = _known_s(search, unit)
        if unit.bound_s >= known_s:
            continue
        below_s = min(known_s, math.nextafter(limit_s, math.inf))
        search.cost(unit, search.orders.known(unit), _NEAR_COSTED, below_s)
        if _known_s(search, unit) > limit_s:
            decided &= _every(search, unit, limit_s)
    return decided and len(units) <= most


def _bound(unit: Unit) -> float:
    return unit.bound_s


def _known_s(search: Searched, unit: Unit) -> float:
    """Seconds of a sequence of the unit's strategy, with whichever batch and order is known."""
    return min(_times(search, unit.run.strategy), default=math.inf)


def _times(search: Searched, strategy: Strategy) -> Iterator[float]:
    for one in search.found.values():
        if one.run.strategy == strategy:
            yield one.sequence_s


def _every(search: Searched, unit: Unit, limit_s: float) -> bool:
    """Look at all orders of a unit, if there are few; whether there are."""
    orders = search.every_order(unit)
    if orders is not None:
        search.cost(unit, orders, len(orders), math.nextafter(limit_s, math.inf))
    return orders is not None
