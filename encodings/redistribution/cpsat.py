"""Redistribution of an array in at most so many steps with CP-SAT.

Problem: a :class:`~p2smt.problems.redistribution.RedistributionProblem`: a layout for each layer 0
to T and a kind of step between them, so that what the steps cost is least.

Variables
    z[t, q, s]   Boolean: digit q has place s in layer t (a slot of a dimension's list, replicated
                 or partial)
    x[t, q, d]   Boolean: it is in the list of dimension d
    kind[t, m]   Boolean: step t is of kind m
    g[t, q]      Boolean: step t moves digit q
    turned[t]    Boolean: the devices of layer t have the destination's order
    packed[t]    Boolean: step t has a buffer for packing
    least[t]     ticks of the row of step t
    c[t]         ticks of step t

Constraints
    C1 place     a digit has one place
    C2 lists     a slot has one digit at most, and a list no gap
    C3 capacity  the shards of a dimension divide it
    C4 ends      the first layer is the source, the last one the destination
    C5 kinds     a step has one kind; NOTHING comes last; any other kind but TURN moves a digit
    C6 still     a digit is moved exactly if its place changes
    C7 travel    moved digits come from, and go to, where the kind says
    C8 apart     in an all-to-all no dimension both loses and gains
    C9 blocks    a permute leaves each dimension as many shards
    C10 order    the order of devices changes in a TURN
    C11 rows     kind, moved and sharding digits, order and packing are those of a row; c is at
                 least its ticks
    C12 packed   a gather or reduce-scatter without a buffer cuts the leading dimension only
    C13 exact    a step between these places costs at least so much
    C14 at most  the objective does not exceed its limit
    C15 borders  a permute over a border costs at least so much
    C16 merged   no two slices in a row; nor two permutes, if one is as cheap
    C17 outlook  before and after a layer c is at least what its counts of digits tell (follows from
                 the others)

Objective: the sum of c.  Of answers of least cost the first is found by more goals, one by one.

That digits leave and join the end of a list follows from C2 and C6: whoever stays keeps its slot.

Size: T x digits x slots Booleans, T tables of the rows.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from p2smt.encodings.redistribution.cpsat_borders import c15_borders
from p2smt.encodings.redistribution.cpsat_costs import (
    c11_rows,
    c12_packed,
    c13_exact,
    c14_at_most,
    c16_merged,
)
from p2smt.encodings.redistribution.cpsat_moves import (
    c5_kinds,
    c6_still,
    c7_travel,
    c8_apart,
    c9_blocks,
    c10_order,
)
from p2smt.encodings.redistribution.cpsat_outlook import c17_outlook
from p2smt.encodings.redistribution.cpsat_places import c1_place, c2_lists, c3_capacity, c4_ends
from p2smt.encodings.redistribution.cpsat_ties import first_of_cheapest
from p2smt.encodings.redistribution.cpsat_vars import Vars, new_vars
from p2smt.encodings.run_cpsat import bound_without_answer, proved_bound, run
from p2smt.problems.redistribution import Move, Moves, Places, RedistributionProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "cpsat"


def optimal_redistribution(problem: RedistributionProblem, limits: SearchLimits) -> Result[Moves]:
    """The cheapest steps; ``bound`` is the proved lower bound in ticks.

    FEASIBLE with a bound that is the objective: only the tie-break is unfinished.
    The counter "objective" of the statistics is what the encoding says of its answer.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    variables = _build(model, problem)
    model.minimize(sum(variables.ticks))
    left = watch.left()
    solver, verdict = run(model, left, in_ticks=True)
    if verdict not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        status = Status.INFEASIBLE if verdict == cp_model.INFEASIBLE else Status.UNKNOWN
        asked = status is Status.UNKNOWN and left.time_limit_s != 0
        bound = (bound_without_answer(solver) or 0) if asked else None
        return Result(status, None, bound, SolveStats(_SOLVER, watch.elapsed_s()))
    value = sum(solver.value(ticks) for ticks in variables.ticks)
    proved = verdict == cp_model.OPTIMAL
    bound = value if proved else max(0, proved_bound(solver))
    if proved:
        solver, proved = first_of_cheapest(model, problem, variables, solver, watch)
    stats = SolveStats(_SOLVER, watch.elapsed_s(), 1, (("objective", value),))
    answer = decode(problem, variables, solver)
    return Result(Status.OPTIMAL if proved else Status.FEASIBLE, answer, bound, stats)


def decode(problem: RedistributionProblem, variables: Vars, solver: cp_model.CpSolver) -> Moves:
    """The steps of the solver's solution, without those that do nothing."""
    found = []
    for t in range(problem.max_steps):
        kinds = variables.kinds[t]
        kind = next(move for move in Move if move in kinds and solver.value(kinds[move]))
        if kind is not Move.NOTHING:
            found.append((kind, _places(variables, solver, t + 1)))
    return tuple(found)


def _places(variables: Vars, solver: cp_model.CpSolver, t: int) -> Places:
    return tuple(
        next(place for place, here in digit.items() if solver.value(here))
        for digit in variables.places[t]
    )


def _build(model: cp_model.CpModel, problem: RedistributionProblem) -> Vars:
    v = new_vars(model, problem)
    c1_place(model, v)
    c2_lists(model, problem, v)
    c3_capacity(model, problem, v)
    c4_ends(model, problem, v)
    c5_kinds(model, v)
    c6_still(model, v)
    c7_travel(model, v)
    c8_apart(model, problem, v)
    c9_blocks(model, problem, v)
    c10_order(model, v)
    c11_rows(model, problem, v)
    if problem.packs:
        c12_packed(model, problem, v)
    for exact in problem.exact:
        c13_exact(model, v, exact)
    if problem.at_most is not None:
        c14_at_most(model, v, problem.at_most)
    for border in problem.borders:
        c15_borders(model, problem, v, border)
    c16_merged(model, problem, v)
    if problem.outlook is not None:
        c17_outlook(model, problem, v, problem.outlook)
    return v
