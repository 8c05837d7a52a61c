"""Redistribution of an array in at most so many steps with z3.

Problem: a :class:`~p2smt.problems.redistribution.RedistributionProblem`: a layout for each layer 0
to T and a kind of step between them, so that what the steps cost is least.

Variables
    dim[t, q]    where digit q is in layer t: a dimension, -1 (replicated) or -2 (partial)
    pos[t, q]    its position in the list of the dimension, 0 elsewhere
    kind[t]      the kind of step t, an integer
    turned[t]    Boolean: the devices of layer t have the destination's order
    packed[t]    Boolean: step t has a buffer for packing
    c[t]         ticks of step t

Constraints
    C1 place     a digit is in a dimension's list or in none
    C2 lists     no two digits have one position, and a list has no gap
    C3 capacity  the shards of a dimension divide it
    C4 ends      the first layer is the source, the last one the destination
    C5 kinds     NOTHING comes last and moves no digit; any other kind but TURN moves one
    C6 travel    moved digits come from, and go to, where the kind says
    C7 apart     in an all-to-all no dimension both loses and gains
    C8 blocks    a permute leaves each dimension as many shards
    C9 order     the order of devices changes in a TURN
    C10 rows     kind, moved and sharding digits, order and packing are those of a row; c is at
                 least its ticks
    C11 packed   a gather or reduce-scatter without a buffer cuts the leading dimension only
    C12 exact    a step between these places costs at least so much
    C13 at most  the objective does not exceed its limit
    C14 borders  a permute over a border costs at least so much
    C15 merged   no two slices in a row; nor two permutes, if one is as cheap

Objective: the sum of c, bisected by C13; the lower end is what the failures prove.  Of answers of
least cost the first is found place by place.

Size: 2 T x digits integers, T disjunctions of the rows.  It is meant for the tiniest meshes, and to
check the other encoding.
"""

from __future__ import annotations

import z3

from p2smt.encodings.redistribution.z3_costs import (
    c10_rows,
    c11_packed,
    c12_exact,
    c13_at_most,
    c14_borders,
    c15_merged,
)
from p2smt.encodings.redistribution.z3_steps import (
    Vars,
    c1_place,
    c2_lists,
    c3_capacity,
    c4_ends,
    c5_kinds,
    c6_travel,
    c7_apart,
    c8_blocks,
    c9_order,
    new_vars,
)
from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.problems.redistribution import Move, Moves, RedistributionProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "z3"
_Found = tuple[int, Moves]


def optimal_redistribution(problem: RedistributionProblem, limits: SearchLimits) -> Result[Moves]:
    """The cheapest steps; ``bound`` is the proved lower bound in ticks.

    FEASIBLE with a bound that is the objective: only the tie-break is unfinished.
    The counter "objective" of the statistics is what the encoding says of its answer.
    """
    watch, solver = StopWatch.start(limits), new_solver(limits.seed)
    v = _build(solver, problem)
    low, best, calls = 0, None, 0
    try:
        while best is None or low < best[0]:
            middle = None if best is None else (low + best[0]) // 2
            calls += 1
            found = _at_most(solver, v, middle, watch)
            if found is not None:
                best = found
            elif middle is None:
                return Result(Status.INFEASIBLE, stats=_stats(watch, calls, ()))
            else:
                low = middle + 1
        best = best[0], _first(solver, problem, v, best[0], watch)
        status = Status.OPTIMAL
    except OutOfTimeError:
        status = Status.UNKNOWN if best is None else Status.FEASIBLE
    if best is None:
        return Result(status, stats=_stats(watch, calls, ()))
    return Result(status, best[1], low, _stats(watch, calls, (("objective", best[0]),)))


def decode(v: Vars, model: z3.ModelRef) -> Moves:
    """The steps of a model, without those that do nothing."""

    def value(term: z3.ArithRef) -> int:
        return int(model.eval(term, model_completion=True).as_long())

    found = []
    for t, kind in enumerate(v.kinds):
        move = Move(value(kind))
        if move is not Move.NOTHING:
            pairs = zip(v.dims[t + 1], v.positions[t + 1], strict=True)
            found.append((move, tuple((value(dim), value(place)) for dim, place in pairs)))
    return tuple(found)


def _build(solver: z3.Solver, problem: RedistributionProblem) -> Vars:
    v = new_vars(problem)
    c1_place(solver, problem, v)
    c2_lists(solver, v)
    c3_capacity(solver, problem, v)
    c4_ends(solver, problem, v)
    c5_kinds(solver, v)
    c6_travel(solver, v)
    c7_apart(solver, v)
    c8_blocks(solver, problem, v)
    c9_order(solver, v)
    c10_rows(solver, problem, v)
    if problem.packs:
        c11_packed(solver, problem, v)
    for exact in problem.exact:
        c12_exact(solver, v, exact)
    if problem.at_most is not None:
        c13_at_most(solver, v, problem.at_most)
    for border in problem.borders:
        c14_borders(solver, problem, v, border)
    c15_merged(solver, problem, v)
    return v


def _at_most(solver: z3.Solver, v: Vars, ticks: int | None, watch: StopWatch) -> _Found | None:
    """An answer of at most so many ticks with its own; None: there is none."""
    solver.push()
    try:
        if ticks is not None:
            c13_at_most(solver, v, ticks)
        model = solution(solver, watch)
    finally:
        solver.pop()
    if model is None:
        return None
    cost = sum(model.eval(c, model_completion=True).as_long() for c in v.ticks)
    return cost, decode(v, model)


def _first(
    solver: z3.Solver, problem: RedistributionProblem, v: Vars, ticks: int, watch: StopWatch
) -> Moves:
    """The first of the answers of so many ticks: fewest steps, then least places, in turn."""
    solver.push()
    try:
        c13_at_most(solver, v, ticks)
        for steps in range(problem.max_steps + 1):
            if _holds(solver, [kind == Move.NOTHING for kind in v.kinds[steps:]], watch):
                break
        for dims, positions in zip(v.dims[1:], v.positions[1:], strict=True):
            for dim, place in zip(dims, positions, strict=True):
                for wanted in problem.places:
                    if _holds(solver, [dim == wanted[0], place == wanted[1]], watch):
                        break
        model = solution(solver, watch)
    finally:
        solver.pop()
    assert model is not None  # what holds was added only where it can
    return decode(v, model)


def _holds(solver: z3.Solver, terms: list[z3.BoolRef], watch: StopWatch) -> bool:
    """Add the terms if they can hold."""
    solver.push()
    solver.add(*terms)
    found = solution(solver, watch) is not None
    solver.pop()
    if found:
        solver.add(*terms)
    return found


def _stats(watch: StopWatch, calls: int, counters: tuple[tuple[str, int], ...]) -> SolveStats:
    return SolveStats(_SOLVER, watch.elapsed_s(), calls, counters)
