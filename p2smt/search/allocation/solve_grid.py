"""One grid: is there an order of its cells that beats what is known?  In two stages.

(i) Counts alone: how many cells of each group lie in each pool.  The sub-problems with one request
(groups are exchangeable there) give what each request takes at least, then all are asked together.
Nothing below the incumbent: the grid is settled.  (ii) An order: Booleans for each cell, with the
counts of (i) first, then free.

Every answer is checked and costed device by device; what the solver says of it is not believed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from p2smt.collectives.names import RequestKind
from p2smt.errors import EncodingBug
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.request import Problem
from p2smt.problems.allocation import (
    AllocationProblem,
    Counts,
    Load,
    Messages,
    Shares,
    UplinkTicks,
    WayTicks,
    least_parts,
)
from p2smt.result import Result, Status, StopWatch
from p2smt.search.allocation.cell_grids import CellGrid
from p2smt.search.allocation.grid_question import Asked, Tree, asked
from p2smt.search.allocation.local_search import Climb, bands, filled, of_matrices
from p2smt.search.allocation.terms import CellTerm
from p2smt.solvers.ask import Optimum, Solver, ask

MOST_CELLS = 32
"""Up to so many cells the order is asked for with free counts; of more, nearby orders are tried."""
_FIRST, _ALONE, _COUNTS, _HELD = 0.3, 0.15, 0.7, 0.5
"""Shares of the time that is left: counts at first, requests alone, counts again, their order."""


@dataclass(slots=True)
class GridSearch:
    """Searches one grid; ``bound`` in ticks rises as more is proved, ``calls`` counts solver runs.

    ``found`` is called with the places of an order's cells; it says whether that is the best now.
    """

    problem: Problem
    grid: CellGrid
    terms: tuple[CellTerm, ...]
    tree: Tree
    tick_s: float
    solver: Solver
    found: Callable[[CellGrid, IntArray], bool]
    bound: int = 0
    calls: int = 0
    alone: list[int] = field(default_factory=list)

    def start(self) -> None:
        """The bound without any load on the switches' uplinks."""
        self.alone = [min(way.least for way in ways) for ways in self._asked().problem.requests]
        self.bound = max(self.bound, self._joined(self.alone))
        for together in self.families():
            self.bound = max(self.bound, alone_ticks(self._asked(together).problem))

    def known(self, listed: IntArray, watch: StopWatch) -> Iterator[tuple[int, IntArray]]:
        """Orders that need no search with their ticks, the best first; at least one."""
        pool_of, fine = self.tree.pool_of(), self.fine().problem
        found: list[tuple[int, IntArray]] = []
        every = (
            filled(self.grid, [listed]),
            bands(self.grid, listed),
            of_matrices(self.problem, self.grid, watch),
        )
        for slots in chain(*every):
            if found and watch.expired():
                break
            pools = [pool_of[slot] for slot in slots.tolist()]
            found.append((Climb(fine, pools, 0).value[0], slots))
        yield from sorted(found, key=lambda one: one[0])

    def run(self, best: Callable[[], int], watch: StopWatch) -> None:
        """Search until the bound reaches the incumbent's ticks, ``best()``, or the time is over."""
        counted: set[tuple[int, ...]] = set()
        for share in (_FIRST, _COUNTS):
            for together in self.families():
                if together in counted or self._done(best, watch):
                    continue
                if self._two_stages(together, best, watch, share):
                    counted.add(together)
            if share == _FIRST and len(counted) < len(self.families()):
                self._bound_alone(best, watch)
        if self.grid.cells <= MOST_CELLS and not self._done(best, watch):
            self._order(self._asked(), best, watch)

    def _done(self, best: Callable[[], int], watch: StopWatch) -> bool:
        return self.bound >= best() or watch.expired()

    def fine(self) -> Asked:
        """The question about every cell."""
        return self._asked()

    def families(self) -> list[tuple[int, ...]]:
        """The axes along which requests have groups, the heaviest first; of sends alone theirs."""
        rank = sorted(self._grouped(), key=lambda term: -_weight(term))
        return list(dict.fromkeys(self._axes(term) for term in rank))

    def _grouped(self) -> list[CellTerm]:
        """Requests with traffic; without sends, unless there is nothing else."""
        sends = RequestKind.SEND
        return [t for t in self._loud() if t.request.kind is not sends] or self._loud()

    def _loud(self) -> list[CellTerm]:
        return [term for term in self.terms if not term.silent]

    def _axes(self, term: CellTerm) -> tuple[int, ...]:
        axes = self.problem.axis_indices(term.request)
        return tuple(i for i in axes if self.grid.outer[i] > 1)

    def _asked(
        self, together: Sequence[int] = (), terms: Sequence[CellTerm] | None = None
    ) -> Asked:
        chosen = self.terms if terms is None else tuple(terms)
        least = self.alone if self.alone and terms is None else None
        return asked(self.problem, self.grid, chosen, self.tree, self.tick_s, together, least)

    def _joined(self, ticks: Sequence[int]) -> int:
        return max(ticks) if self.problem.objective == "max" else sum(ticks)

    def _bound_alone(self, best: Callable[[], int], watch: StopWatch) -> None:
        """What each request takes at least, were it the only one."""
        chosen = self._grouped()
        for number, term in enumerate(self.terms):
            if not any(term is one for one in chosen) or self._done(best, watch):
                continue
            question = self._asked(self._axes(term), (term,)).problem
            result = self._ask(question, watch.part(_ALONE / len(chosen)))
            if result.bound is not None:
                self.alone[number] = max(self.alone[number], result.bound)
            self.bound = max(self.bound, self._joined(self.alone))

    def _two_stages(
        self, together: tuple[int, ...], best: Callable[[], int], watch: StopWatch, share: float
    ) -> bool:
        """Counts, then an order of them; whether the best counts are known."""
        counts, limit = self._asked(together), best() - 1
        result = self._ask(replace(counts.problem, at_most=limit), watch.part(share))
        if result.status is Status.INFEASIBLE:
            self.bound = max(self.bound, limit + 1)
        elif result.bound is not None:
            self.bound = max(self.bound, min(limit + 1, result.bound))
        if result.value is not None and not watch.expired():
            held = counts.held(result.value)
            limited = replace(self._asked().problem, held=held, at_most=limit)
            order = self._ask(limited, watch.part(_HELD))
            if order.value is not None:
                self.found(self.grid, self.tree.slots(order.value))
        return result.status in (Status.OPTIMAL, Status.INFEASIBLE)

    def _order(self, fine: Asked, best: Callable[[], int], watch: StopWatch) -> None:
        """Every cell at once, for less than what is known."""
        result = self._ask(replace(fine.problem, at_most=best() - 1), watch)
        known = best()
        if result.value is not None:
            self.found(self.grid, self.tree.slots(result.value))
        if result.status is Status.INFEASIBLE:
            self.bound = max(self.bound, known)
        elif result.bound is not None:
            self.bound = max(self.bound, min(result.bound, known))

    def _ask(self, question: AllocationProblem, watch: StopWatch) -> Result[Counts]:
        self.calls += 1
        result = ask(question, Optimum(), self.solver, watch.left())
        if result.value is not None:
            said = dict(result.stats.counters)["objective"]
            if not is_allocation(question, result.value):
                raise EncodingBug("cells of an allocation do not fit", question, result.value)
            if ticks_of(question, result.value) > said:
                raise EncodingBug("an allocation costs more than it says", question, result.value)
        return result

    def rows(self, slots: Sequence[int]) -> Counts:
        """The cells of an order as an answer: for each the pool of its place."""
        pool_of = self.tree.pool_of()
        return self.counts([pool_of[slot] for slot in slots])

    def counts(self, pools: Sequence[int]) -> Counts:
        """The cells of an order as an answer, by the pool of each."""
        size = len(self.tree.pools)
        return tuple(tuple(int(p == i) for i in range(size)) for p in pools)


