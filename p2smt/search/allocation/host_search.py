"""One search on named hosts, at the bandwidths that the topology has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from p2smt.cluster.allocation import allocated, check_orders_priced
from p2smt.collectives.demand import Chunks, demand_of, plain_kind
from p2smt.collectives.names import Collective
from p2smt.cost.step_time import Pipelined
from p2smt.errors import EncodingBug, InputError
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.check.check_restrictions import broken_rules
from p2smt.plans.rank_scene import RankScene, check_on_ranks
from p2smt.plans.solution import (
    Allocation,
    Alternative,
    RequestAnswer,
    Solution,
    objective,
    program_answer,
    rank_alternative,
    rank_answer,
)
from p2smt.problems.placement import ProgramProblem
from p2smt.programs.parts import CutGroup, UnevenSlicesError, common_hierarchy
from p2smt.programs.program import SMALL_MODEL_LENGTH, Hierarchy, Instruction, Program
from p2smt.programs.semantics import MAX_DEVICES
from p2smt.result import SAME, SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.allocation.cell_grids import (
    LISTED,
    CellGrid,
    by_name,
    grids,
    host_order,
    host_slots,
    nodes_needed,
    order_cost,
    row_major_grid,
    sorted_hosts,
)
from p2smt.search.allocation.grid_question import Tree, switch_tree
from p2smt.search.allocation.local_search import Climb, HostOrder, costed, filled
from p2smt.search.allocation.solve_grid import GridSearch, ticks_of
from p2smt.search.allocation.terms import term
from p2smt.search.joint import ProgressCallback
from p2smt.search.program_synthesis import Task, checked_listing
from p2smt.search.programs_pipelined import LISTED_DEPTH
from p2smt.search.solve import as_named
from p2smt.solvers.ask import Solver, solver_of
from p2smt.units import format_time

PROGRAMS_S = 30.0
"""Seconds for programs where there is no limit."""
LEAST_S = 1.0
"""Seconds for programs where the search has used up its time."""


def fastest_on_hosts(
    problem: Problem,
    hosts: Sequence[str] | None,
    limits: SearchLimits,
    solver: Solver | str = Solver.CPSAT,
    *,
    programs: bool = False,
    progress: ProgressCallback | None = None,
) -> Solution:
    """As :func:`solve_on_hosts`, whoever stated the bandwidths.

    Raises:
        InputError: as there.
        EncodingBug: as there.
    """
    chosen = solver_of(solver)
    watch = StopWatch.start(limits)
    problem, listed = _on_hosts(as_named(problem), hosts)
    named = (sorted_hosts(problem, listed), listed, by_name(listed))
    orders = [host_slots(problem, names) for names in named]
    hunt = Hunt(problem, orders, limits, chosen, progress)
    hunt.run()
    stats = SolveStats(chosen.value, watch.elapsed_s(), hunt.calls)
    found = replace(_solution(problem, listed, hunt, stats), limits=limits)
    return _with_programs(found, watch, chosen) if programs else found


def _on_hosts(problem: Problem, hosts: Sequence[str] | None) -> tuple[Problem, tuple[str, ...]]:
    """The problem on the hosts that are listed."""
    known = problem.topology.hosts
    listed = tuple(hosts) if hosts is not None else known.names if known else ()
    topology = allocated(problem.topology, listed)
    check_orders_priced(topology)
    problem = replace(problem, topology=topology)
    needed = nodes_needed(problem)
    if needed > len(listed):
        rule = f"the ranks fill {needed} nodes"
        raise InputError(f"{len(listed)} hosts", rule, "name more hosts or change an axis")
    if not grids(problem):
        rule = "no matrix inside the nodes obeys the rules"
        raise InputError(f"axes {list(problem.axis_sizes)}", rule, "leave out a rule")
    return problem, listed


def _solution(problem: Problem, listed: tuple[str, ...], hunt: Hunt, stats: SolveStats) -> Solution:
    """The answer on the topology of the hosts that have ranks."""
    best = hunt.best
    if best is None:  # interrupted before the first order was costed
        raise KeyboardInterrupt
    names = [problem.topology.host_of(slot * _each(problem)) for slot in best.slots]
    idle = tuple(name for name in listed if name not in set(names))
    used = replace(problem, topology=allocated(problem.topology, names))
    ranks = best.grid.ranks(np.array(host_slots(used, names)))
    answer = rank_alternative(used, RankList(tuple(ranks.ravel().tolist()), used.axis_sizes))
    status = Status.OPTIMAL if hunt.proved else Status.FEASIBLE
    return Solution(
        used,
        status,
        (answer,),
        min(hunt.bound_s, answer.objective_s),
        0.0,
        Status.COMPLETE if hunt.proved else Status.TRUNCATED,
        stats,
        default=order_cost(problem, host_order(problem, listed), LISTED),
        interrupted=hunt.interrupted,
        allocation=Allocation(problem.topology, listed, idle, best.grid.inside),
    )


def _with_programs(found: Solution, watch: StopWatch, solver: Solver) -> Solution:
    """The answer with programs that are faster than one collective on the same ranks."""
    best, allocation = found.best, found.allocation
    if best is None or best.rank_list is None or allocation is None or found.interrupted:
        return found
    limit_s = PROGRAMS_S if watch.remaining_s() is None else max(LEAST_S, watch.remaining_s() or 0)
    limits = replace(found.limits, time_limit_s=limit_s)
    spent = StopWatch.start(limits)
    try:
        answer = with_programs(found.problem, best.rank_list, limits, solver)
        told = sorted_note(found, answer.objective_s, spent.left(), solver)
    except KeyboardInterrupt:
        return replace(found, interrupted=True)
    found = replace(found, notes=(*found.notes, *told))
    if answer.objective_s >= best.objective_s * (1 - SAME):
        return found
    return replace(
        found,
        alternatives=(replace(answer, objective_s=best.objective_s),),
        allocation=replace(allocation, with_programs_s=answer.objective_s),
    )


def _each(problem: Problem) -> int:
    return problem.topology.devices_under(problem.topology.node_level)


# The search over all grids: known orders, then each grid in the order of its bound.
# Many matrices inside share the same grid outside but not the same prices, so each is settled on
# its own; most are, by their first bound.


_RESOLUTION = 2**32
"""Ticks of the first answer."""
WITHOUT_LIMIT_S = 60.0
"""Seconds after which a search without a limit stops, if there is no proof by then."""
FEW_ORDERS = 5000
"""Orders of all grids together that are tried one by one where no bound meets the answer.

