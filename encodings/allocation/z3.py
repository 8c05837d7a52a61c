"""Cells of a grid in pools of hosts with z3.

Problem: an :class:`~p2smt.problems.allocation.AllocationProblem`: how many cells of each block lie
in each pool, so that what the loads of the uplinks cost is least.

Variables
    n[b, p]      cells of block b in pool p, an integer
    k[l, e]      load l of entity e, an integer
    w[r, a]      ticks of way a of request r, an integer
    c[r]         ticks of request r, an integer

Constraints
    C1 blocks       the cells of a block are its members
    C2 pools        a pool holds no more cells than hosts
    C3 messages     k is at least what leaves the entity, and what enters it
    C4 shares       k is at least the sum over groups of the share of what the entity holds
    C5 ticks        w is at least the ticks of k
    C6 cheapest     c is at least w of some way of the request
    C7 held         so many cells of these blocks lie in each pool
    C8 at most      the objective does not exceed its limit

Objective: the sum of c, or the largest, bisected by C8; the lower end is what the failures prove.

Size: blocks x pools integers; each load is a sum over blocks, each table a clause per entry.  It is
meant for small problems, and to check the other encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.problems.allocation import AllocationProblem, Counts, Messages, Shares, WayTicks
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "z3"


@dataclass(frozen=True, slots=True)
class Vars:
    """n by block and pool, k by (load, entity), c by request."""

    cells: tuple[tuple[z3.ArithRef, ...], ...]
    loads: dict[tuple[int, int], z3.ArithRef]
    costs: tuple[z3.ArithRef, ...]

    def held(self, problem: AllocationProblem, blocks: Sequence[int], entity: int) -> z3.ArithRef:
        """What an entity holds of these blocks."""
        return z3.Sum([self.cells[b][p] for b in blocks for p in problem.entities[entity]])


def optimal_allocation(problem: AllocationProblem, limits: SearchLimits) -> Result[Counts]:
    """The cheapest answer; ``bound`` is the proved lower bound in ticks.

    The counter "objective" of the statistics is what the encoding says of its answer.
    """
    watch, solver = StopWatch.start(limits), new_solver(limits.seed)
    variables = _build(solver, problem)
    low, best, calls = 0, None, 0
    try:
        while best is None or low < best[0]:
            middle = None if best is None else (low + best[0]) // 2
            calls += 1
            found = _at_most(solver, problem, variables, middle, watch)
            if found is not None:
                best = found
            elif middle is None:
                return Result(Status.INFEASIBLE, stats=_stats(watch, calls, ()))
            else:
                low = middle + 1
        status = Status.OPTIMAL
    except OutOfTimeError:
        status = Status.UNKNOWN if best is None else Status.FEASIBLE
    if best is None:
        return Result(status, stats=_stats(watch, calls, ()))
    return Result(status, best[1], low, _stats(watch, calls, (("objective", best[0]),)))


def decode(variables: Vars, model: z3.ModelRef) -> Counts:
    """The counts of a model."""
    return tuple(
        tuple(model.eval(n, model_completion=True).as_long() for n in row)
        for row in variables.cells
    )


def c1_blocks(solver: z3.Solver, problem: AllocationProblem, v: Vars) -> None:
    """C1: the sum over the pools of a block's cells is its members."""
    for row in v.cells:
        solver.add(z3.Sum(row) == problem.members, *(n >= 0 for n in row))


def c2_pools(solver: z3.Solver, problem: AllocationProblem, v: Vars) -> None:
    """C2: the cells in a pool are at most its hosts."""
    for p, hosts in enumerate(problem.pools):
        solver.add(z3.Sum([row[p] for row in v.cells]) <= hosts)


def c3_messages(
    solver: z3.Solver, problem: AllocationProblem, v: Vars, load: Messages, key: tuple[int, int]
) -> None:
    """C3: k is at least the sum over edges of what one end has more, either way."""
    more, less = [], []
    for a, b, count in load.edges:
        apart = v.held(problem, (a,), key[1]) - v.held(problem, (b,), key[1])
        more.append(count * z3.If(apart > 0, apart, 0))
        less.append(count * z3.If(apart < 0, -apart, 0))
    solver.add(v.loads[key] >= z3.Sum(more), v.loads[key] >= z3.Sum(less))