def _weight(term: CellTerm) -> float:
    return float(term.request.payload_bytes * term.request.times)


# A simple bound: what each switch needs alone, with groups in blocks and messages along them.
# If a switch holds c cells of P blocks of D, fewer messages between blocks mean more blocks that it
# holds in part (:func:`p2smt.problems.allocation.parts_held`).  So for each time that the messages
# may take, the groups take at least so long; the least of both over all such times is a bound.


MOST_STEPS = 400
"""Times of the messages that are told apart; between two of them the best of both counts."""


def alone_ticks(problem: AllocationProblem) -> int:
    """No answer to a question of blocks costs less, in ticks."""
    least = [min(way.least for way in ways) for ways in problem.requests]
    chosen = next((r for r, ways in enumerate(problem.requests) if _chained(problem, ways)), None)
    if chosen is None:
        return _joined(problem, _with_parts(problem, least, [problem.members] * _entities(problem)))
    way, found = problem.requests[chosen][0], []
    steps = sorted({t for u in _uplinks(way) for t in u.ticks} | {way.least})
    steps = steps[:: 1 + len(steps) // MOST_STEPS]
    for at_least, below in pairwise([*steps, 2 * steps[-1] + 2]):
        moved = [problem.members if u is None else _most(u, below - 1) for u in way.uplinks]
        costs = [max(c, at_least) if r == chosen else c for r, c in enumerate(least)]
        joined = _with_parts(problem, costs, moved)
        if joined is not None:
            found.append(_joined(problem, joined))
    return min(found, default=_joined(problem, least))


def _entities(problem: AllocationProblem) -> int:
    return len(problem.entities)


def _uplinks(way: WayTicks) -> Iterator[UplinkTicks]:
    return (uplink for uplink in way.uplinks if uplink is not None)


def _joined(problem: AllocationProblem, ticks: Sequence[int] | None) -> int:
    if ticks is None:
        return 0
    return max(ticks) if problem.worst else sum(ticks)


def _most(uplink: UplinkTicks, ticks: int) -> int:
    """The largest load that costs no more; of a flat end any load does."""
    found = bisect_right(uplink.ticks, ticks) - 1
    return found if found < len(uplink.ticks) - 1 else max(found, 2**31)


def _with_parts(
    problem: AllocationProblem, costs: Sequence[int], moved: Sequence[int]
) -> list[int] | None:
    """The costs with what groups take at least; None: so few messages cannot be."""
    parts = [least_parts(problem, e, max(0, m)) for e, m in enumerate(moved)]
    if any(count > problem.blocks for count in parts):
        return None
    return [
        max(cost, min(_shared(problem, way, parts) for way in ways))
        for cost, ways in zip(costs, problem.requests, strict=True)
    ]


def _shared(problem: AllocationProblem, way: WayTicks, parts: Sequence[int]) -> int:
    """What the groups of a way take, if each entity holds so many blocks in part."""
    most = way.least
    each = [_least_sent(problem, load) for load in problem.loads]
    for count, uplink in zip(parts, way.uplinks, strict=True):
        if uplink is not None:
            sent = count * each[uplink.load]
            most = max(most, uplink.ticks[min(sent, len(uplink.ticks) - 1)])
    return most


def _least_sent(problem: AllocationProblem, load: Load) -> int:
    """What a block in part sends at least, where each block is a group of its own; or nothing."""
    if not isinstance(load, Shares) or problem.members == 1:
        return 0
    apart = load.groups == tuple((b,) for b in range(problem.blocks))
    return min(load.sent[1:-1], default=0) if apart else 0


def _chained(problem: AllocationProblem, ways: Sequence[WayTicks]) -> bool:
    """Whether a request has one way, whose messages go from each block to the next."""
    loads: list[Load] = [problem.loads[u.load] for u in _uplinks(ways[0])]
    steps = tuple((b, b + 1, 1) for b in range(problem.blocks - 1))
    chain = all(isinstance(load, Messages) and load.edges == steps for load in loads)
    return len(ways) == 1 and bool(loads) and chain


# What an answer to an allocation problem is and costs, without a solver: THE CHECK.


def entity_load(problem: AllocationProblem, load: Load, entity: int, counts: Counts) -> int:
    """The load of an entity's uplink under an answer."""
    held = [sum(row[p] for p in problem.entities[entity]) for row in counts]
    if isinstance(load, Shares):
        return sum(load.sent[sum(held[b] for b in group)] for group in load.groups)
    out = sum(k * max(0, held[a] - held[b]) for a, b, k in load.edges)
    into = sum(k * max(0, held[b] - held[a]) for a, b, k in load.edges)
    return max(out, into)


def ticks_of(problem: AllocationProblem, counts: Counts) -> int:
    """The objective of an answer."""
    cost = [min(_way(problem, way, counts) for way in ways) for ways in problem.requests]
    return max(cost) if problem.worst else sum(cost)


def _way(problem: AllocationProblem, way: WayTicks, counts: Counts) -> int:
    found = [way.least]
    for entity, uplink in enumerate(way.uplinks):
        if uplink is not None:
            load = entity_load(problem, problem.loads[uplink.load], entity, counts)
            found.append(uplink.ticks[min(load, len(uplink.ticks) - 1)])
    return max(found)


def is_allocation(problem: AllocationProblem, counts: Counts) -> bool:
    """Whether an answer places every cell of every block, within the pools and what is held."""
    if any(sum(row) != problem.members or min(row) < 0 for row in counts):
        return False
    totals = [sum(column) for column in zip(*counts, strict=True)]
    held = all(
        all(sum(counts[b][p] for b in one.blocks) == wanted for p, wanted in enumerate(one.counts))
        for one in problem.held
    )
    fits = all(n <= size for n, size in zip(totals, problem.pools, strict=True))
    return held and fits and len(counts) == problem.blocks