A question's ticks take some 0.1 ms, and most orders are out by them; costing one takes 5 ms."""
_CLIMB, _STEPS = 0.5, 60_000


@dataclass(slots=True)
class Hunt:
    """A search on named hosts; ``best`` is what was found so far, ``bound_s`` what was proved.

    Up to ``few_orders`` orders are tried one by one where no bound meets the answer.
    """

    problem: Problem
    listed: Sequence[IntArray]
    limits: SearchLimits
    solver: Solver
    progress: ProgressCallback | None = None
    few_orders: int = FEW_ORDERS
    best: HostOrder | None = None
    bound_s: float = 0.0
    calls: int = 0
    interrupted: bool = False
    _tick_s: float = 1.0
    _searches: list[GridSearch] = field(default_factory=list)

    @property
    def proved(self) -> bool:
        """Whether no order is faster, to a tick for each request."""
        slack = (len(self.problem.requests) + 2) * self._tick_s
        return self.best is not None and self.best.objective_s <= self.bound_s + slack

    def run(self) -> None:
        """Search to the limits; an interrupt keeps what was found."""
        limit_s = self.limits.time_limit_s
        watch = StopWatch.start(self.limits)
        if limit_s is None:
            watch = watch.ending_at(WITHOUT_LIMIT_S)
        try:
            self._known_orders(watch)
            self._settle(watch)
        except KeyboardInterrupt:
            self.interrupted = True
        self._hold()
        self._tell()

    def _hold(self) -> None:
        """What was proved is held against the best order, as the cost model has it.

        Raises:
            EncodingBug: its grid was said to have none so fast, or the question that was asked of
                the solvers has it cost more.
        """
        best = self.best
        if best is None:
            return
        slack = len(self.problem.requests) + 2
        for one in self._searches:
            if one.grid != best.grid:
                continue
            rows = one.rows(best.slots)
            if one.bound > self._ticks() + slack:
                raise EncodingBug("an order is faster than its grid's bound", one.bound, rows)
            question = one.fine().problem
            if ticks_of(question, rows) > best.objective_s / self._tick_s + slack:
                raise EncodingBug("a question has an order cost too much", question, rows)

    def _known_orders(self, watch: StopWatch) -> None:
        """The orders that answers are compared with; the first is costed whatever the time."""
        every, usual = grids(self.problem), row_major_grid(self.problem)
        alike = [grid for grid in every if grid.outer == usual]
        for grid in alike or every[:1]:
            for slots in filled(grid, self.listed):
                if self.best is None or not watch.expired():
                    self._take(grid, slots)

    def _take(self, grid: CellGrid, slots: IntArray) -> bool:
        """Cost an order device by device; keep it if it is the best."""
        order = costed(self.problem, grid, slots)
        if self.best is not None and order.objective_s >= self.best.objective_s:
            return False
        self.best = order
        return True

    def _ticks(self) -> int:
        """The ticks of the best order, each request rounded down as the questions are."""
        if self.best is None:
            return 0
        return max(0, int(self.best.objective_s / self._tick_s) - len(self.problem.requests))

    def _settle(self, watch: StopWatch) -> None:
        objective_s = 0.0 if self.best is None else self.best.objective_s
        self._tick_s = objective_s / _RESOLUTION or 1.0
        tree = switch_tree(self.problem.topology)
        self._searches = self._begun(tree, watch)
        self._tell()
        waiting = sorted(self._searches, key=lambda one: one.bound)
        while waiting and not watch.expired():
            one = waiting.pop(0)
            if one.bound < self._ticks():
                open_grids = 1 + sum(w.bound < self._ticks() for w in waiting)
                self._grid(one, watch.part(1 / open_grids))
            self._tell()
        self._last(tree, watch)

    def _few(self) -> bool:
        """Whether the orders of all grids that are not settled can be tried one by one."""
        left = [one for one in self._searches if one.bound < self._ticks()]
        if any(one.grid.cells > MOST_CELLS for one in left):
            return False
        return sum(number_of_orders(one.tree, one.grid.cells) for one in left) <= self.few_orders

    def _begun(self, tree: Tree, watch: StopWatch) -> list[GridSearch]:
        """Every grid with its first bound and its known orders; none if the time runs out."""
        found = []
        for grid in grids(self.problem):
            if watch.expired():
                return []
            one = self._search(grid, tree)
            one.start()
            found.append(one)
            ticks, slots = next(one.known(self.listed[0], watch))
            if ticks < self._ticks():
                self._take(one.grid, slots)
        return found

    def _search(self, grid: CellGrid, tree: Tree) -> GridSearch:
        slots = next(filled(grid, self.listed))
        terms = tuple(term(self.problem, grid, one, slots) for one in self.problem.requests)
        return GridSearch(self.problem, grid, terms, tree, self._tick_s, self.solver, self._take)

    def _grid(self, one: GridSearch, watch: StopWatch) -> None:
        """Settle a grid; where that fails, climb from the best of its known orders."""
        one.run(self._ticks, watch.part(_CLIMB))
        if one.bound < self._ticks() and not self._few():
            self._climb(one, watch)

    def _climb(self, one: GridSearch, watch: StopWatch) -> None:
        """Better orders near the two best that are known for a grid."""
        pool_of, fine = one.tree.pool_of(), one.fine().problem
        starts = [slots for _, slots in islice(one.known(self.listed[0], watch), 2)]
        for number, slots in enumerate(starts):
            climb = Climb(fine, [pool_of[s] for s in slots.tolist()], self.limits.seed)
            for ticks, pools in climb.run(watch.part(1 / (len(starts) - number)), _STEPS):
                if ticks < self._ticks():
                    self._take(one.grid, one.tree.slots(one.counts(pools)))

    def _last(self, tree: Tree, watch: StopWatch) -> None:
        """Where no bound meets the answer and there are few orders: all that may be faster."""
        unsettled = [one for one in self._searches if one.bound < self._ticks()]
        if self.proved or watch.expired() or not self._few():
            return
        for one in unsettled:
            pool_of, fine = tree.pool_of(), one.fine().problem
            for slots in every_order(tree, one.grid.cells):
                if watch.expired():
                    return
                if ticks_of(fine, one.counts([pool_of[s] for s in slots.tolist()])) < self._ticks():
                    self._take(one.grid, slots)
        for one in unsettled:
            one.bound = self._ticks()
        self._tell()

    def _tell(self) -> None:
        """The bound over all grids, and the progress."""
        best = self._ticks()
        if self._searches:
            least = min(min(one.bound, best) for one in self._searches)
            self.bound_s = min(least * self._tick_s, self.best.objective_s if self.best else 0.0)
            self.calls = sum(one.calls for one in self._searches)
        if self.progress is not None:
            self.progress(self.best.objective_s if self.best else None, self.bound_s)


