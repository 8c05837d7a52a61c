"""A shortest path through the reachable states, chosen by CP-SAT: the default encoding of programs.

A breadth-first search lists the states and the steps between them beforehand
(``reachable.py``, ``reachable_search.py``: no solver in them); CP-SAT chooses along them, by table
constraints.  The paper's direct encoding of state matrices is in ``z3.py``; it is the cross-check
of this one.

Problem: P2's synthesis of reduction programs: sequences of at most L instructions that lead
from the start of a demand to its goal.

The states that matter are those reachable from the start and from which the goal is still
reachable in the steps left.  Over up to 2 levels, up to length 6 over 5, and up to length 5 over
more, they are built on factors of two (the small-model theorem, see docs/small-model.md); outside
that range on the real factors.  States of one layer that the same steps go on from are one node.

Variables, for step t = 1..L
    x[t] in 0..I       instruction number plus one; 0 is "stop"
    s[t] in nodes      state after the step, or those that go on alike; s[0] is the start
    c[t] in ticks      cost of the step (with costs)
    u[t,l] in 0..1     whether the step counts towards limit l

Constraints
    C1 step       (s[t-1], x[t], s[t], c[t], u[t,*]) is an arc of layer t; a stop stays at the goal
    C2 limit      sum over t of u[t,l] <= at_most of limit l
    C3 excluded   x differs from every excluded program
    C4 at most    sum of c <= at_most

Objective: minimise the sum of c (without costs: the length); ties (within the problem's
    slack): shortest, then smallest x.

Every variable is a function of x.  An enumeration has a model of its own over the same layers, of
literals (``cpsat_arcs.py``).

Size: one tuple per arc of each layer; at L = 5, 4 levels have about 1,200, 8 levels 14,300.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ortools.sat.python import cp_model

from p2smt.encodings import run_cpsat
from p2smt.encodings.program.cpsat_arcs import LayerRow, PathCollector, arc_model, layers_of
from p2smt.encodings.program.reachable import ReachableTable, build_table
from p2smt.errors import OutOfTimeError
from p2smt.problems.placement import Indices, ProgramProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_TIE_LIMIT = 2**50


@dataclass(frozen=True, slots=True)
class Vars:
    """Model variables by step: instruction, cost, and use per limit (see the file's head)."""

    x: tuple[cp_model.IntVar, ...]
    cost: tuple[cp_model.IntVar, ...]
    use: tuple[tuple[cp_model.IntVar, ...], ...]


def c1_step(model: cp_model.CpModel, layers: Sequence[Sequence[LayerRow]]) -> Vars:
    """C1: each step is an arc of its layer."""
    state = _column(model, layers[0], 0)
    columns = []
    for rows in layers:
        x, after, *rest = (_column(model, rows, n) for n in range(1, len(rows[0])))
        model.add_allowed_assignments([state, x, after, *rest], rows)
        columns.append((x, *rest))
        state = after
    word, cost, *used = zip(*columns, strict=True)
    return Vars(tuple(word), tuple(cost), tuple(used))


def _column(model: cp_model.CpModel, rows: Sequence[LayerRow], n: int) -> cp_model.IntVar:
    values = sorted({row[n] for row in rows})
    return model.new_int_var_from_domain(cp_model.Domain.from_values(values), "")


def c2_limit(model: cp_model.CpModel, problem: ProgramProblem, vs: Vars) -> None:
    """C2: no more steps of a kind than its limit allows."""
    for limit, used in zip(problem.limits, vs.use, strict=True):
        model.add(cp_model.LinearExpr.sum(list(used)) <= limit.at_most)


def c3_excluded(model: cp_model.CpModel, problem: ProgramProblem, vs: Vars) -> None:
    """C3: x differs from every excluded program."""
    length = problem.max_length
    words = [
        (*(i + 1 for i in program), *(0 for _ in range(length - len(program))))
        for program in sorted(problem.excluded)
        if len(program) <= length
    ]
    if words:
        model.add_forbidden_assignments(list(vs.x), words)


def c4_at_most(model: cp_model.CpModel, problem: ProgramProblem, vs: Vars) -> None:
    """C4: the total cost is within the bound."""
    if problem.at_most is not None:
        model.add(cp_model.LinearExpr.sum(list(vs.cost)) <= problem.at_most)


def _build(problem: ProgramProblem, table: ReachableTable) -> tuple[cp_model.CpModel, Vars] | None:
    """The model, or None where some step has no arc left: then there is no program."""
    layers = layers_of(problem, table)
    if not all(layers):
        return None
    model = cp_model.CpModel()
    vs = c1_step(model, layers)
    c2_limit(model, problem, vs)
    c3_excluded(model, problem, vs)
    c4_at_most(model, problem, vs)
    return model, vs


def decode(word: Sequence[int]) -> Indices:
    """Instruction indices of the values of x."""
    return tuple(x - 1 for x in word if x > 0)


def _order(program: Indices) -> tuple[int, Indices]:
    return len(program), program


def _stats(watch: StopWatch, table: ReachableTable, *more: tuple[str, int]) -> SolveStats:
    return SolveStats("cpsat", watch.elapsed_s(), 1, (("states", table.explored), *more))


def enumerate_programs(
    problem: ProgramProblem, limits: SearchLimits
) -> Result[tuple[Indices, ...]]:
    """Every program of at most ``max_length`` steps once, sorted by (length, indices).

    COMPLETE, or TRUNCATED at the time limit or after ``limits.max_answers``.

    Raises:
        TooLarge: the reachable states exceed the table's limits.
    """
    watch = StopWatch.start(limits)
    try:
        table = build_table(problem, watch)
    except OutOfTimeError:
        return Result(Status.TRUNCATED, (), stats=SolveStats("cpsat", watch.elapsed_s()))
    layers = layers_of(problem, table)
    if not all(layers):
        return Result(Status.COMPLETE, (), stats=_stats(watch, table))
    model, arcs = arc_model(problem, layers)
    collector = PathCollector(arcs, limits.max_answers)
    _, status = run_cpsat.run(model, watch.left(), collector, every=True, plainly=True)
    programs = tuple(sorted(collector.found, key=_order)[: limits.max_answers])
    whole = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    whole = whole and len(programs) == len(collector.found)
    stats = _stats(watch, table)
    return Result(Status.COMPLETE if whole else Status.TRUNCATED, programs, stats=stats)


def optimal_program(problem: ProgramProblem, limits: SearchLimits) -> Result[Indices]:
    """The program of least total cost; ties: shortest, then smallest indices.

    FEASIBLE if the time ran out before the proof (tie-break included).

    Raises:
        TooLarge: the reachable states exceed the table's limits.
    """
    watch = StopWatch.start(limits)
    try:
        table = build_table(problem, watch)
    except OutOfTimeError:
        return Result(Status.UNKNOWN, stats=SolveStats("cpsat", watch.elapsed_s()))
    return _optimum(problem, table, watch)


def _optimum(problem: ProgramProblem, table: ReachableTable, watch: StopWatch) -> Result[Indices]:
    """The optimum over a table, which may be that of other costs, limits, exclusions, bounds."""
    built = _build(problem, table)
    if built is None:
        return Result(Status.INFEASIBLE, stats=_stats(watch, table))
    model, vs = built
    model.minimize(cp_model.LinearExpr.sum(list(vs.cost if problem.costs else _lengths(*built))))
    solver, status = run_cpsat.run(model, watch.left(), in_ticks=problem.costs is not None)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = Status.INFEASIBLE if status == cp_model.INFEASIBLE else Status.UNKNOWN
        return Result(found, stats=_stats(watch, table))
    best = decode([solver.value(x) for x in vs.x])
    cost, bound = round(solver.objective_value), run_cpsat.proved_bound(solver)
    stats = ("objective", cost)
    if status == cp_model.FEASIBLE:
        return Result(Status.FEASIBLE, best, bound, _stats(watch, table, stats))
    first = _first_of(problem, table, cost, watch)
    if first is None:
        return Result(Status.FEASIBLE, best, bound, _stats(watch, table, stats))
    return Result(Status.OPTIMAL, first, cost, _stats(watch, table, stats))


def _lengths(model: cp_model.CpModel, vs: Vars) -> list[cp_model.IntVar]:
    """0/1 per step: whether it is an instruction."""
    used = []
    for x in vs.x:
        step = model.new_bool_var("")
        model.add(x >= 1).only_enforce_if(step)
        model.add(x == 0).only_enforce_if(~step)
        used.append(step)
    return used


def _first_of(
    problem: ProgramProblem, table: ReachableTable, cost: int, watch: StopWatch
) -> Indices | None:
    """The shortest, then smallest program tied with this optimum; None if the time runs out."""
    limit = cost + problem.slack if problem.costs is not None else problem.at_most
    if problem.at_most is not None:
        limit = min(limit or 0, problem.at_most)
    length = problem.max_length if problem.costs is not None else cost
    tied = replace(problem, at_most=limit, max_length=length)
    built = _build(tied, table)
    assert built is not None, "an optimal program is one of its own ties"
    model, vs = built
    digits: list[cp_model.LinearExprT] = [cp_model.LinearExpr.sum(_lengths(model, vs)), *vs.x]
    solver = None
    for chunk in _chunks(digits, len(problem.instructions.items) + 1):
        model.minimize(chunk)
        solver, status = run_cpsat.run(model, watch.left())
        if status != cp_model.OPTIMAL:
            return None
        model.add(chunk == round(solver.objective_value))
    assert solver is not None
    return decode([solver.value(x) for x in vs.x])


def _chunks(digits: Sequence[cp_model.LinearExprT], base: int) -> list[cp_model.LinearExpr]:
    """Numbers in ``base`` whose order is that of the digits, few enough to fit an objective."""
    size = 1
    while base ** (size + 1) < _TIE_LIMIT:
        size += 1
    found = []
    for at in range(0, len(digits), size):
        part = digits[at : at + size]
        weights = [base**n for n in reversed(range(len(part)))]
        found.append(cp_model.LinearExpr.weighted_sum(list(part), weights))
    return found


def best_programs(
    problem: ProgramProblem, limits: SearchLimits, k: int
) -> Result[tuple[Indices, ...]]:
    """The k programs of least cost in order (all, if there are fewer).

    COMPLETE if the order is proved, else TRUNCATED with what was found.

    Raises:
        TooLarge: the reachable states exceed the table's limits.
    """
    watch = StopWatch.start(limits)
    try:
        table = build_table(problem, watch)
    except OutOfTimeError:
        return Result(Status.TRUNCATED, (), stats=SolveStats("cpsat", watch.elapsed_s()))
    found: list[Indices] = []
    status = Status.COMPLETE
    while len(found) < k:
        rest = replace(problem, excluded=problem.excluded | set(found))
        result = _optimum(rest, table, watch)
        if result.status is not Status.OPTIMAL or result.value is None:
            status = Status.COMPLETE if result.status is Status.INFEASIBLE else Status.TRUNCATED
            break
        found.append(result.value)
    return Result(status, tuple(found), stats=_stats(watch, table))


def cost_keys(problem: ProgramProblem, limits: SearchLimits) -> Result[tuple[tuple[int, int], ...]]:
    """The (instruction, payload rows) pairs that a cost table must cover, sorted.

    COMPLETE, or UNKNOWN: the time ran out before they were known.
    """
    watch = StopWatch.start(limits)
    try:
        table = build_table(problem, watch)
    except OutOfTimeError:
        return Result(Status.UNKNOWN, stats=SolveStats("cpsat", watch.elapsed_s(), calls=0))
    keys = sorted({(a.instruction, a.rows) for arcs in table.arcs.values() for a in arcs})
    stats = SolveStats("cpsat", watch.elapsed_s(), calls=0)
    return Result(Status.COMPLETE, tuple(keys), stats=stats)