def c4_shares(
    solver: z3.Solver, problem: AllocationProblem, v: Vars, load: Shares, key: tuple[int, int]
) -> None:
    """C4: k is at least the sum of the shares of what the entity holds of each group."""
    sent = []
    for group in load.groups:
        inside, share = v.held(problem, group, key[1]), z3.IntVal(0)
        for number, value in enumerate(load.sent):
            share = z3.If(inside == number, value, share)
        sent.append(share)
    solver.add(v.loads[key] >= z3.Sum(sent))


def c5_ticks(solver: z3.Solver, way: z3.ArithRef, load: z3.ArithRef, ticks: Sequence[int]) -> None:
    """C5: w is at least each entry of the table that the load reaches."""
    for value, cost in enumerate(ticks):
        if value == 0 or cost > ticks[value - 1]:
            solver.add(z3.Implies(load >= value, way >= cost))


def c6_cheapest(solver: z3.Solver, request: z3.ArithRef, ways: Sequence[z3.ArithRef]) -> None:
    """C6: c is at least the ticks of one way."""
    solver.add(z3.Or([request >= way for way in ways]))


def c7_held(solver: z3.Solver, problem: AllocationProblem, v: Vars) -> None:
    """C7: the cells of these blocks in each pool are as many as is held."""
    for one in problem.held:
        for p, count in enumerate(one.counts):
            solver.add(z3.Sum([v.cells[b][p] for b in one.blocks]) == count)


def c8_at_most(solver: z3.Solver, problem: AllocationProblem, v: Vars, ticks: int) -> None:
    """C8: the sum of the costs, or each of them, is at most so many ticks."""
    if problem.worst:
        solver.add(*(cost <= ticks for cost in v.costs))
    else:
        solver.add(z3.Sum(v.costs) <= ticks)


def _build(solver: z3.Solver, problem: AllocationProblem) -> Vars:
    cells = tuple(
        tuple(z3.Int(f"n{b},{p}") for p in range(len(problem.pools))) for b in range(problem.blocks)
    )
    costs = tuple(z3.Int(f"c{r}") for r in range(len(problem.requests)))
    wanted = {
        (uplink.load, entity)
        for ways in problem.requests
        for way in ways
        for entity, uplink in enumerate(way.uplinks)
        if uplink is not None
    }
    loads = {key: z3.Int(f"k{key[0]},{key[1]}") for key in sorted(wanted)}
    v = Vars(cells, loads, costs)
    c1_blocks(solver, problem, v)
    c2_pools(solver, problem, v)
    c7_held(solver, problem, v)
    for key in loads:
        load = problem.loads[key[0]]
        if isinstance(load, Messages):
            c3_messages(solver, problem, v, load, key)
        else:
            c4_shares(solver, problem, v, load, key)
    for r, ways in enumerate(problem.requests):
        prices = [_priced(solver, v, way, f"w{r},{a}") for a, way in enumerate(ways)]
        c6_cheapest(solver, costs[r], prices)
    if problem.at_most is not None:
        c8_at_most(solver, problem, v, problem.at_most)
    return v


def _priced(solver: z3.Solver, v: Vars, way: WayTicks, name: str) -> z3.ArithRef:
    """w of a way."""
    price = z3.Int(name)
    solver.add(price >= way.least)
    for entity, uplink in enumerate(way.uplinks):
        if uplink is not None:
            c5_ticks(solver, price, v.loads[uplink.load, entity], uplink.ticks)
    return price


def _at_most(
    solver: z3.Solver,
    problem: AllocationProblem,
    v: Vars,
    ticks: int | None,
    watch: StopWatch,
) -> tuple[int, Counts] | None:
    """An answer of at most so many ticks with its own; None: there is none."""
    solver.push()
    try:
        if ticks is not None:
            c8_at_most(solver, problem, v, ticks)
        model = solution(solver, watch)
    finally:
        solver.pop()
    if model is None:
        return None
    costs = [model.eval(cost, model_completion=True).as_long() for cost in v.costs]
    return (max(costs) if problem.worst else sum(costs)), decode(v, model)


def _stats(watch: StopWatch, calls: int, counters: tuple[tuple[str, int], ...]) -> SolveStats:
    return SolveStats(_SOLVER, watch.elapsed_s(), calls, counters)