# Every order of a small grid, for where the bounds of the search do not meet its answer.


MOST_CELLS = 64
"""Grids of more cells are not counted."""


def number_of_orders(tree: Tree, cells: int) -> int:
    """How many ways there are to put cells into pools, idle hosts included."""
    sizes = [len(slots) for slots in tree.pools]
    ways = {0: 1}
    for size in sizes:
        grown: dict[int, int] = {}
        for done, count in ways.items():
            for more in range(min(size, cells - done) + 1):
                new = count * math.comb(cells - done, more)
                grown[done + more] = grown.get(done + more, 0) + new
        ways = grown
    return ways.get(cells, 0)


def every_order(tree: Tree, cells: int) -> Iterator[IntArray]:
    """The places of the cells of each order; the hosts of a pool are taken in their order."""
    for pools in _filled([len(slots) for slots in tree.pools], cells):
        free = [iter(slots) for slots in tree.pools]
        yield np.array([next(free[p]) for p in pools], dtype=np.int64)


def _filled(left: Sequence[int], cells: int) -> Iterator[tuple[int, ...]]:
    if not cells:
        yield ()
        return
    for pool, hosts in enumerate(left):
        if hosts:
            rest = [n - (i == pool) for i, n in enumerate(left)]
            for more in _filled(rest, cells - 1):
                yield (pool, *more)


