"""Where no order of a unit is fast enough: boxes of loads, emptied one by one.

What uplinks carry is whole numbers, so each request has a list of prices that orders can have.  An
iteration grows with every price: an order that beats the best one known has each price below a cap,
the most at which the iteration still is short enough while all others are at their least.  A solver
is asked for an order below all caps.  If there is none, the box is empty.  Else a better order, if
any, has a lower price than that one for some request: the box is split there.

Requests that put the same load on the uplinks have their prices together, and are one coordinate.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np

from p2smt.collectives.dispatch import Dispatch
from p2smt.errors import EncodingBug
from p2smt.parallelism.placement import IntArray
from p2smt.problems.allocation import AllocationProblem, Counts, UplinkTicks, WayTicks
from p2smt.result import SearchLimits, Status, StopWatch
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.search.allocation.grid_question import Asked, Tree, asked
from p2smt.search.allocation.solve_grid import alone_ticks, is_allocation, ticks_of
from p2smt.search.allocation.terms import CellTerm, CellWay, Follows
from p2smt.solvers.ask import Optimum, Solver, ask
from p2smt.training.pipeline import combine
from p2smt.training.search.hosts.host_orders import AskedSide, Unit
from p2smt.training.strategy import AXES

_RESOLUTION = 2.0**44
"""Ticks of an iteration: rounding is far below what counts as equal."""
_ALONE_S, _COUNTS_S, _ORDER_S = 0.7, 2.0, 4.0
"""Seconds for a question: what a request takes alone, counts, an order."""
_STEPS = 512
"""Where it is no whole number, what a switch sends is counted in so many parts, rounded down."""
MOST_QUESTIONS = 60
"""LoadBoxes of a unit that are asked for."""

Corner = tuple[int, ...]
"""An index into the prices of each coordinate."""


@dataclass(frozen=True)
class Coordinate:
    """Requests that load the uplinks alike; ``first`` is one of them, by number.

    ``ticks``: all that the first may take, ascending.  ``seconds``: by name, what a call of each
    takes at least while the first takes no less than that.
    """

    first: int
    ticks: tuple[int, ...]
    seconds: dict[str, np.ndarray]


@dataclass
class LoadBoxes:
    """The search for an order of one unit; ``cost`` costs one, ``cutoff_s`` is what must be beaten,
    both in seconds of a sequence.  ``known``: answers to questions, which units share."""

    unit: Unit
    sides: tuple[AskedSide, ...]
    tree: Tree
    watch: StopWatch
    cost: Callable[[IntArray], object]
    cutoff_s: Callable[[], float]
    known: dict[AllocationProblem, Counts | None]
    calls: int = 0
    open_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        leading = self.unit.leading
        self.grid = self.unit.grids[leading]
        pairs = [pair for side in self.sides for pair in _beside(side, side.number == leading)]
        self.names, self.terms, self.axes = zip(*pairs, strict=True)
        self.tick_s = self.cutoff_s() * self.unit.sequences / _RESOLUTION
        self.fine = self._asked(())
        self.coordinates = tuple(self._coordinates())
        self.fixed = self._fixed()

    def run(self) -> float:
        """Seconds of a sequence that the unit takes at least, or infinite: it is settled."""
        lower = tuple(self._alone(one) for one in self.coordinates)
        upper = tuple(len(one.ticks) - 1 for one in self.coordinates)
        number = count()
        boxes = [(self._least_s(lower), next(number), lower, upper)]
        while boxes and boxes[0][0] < self.cutoff_s():
            if self.watch.expired() or self.calls >= MOST_QUESTIONS:
                self.open_s.append(boxes[0][0])
                break
            least_s, _, lower, upper = heapq.heappop(boxes)
            for below, above in self._split(least_s, lower, upper):
                heapq.heappush(boxes, (self._least_s(below), next(number), below, above))
        return min(self.open_s, default=np.inf)

    def _split(
        self, least_s: float, lower: Corner, upper: Corner
    ) -> Iterator[tuple[Corner, Corner]]:
        """What is left of a box: nothing where it is empty, or at a limit, which is noted."""
        caps = self._caps(lower, upper)
        if caps is None:
            return
        status, slots = self._order(caps)
        if status is Status.UNKNOWN:
            self.open_s.append(least_s)
        if slots is None:
            return
        self.cost(slots)
        at = self._corner(slots)
        if (there_s := self._least_s(at)) < self.cutoff_s():
            self.open_s.append(there_s)
        for g, place in enumerate(at):
            if place > lower[g]:
                yield lower, (*caps[:g], place - 1, *caps[g + 1 :])
            lower = (*lower[:g], max(lower[g], place), *lower[g + 1 :])

    # Prices.

    def _least_s(self, corner: Corner) -> float:
        """Seconds of a sequence where no coordinate is less."""
        pairs = zip(self.coordinates, corner, strict=True)
        prices = {name: row[k] for one, k in pairs for name, row in one.seconds.items()}
        return float(combine(self.unit.work, self.fixed | prices)[0]) / self.unit.sequences

    def _caps(self, lower: Corner, upper: Corner) -> Corner | None:
        """The most of each coordinate; None: even the least of all is too much."""
        caps = []
        for g, (low, high) in enumerate(zip(lower, upper, strict=True)):
            if high < low:
                return None
            reach = range(low, high + 1)

            def too_much(k: int, g: int = g) -> bool:
                return self._least_s((*lower[:g], k, *lower[g + 1 :])) >= self.cutoff_s()

            caps.append(low + bisect_left(reach, True, key=too_much) - 1)
            if caps[-1] < low:
                return None
        return tuple(caps)

    def _corner(self, slots: IntArray) -> Corner:
        """The coordinates of an order."""
        pool_of = self.tree.pool_of()
        size = len(self.tree.pools)
        rows = tuple(tuple(int(p == pool_of[slot]) for p in range(size)) for slot in slots.tolist())
        found = []
        for one in self.coordinates:
            alone = replace(self.fine.problem, requests=(self.fine.problem.requests[one.first],))
            found.append(bisect_left(one.ticks, ticks_of(alone, rows)))
        return tuple(found)

    def _fixed(self) -> dict[str, float]:
        """Seconds of a call of requests that no order changes, and of those not sent at all."""
        seconds = {one.column.name: 0.0 for one in self.unit.work.requests}
        for r, (name, term) in enumerate(zip(self.names, self.terms, strict=True)):
            least = min(way.least for way in self.fine.problem.requests[r])
            seconds[name] = least * self.tick_s / term.request.times
        return seconds

    def _coordinates(self) -> Iterator[Coordinate]:
        groups: dict[object, list[int]] = {}
        for r, ways in enumerate(self.fine.problem.requests):
            if any(uplink is not None for way in ways for uplink in way.uplinks):
                alike = tuple(u and u.load for u in ways[0].uplinks) if len(ways) == 1 else r
                groups.setdefault(alike, []).append(r)
        for members in groups.values():
            first = members[0]
            ticks = tuple(sorted({t for t, _ in self._table(first)}))
            seconds = {}
            for r in members:
                pairs = zip(self._table(first), self._table(r), strict=True)
                seconds[self.names[r]] = self._suffix(
                    ticks, [(t, own) for (t, _), (own, _) in pairs], r
                )
            yield Coordinate(first, ticks, seconds)

    def _table(self, r: int) -> list[tuple[int, int]]:
        """The ticks of every way and uplink of a request by load, its least first."""
        found = []
        for n, way in enumerate(self.fine.problem.requests[r]):
            found.append((way.least, n))
            found += [(t, n) for u in way.uplinks if u is not None for t in u.ticks]
        return found

    def _suffix(self, ticks: Sequence[int], pairs: Sequence[tuple[int, int]], r: int) -> np.ndarray:
        """Seconds of a call of a request where the first of its coordinate takes these ticks."""
        least: dict[int, int] = {}
        for tick, seconds in pairs:
            least[tick] = min(seconds, least.get(tick, seconds))
        own = np.minimum.accumulate([least[tick] for tick in reversed(ticks)])[::-1]
        return np.asarray(own * self.tick_s / self.terms[r].request.times)

    # Questions.

    def _asked(self, together: Sequence[int], chosen: Sequence[int] | None = None) -> Asked:
        terms = self.terms if chosen is None else [self.terms[r] for r in chosen]
        return asked(self.sides[0].problem, self.grid, terms, self.tree, self.tick_s, together)

    def _families(self) -> list[tuple[int, ...]]:
        """The axes outside along which coordinates have groups."""
        found = []
        for one in self.coordinates:
            axes = self.axes[one.first]
            found.append(tuple(i for i in axes if self.grid.outer[i] > 1))
        return list(dict.fromkeys(found))

    def _alone(self, one: Coordinate) -> int:
        """The least of a coordinate, were it the only one."""
        bound = 0
        for together in self._families():
            question = self._asked(together, (one.first,)).problem
            bound = max(bound, alone_ticks(question))
        return min(bisect_left(one.ticks, bound), len(one.ticks) - 1)

    def _order(self, caps: Corner) -> tuple[Status, IntArray | None]:
        """An order within these caps: first by counts, then of these counts, then of any."""
        for together in self._families():
            coarse = self._asked(together, [one.first for one in self.coordinates])
            status, counts = self._ask(self._capped(coarse.problem, caps), _COUNTS_S)
            if status is Status.INFEASIBLE:
                return status, None
            if counts is not None:
                question = replace(self._exact(caps), held=coarse.held(counts))
                _, order = self._ask(question, _ORDER_S)
                if order is not None:
                    return Status.OPTIMAL, self.tree.slots(order)
        status, order = self._ask(self._exact(caps), _ORDER_S)
        return status, None if order is None else self.tree.slots(order)

    def _exact(self, caps: Corner) -> AllocationProblem:
        fine = self._asked((), [one.first for one in self.coordinates])
        return self._capped(fine.problem, caps)

    def _capped(self, problem: AllocationProblem, caps: Corner) -> AllocationProblem:
        """The question with 0 for what is within its cap, and 1 for what is not."""
        requests = []
        for ways, one, cap in zip(problem.requests, self.coordinates, caps, strict=True):
            most = one.ticks[cap]
            requests.append(tuple(_cut(way, most) for way in ways))
        return replace(problem, requests=tuple(requests), at_most=0)

    def _ask(self, question: AllocationProblem, most_s: float) -> tuple[Status, Counts | None]:
        if question in self.known:
            counts = self.known[question]
            return (Status.INFEASIBLE if counts is None else Status.OPTIMAL), counts
        left = self.watch.remaining_s()
        limits = SearchLimits(time_limit_s=most_s if left is None else min(most_s, left))
        self.calls += 1
        result = ask(question, Optimum(), Solver.CPSAT, limits)
        if result.value is not None and (
            not is_allocation(question, result.value) or ticks_of(question, result.value)
        ):
            raise EncodingBug("an order is not within its box", question, result.value)
        if result.value is not None or result.status is Status.INFEASIBLE:
            self.known[question] = result.value
            return (Status.OPTIMAL if result.value else Status.INFEASIBLE), result.value
        return Status.UNKNOWN, None


def _beside(side: AskedSide, leads: bool) -> Iterator[tuple[str, CellTerm, tuple[int, ...]]]:
    """Requests by name, with the axes of the leading grid that their groups are along.

    Beside any order of that one the cells of the other may change places inside their stage: its
    requests are bounded as if they lay best.  What a whole stage shares is along all axes but pp;
    pp's own requests are along the same pipelines in both.
    """
    for name, term in zip(side.names, side.terms, strict=True):
        if leads:
            plain = not isinstance(term.request.kind, Dispatch)
            found = term if plain else replace(term, ways=tuple(map(_in_steps, term.ways)))
            yield name, found, side.problem.axis_indices(term.request)
        elif term.request.axes == AXES[:1]:
            yield name, term, (0,)
        else:
            yield name, _any_order(term, side.grid), tuple(range(1, len(side.grid.outer)))


def _any_order(term: CellTerm, grid: CellGrid) -> CellTerm:
    """A request whose cells may change places inside their stage: no order of them takes less.

    It depends on how many cells of a stage a switch holds, which are divided among the groups of
    the stage as is best for its uplink.
    """
    if term.silent:
        return term
    stages = np.arange(grid.cells).reshape(grid.outer[0], -1)
    size = len(np.unique(term.groups[0]))
    ways = tuple(_at_best(way, size, stages.shape[1]) for way in term.ways)
    return replace(term, groups=stages, ways=ways)


def _at_best(way: CellWay, size: int, cells: int) -> CellWay:
    """A way of groups of some size by how many of a stage's cells are inside, at best.

    Of a group that is divided an edge leaves at least, of trees one of each, and a path is left or
    entered.
    """
    sent: Sequence[float] = way.sent
    if way.follows is not Follows.SHARE:
        least = {Follows.TREE: 2.0, Follows.RING: 1.0}.get(way.follows, 0.5)
        sent = (0.0, *[least] * (size - 1), 0.0)
    best = np.array([0.0, *[np.inf] * cells])
    for _ in range(cells // size):
        inside = range(min(size, cells) + 1)
        best = np.min([_later(best, n) + sent[n] for n in inside], axis=0)
    return _in_steps(replace(way, follows=Follows.SHARE, sent=tuple(best.tolist())))


def _in_steps(way: CellWay) -> CellWay:
    """A way whose shares are counted in parts, rounded down."""
    sent = np.array(way.sent)
    part = (float(sent.max(initial=0.0)) or 1.0) / _STEPS
    return replace(way, sent=tuple((np.floor(sent / part * (1 + 1e-12)) * part).tolist()))


def _later(values: np.ndarray, places: int) -> np.ndarray:
    return np.concatenate([np.full(places, np.inf), values[: len(values) - places]])


def _cut(way: WayTicks, most: int) -> WayTicks:
    uplinks: list[UplinkTicks | None] = []
    least = int(way.least > most)
    for uplink in way.uplinks:
        if uplink is None or least or uplink.ticks[-1] <= most:
            uplinks.append(None)
        else:
            table = uplink.ticks[: bisect_left(uplink.ticks, most + 1) + 1]
            uplinks.append(UplinkTicks(uplink.load, tuple(int(t > most) for t in table)))
    return WayTicks(least, tuple(uplinks))