# Programs for requests on a rank list: sought on a small regular group, kept where they hold.
# The groups of a rank list are cut unequally, so no encoding describes them.  Every program of the
# instructions that all groups can follow is listed on a group that each level splits two ways
# (docs/small-model.md), priced on the real groups, and the cheapest that the semantics accept there
# is taken.  The list may lack a program that is valid on the real groups alone, so nothing is
# proved.


MAX_SOUGHT = 20_000
"""Programs that are listed for a request at most."""
MAX_TRIED = 200
"""Of the cheapest that are not valid on the real groups, so many are tried."""


def with_programs(
    problem: Problem,
    ranks: RankList,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
) -> Alternative:
    """The rank list with the best program found for each request, or its one collective.

    ``objective_s`` is that of these programs; its status is FEASIBLE: other programs may be faster.
    ``problem.topology`` names its hosts, all of which have ranks.

    Raises:
        InputError: the topology names no hosts, or the ranks do not fit it.
    """
    ranks.check(problem.topology)
    watch, chosen = StopWatch.start(limits or SearchLimits()), solver_of(solver)
    answers = tuple(_answer(problem, request, ranks, watch, chosen) for request in problem.requests)
    total_s = objective(problem, tuple(answer.seconds for answer in answers))
    return Alternative(None, answers, total_s, Status.FEASIBLE, ranks)


def sorted_note(
    found: Solution, seconds: float, limits: SearchLimits, solver: Solver
) -> tuple[str, ...]:
    """Says so if the hosts of an answer, sorted by their switches, are faster with programs.

    ``seconds``: what the answer takes with its own.  That an order is the best with one collective
    per request does not make it so with programs.
    """
    problem, best = found.problem, found.best
    hosts = problem.topology.hosts
    if hosts is None or best is None:
        return ()
    devices = host_order(problem, sorted_hosts(problem, hosts.names)).ravel().tolist()
    ranks = RankList(tuple(devices), problem.axis_sizes)
    if ranks == best.rank_list or any(broken_rules(problem, ranks)):
        return ()
    other_s = with_programs(problem, ranks, limits, solver).objective_s
    if other_s >= seconds * (1 - SAME):
        return ()
    text = f"with programs of their own the hosts sorted by switch take {format_time(other_s)}"
    return (f"{text}, this order {format_time(seconds)}",)


def _answer(
    problem: Problem, request: Request, ranks: RankList, watch: StopWatch, solver: Solver
) -> RequestAnswer:
    single, scene = rank_answer(problem, request, ranks), RankScene.of(problem, request, ranks)
    if not request.kind.has_programs or not 1 < scene.size <= MAX_DEVICES or watch.expired():
        return single
    for program, timed in _cheapest(scene, single.seconds, watch, solver):
        found = _checked(scene, program, timed)
        if found is not None:
            return found if found.seconds < single.seconds * (1 - SAME) else single
        if watch.expired():
            break
    return single


def _checked(scene: RankScene, program: Program, timed: Pipelined) -> RequestAnswer | None:
    """A program as the answer, if it is valid on the real groups."""
    checked = check_on_ranks(scene, program)
    trace = checked.trace
    if trace.violation is not None:
        return None
    timed = scene.timed(program, trace.payload_rows)
    return program_answer(scene.request, scene, program, checked, timed)


def _cheapest(
    scene: RankScene, below_s: float, watch: StopWatch, solver: Solver
) -> Iterator[tuple[Program, Pipelined]]:
    """Programs of the list that take less time, the fastest first; a limited number."""
    priced = []
    for program in _listed(scene, watch, solver):
        rows = _payload_rows(scene, program)
        if rows is not None:
            timed = scene.timed(program, rows)
            if timed.seconds < below_s * (1 - SAME):
                priced.append((program, timed))
        if watch.expired():
            break
    priced.sort(key=lambda one: (one[1].seconds, len(one[0]), str(one[0])))
    yield from priced[:MAX_TRIED]


def _listed(scene: RankScene, watch: StopWatch, solver: Solver) -> Sequence[Program]:
    """Every program of the small regular group of instructions that the real ones can follow."""
    problem, request = scene.problem, scene.request
    hierarchy = _small(scene)
    task = Task(
        plain_kind(request.kind),
        hierarchy,
        min(problem.max_length, SMALL_MODEL_LENGTH),
        problem.forbidden_forms,
        problem.step_limits,
        solver,
    )
    asked = task.problem()
    asked = replace(asked, forbidden=asked.forbidden | _impossible(scene, task, asked))
    limits = replace(watch.left(), max_answers=MAX_SOUGHT)
    result, _ = checked_listing(task, asked, hierarchy, limits)
    return [task.program(asked, indices) for indices in result.value or ()]


def _small(scene: RankScene) -> Hierarchy:
    """Levels that split some group, each two ways; the outermost ones merged if there are many."""
    hierarchy = common_hierarchy(scene.cut)
    if hierarchy.depth <= LISTED_DEPTH:
        return hierarchy
    kept = range(1 + hierarchy.depth - LISTED_DEPTH, hierarchy.depth)
    merged = hierarchy.merged(tuple(kept))
    return replace(merged, factors=(2,) * merged.depth)


def _impossible(scene: RankScene, task: Task, problem: ProgramProblem) -> set[int]:
    """Instructions, by number, that some group's slices are too uneven for."""
    distinct = tuple(dict.fromkeys(scene.cut))
    return {
        number
        for number, item in enumerate(problem.instructions.items)
        if not _possible(distinct, task.hierarchy.instruction(*item))
    }


def _possible(cut: Sequence[CutGroup], instruction: Instruction) -> bool:
    try:
        groups = [parts.groups(instruction) for parts in cut]
    except (UnevenSlicesError, InputError):
        return False
    return any(groups)


def _payload_rows(scene: RankScene, program: Program) -> tuple[int, ...] | None:
    """Payload of each step, by how many rows members hold; None where one cannot run.

    What members hold follows from numbers alone as long as the program is valid, which is checked
    afterwards.
    """
    start = demand_of(scene.request.kind).start.chunks
    first = 1 if start is Chunks.OWN else scene.size
    most = [0] * len(program)
    for parts in dict.fromkeys(scene.cut):
        held = [first] * scene.size
        for number, instruction in enumerate(program.instructions):
            for group in parts.groups(instruction):
                rows = _moved(instruction.reduction, group, held)
                if rows is None:
                    return None
                most[number] = max(most[number], rows)
    return tuple(most)


def _moved(collective: Collective, group: Sequence[int], held: list[int]) -> int | None:
    """Rows that a group works on; ``held`` becomes what its members have afterwards."""
    rows, members = held[group[0]], len(group)
    if collective is Collective.ALL_GATHER:
        rows *= members
    after = rows
    if collective is Collective.REDUCE_SCATTER:
        after, uneven = divmod(rows, members)
        if uneven:
            return None
    for number, member in enumerate(group):
        held[member] = 0 if collective is Collective.REDUCE and number else after
    return rows
