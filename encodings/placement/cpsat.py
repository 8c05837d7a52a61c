"""Parallelism matrices with CP-SAT (P2, section "Parallelism matrix").

Problem: split parallelism axes over hierarchy levels, all ways or the cheapest one; folded: by two
matrices with one first row.  The entries are written as products of primes, so products of entries
become sums.

Variables
    e[i, j, p]   exponent of prime p in matrix[i][j], between the bounds that the sums leave
    s[S, j, p]   sum of the exponents of the axes S at level j, where a cost table asks for it
    c[t]         cost of table t in ticks
    m            objective if it is the maximum
    r[i, j]      rank of matrix[i][j] among the values it can have; with one prime e itself

Constraints
    C1 row sums       the exponents of an axis sum to those of its size
    C2 column sums    the exponents of a level sum to those of its size; folded: in each of two
                      matrices, which share the exponents of their first row
    C3 inside         an axis inside level j: its exponents at level j and outside are 0
    C4 across         an axis across level j: one of them is not 0
    C5 fixed entry    the exponents of the entry are those of its value
    C6 excluded       the exponents together are not those of an excluded matrix
    C7 term sums      s is the sum of its exponents
    C8 cost tables    (exponents and sums, c) is a row of the table
    C9 at most        the objective does not exceed its limit
    C10 maximum       m is the largest cost
    C11 rank          (exponents of the entry, r) is a row of the list of its values, ascending

Objective: the sum of c, or m.  A proved optimum is then fixed and the smallest matrix searched,
row-major, so seed and workers do not change the answer: the ranks as digits of mixed-radix numbers
(blocks) of bounded size are minimised and fixed one after the other.  The last row and column are
left out: the sums determine them.  Usually there is one block.

Enumeration: every auxiliary variable is a function of e, so each matrix is found once.  Primes
that no side constraint couples are solved apart and combined (their numbers of answers
multiply); a limit on the answers stops each part and the combination.

Conflict: C1 and C2 hold, each rule holds under an assumption (enforcement literals of C3 to C5),
and the assumptions that suffice for infeasibility are the answer.

Size: axes x levels x primes exponents; a table has as many rows as combinations of values.
16,16,32,8 with axes 8,64,16,8: 16 exponents, 6434 matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ortools.sat.python import cp_model

from p2smt.encodings.placement.primes import (
    Cell,
    Column,
    ExponentTable,
    PartAnswers,
    PrimeSizes,
    combine,
    independent_parts,
)
from p2smt.encodings.run_cpsat import bound_without_answer, proved_bound, run
from p2smt.errors import TooLarge
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

MAX_TICKS = 2**61
_SOLVER = "cpsat"


@dataclass(frozen=True, slots=True)
class Vars:
    """e by cell, s by column (e itself where the column is one cell), c by table."""

    exponents: Mapping[Cell, cp_model.IntVar]
    sums: Mapping[Column, cp_model.IntVar]
    costs: tuple[cp_model.IntVar, ...]


def enumerate_placements(
    problem: PlacementProblem, limits: SearchLimits
) -> Result[tuple[Matrix, ...]]:
    """All answers, each once, in lexicographic order.

    COMPLETE (with an empty tuple if there is none), or TRUNCATED at a limit of ``limits``.

    Raises:
        TooLarge: a level or the ticks exceed what the encoding can hold.
    """
    watch, sizes = StopWatch.start(limits), PrimeSizes.of(problem)
    parts = [_all_of(problem, sizes, part, watch) for part in independent_parts(problem, sizes)]
    status, matrices = combine(parts, limits.max_answers, watch.expired)
    return Result(status, matrices, None, SolveStats(_SOLVER, watch.elapsed_s(), len(parts)))


def optimal_placement(problem: PlacementProblem, limits: SearchLimits) -> Result[Matrix]:
    """The cheapest matrix; of several, the lexicographically smallest.

    ``bound`` is the proved lower bound in ticks; the counter "objective" of the statistics is
    the objective of the answer.  FEASIBLE with both equal: only the tie-break is unfinished.
    UNKNOWN: the bound is None, or one above 0 that was proved.

    Raises:
        TooLarge: a level or the ticks exceed what the encoding can hold.
    """
    watch, sizes = StopWatch.start(limits), PrimeSizes.of(problem)
    tables = _tables(problem, sizes)
    model, variables = _build(problem, sizes, tables, range(len(sizes.primes)))
    goal = _goal(model, variables, problem.worst)
    model.minimize(goal)
    solver, verdict = run(model, watch.left(), in_ticks=True)
    if verdict == cp_model.INFEASIBLE:
        return Result(Status.INFEASIBLE, stats=SolveStats(_SOLVER, watch.elapsed_s()))
    if verdict not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        stats = SolveStats(_SOLVER, watch.elapsed_s())
        return Result(Status.UNKNOWN, bound=bound_without_answer(solver), stats=stats)
    answer, value = decode(sizes, variables, solver), solver.value(goal)
    bound, calls, status = proved_bound(solver), 1, Status.FEASIBLE
    if verdict == cp_model.OPTIMAL:
        model.add(goal == value)
        answer, more, proved = smallest(model, sizes, variables.exponents, answer, watch)
        bound, calls = value, 1 + more
        status = Status.OPTIMAL if proved else Status.FEASIBLE
    stats = SolveStats(_SOLVER, watch.elapsed_s(), calls, (("objective", value),))
    return Result(status, answer, bound, stats)


def conflicting_rules(problem: PlacementProblem, limits: SearchLimits) -> Result[tuple[int, ...]]:
    """Indices of rules that leave no answer together, ascending; perhaps more than it takes.

    Raises:
        TooLarge: a level exceeds MAX_LEVEL_SIZE.
    """
    watch, sizes = StopWatch.start(limits), PrimeSizes.of(problem)
    model = cp_model.CpModel()
    variables = _declare(model, sizes, (), range(len(sizes.primes)))
    c1_row_sums(model, sizes, variables)
    c2_column_sums(model, sizes, variables)
    assumed = [model.new_bool_var(f"rule{k}") for k in range(len(problem.rules))]
    for literal, rule in zip(assumed, problem.rules, strict=True):
        for constraint in _rule(model, sizes, variables, rule):
            constraint.only_enforce_if(literal)
    model.add_assumptions(assumed)
    solver, verdict = run(model, replace(watch.left(), workers=1))
    stats = SolveStats(_SOLVER, watch.elapsed_s())
    if verdict != cp_model.INFEASIBLE:
        known = verdict in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        return Result(Status.FEASIBLE if known else Status.UNKNOWN, stats=stats)
    core = set(solver.sufficient_assumptions_for_infeasibility())
    found = tuple(k for k, literal in enumerate(assumed) if literal.index in core)
    return Result(Status.INFEASIBLE, found, stats=stats)


def decode(sizes: PrimeSizes, variables: Vars, solver: cp_model.CpSolver) -> Matrix:
    """The matrix of the solver's solution."""
    return sizes.matrix({cell: solver.value(e) for cell, e in variables.exponents.items()})


def c1_row_sums(model: cp_model.CpModel, sizes: PrimeSizes, variables: Vars) -> None:
    """C1: sum over j of e[i, j, p] is the exponent of p in axis i."""
    for i, p in sorted({(i, p) for i, _, p in variables.exponents}):
        cells = ((i, j, p) for j in range(len(sizes.levels)))
        model.add(sum(variables.exponents[cell] for cell in cells) == sizes.axes[i][p])


def c2_column_sums(model: cp_model.CpModel, sizes: PrimeSizes, variables: Vars) -> None:
    """C2: in each matrix the sum over its rows i of e[i, j, p] is the exponent of p in level j."""
    for j, p in sorted({(j, p) for _, j, p in variables.exponents}):
        for rows in sizes.blocks:
            cells = ((i, j, p) for i in rows)
            model.add(sum(variables.exponents[cell] for cell in cells) == sizes.levels[j][p])


def c3_inside(
    model: cp_model.CpModel, variables: Vars, rule: AxisRule
) -> list[cp_model.Constraint]:
    """C3: the exponents of the axis at the level and outside are 0."""
    return [model.add(exponent == 0) for exponent in _outer(variables, rule)]


def c4_across(
    model: cp_model.CpModel, variables: Vars, rule: AxisRule
) -> list[cp_model.Constraint]:
    """C4: one of the exponents of the axis at the level and outside is not 0."""
    return [model.add(sum(_outer(variables, rule)) >= 1)]


def c5_fixed_entry(
    model: cp_model.CpModel, sizes: PrimeSizes, variables: Vars, rule: FixedEntry
) -> list[cp_model.Constraint]:
    """C5: the exponents of the entry are those of its value, which may have none."""
    exponents = sizes.exponents(rule.value)
    if exponents is None:
        return [model.add_bool_or([])]
    return [
        model.add(exponent == exponents[p])
        for (i, j, p), exponent in variables.exponents.items()
        if (i, j) == (rule.axis, rule.level)
    ]


def c6_excluded(
    model: cp_model.CpModel, sizes: PrimeSizes, variables: Vars, excluded: Sequence[Matrix]
) -> None:
    """C6: the exponents together are not those of an excluded matrix."""
    found = [split for matrix in excluded if (split := sizes.split(matrix)) is not None]
    cells = list(variables.exponents)
    if found and cells:
        rows = [[split[cell] for cell in cells] for split in found]
        model.add_forbidden_assignments([variables.exponents[cell] for cell in cells], rows)
    elif found:
        model.add_bool_or([])  # the only matrix, all ones, is excluded


def c7_term_sums(model: cp_model.CpModel, variables: Vars) -> None:
    """C7: s is the sum of the exponents in its column."""
    for column, total in variables.sums.items():
        if len(column) > 1:
            model.add(total == sum(variables.exponents[cell] for cell in column))


def c8_cost_tables(
    model: cp_model.CpModel, variables: Vars, tables: Sequence[ExponentTable]
) -> None:
    """C8: the exponent sums and the cost of each table are one of its rows."""
    for table, cost in zip(tables, variables.costs, strict=True):
        if not table.rows:
            model.add_bool_or([])
            continue
        terms = [variables.sums[column] for column in table.columns]
        model.add_allowed_assignments([*terms, cost], [(*key, c) for key, c in table.rows])


def c9_at_most(model: cp_model.CpModel, variables: Vars, worst: bool, ticks: int) -> None:
    """C9: the sum of the costs, or each of them, is at most ``ticks``."""
    for cost in variables.costs if worst else ():
        model.add(cost <= ticks)
    if not worst and variables.costs:
        model.add(sum(variables.costs) <= ticks)
    if not variables.costs and ticks < 0:
        model.add_bool_or([])  # without tables the objective is 0


def c10_maximum(
    model: cp_model.CpModel, variables: Vars, maximum: cp_model.IntVar
) -> cp_model.IntVar:
    """C10: m is the largest cost."""
    model.add_max_equality(maximum, variables.costs)
    return maximum


def _rule(
    model: cp_model.CpModel, sizes: PrimeSizes, variables: Vars, rule: AxisRule | FixedEntry
) -> list[cp_model.Constraint]:
    """The constraints of a rule: C3, C4 or C5."""
    if isinstance(rule, FixedEntry):
        return c5_fixed_entry(model, sizes, variables, rule)
    return c3_inside(model, variables, rule) if rule.inside else c4_across(model, variables, rule)


def _outer(variables: Vars, rule: AxisRule) -> list[cp_model.IntVar]:
    """The exponents of the rule's axis at its level and outside."""
    cells = variables.exponents.items()
    return [e for (i, j, _), e in cells if i == rule.axis and j <= rule.level]


def _tables(problem: PlacementProblem, sizes: PrimeSizes) -> tuple[ExponentTable, ...]:
    tables = tuple(sizes.table(table) for table in problem.costs)
    if sum(max((abs(c) for _, c in table.rows), default=0) for table in tables) > MAX_TICKS:
        raise TooLarge("cost tables", f"the sum of the costs must be at most {MAX_TICKS} ticks")
    return tables


def _declare(
    model: cp_model.CpModel, sizes: PrimeSizes, tables: Sequence[ExponentTable], part: Sequence[int]
) -> Vars:
    exponents = {
        cell: model.new_int_var(*sizes.bounds(cell), f"e{cell}") for cell in sizes.cells(part)
    }
    columns = sorted({column for table in tables for column in table.columns})
    sums = {
        column: exponents[column[0]]
        if len(column) == 1
        else model.new_int_var(*sizes.column_bounds(column), f"s{column}")
        for column in columns  # each once: a variable that is not used is free
    }
    costs = []
    for k, table in enumerate(tables):
        domain = cp_model.Domain.from_values(sorted({c for _, c in table.rows} or {0}))
        costs.append(model.new_int_var_from_domain(domain, f"c{k}"))
    return Vars(exponents, sums, tuple(costs))


def _build(
    problem: PlacementProblem,
    sizes: PrimeSizes,
    tables: Sequence[ExponentTable],
    part: Sequence[int],
) -> tuple[cp_model.CpModel, Vars]:
    """The model of some primes (all, unless no side constraint couples them): C1 to C9."""
    model = cp_model.CpModel()
    variables = _declare(model, sizes, tables, part)
    c1_row_sums(model, sizes, variables)
    c2_column_sums(model, sizes, variables)
    for rule in problem.rules:
        _rule(model, sizes, variables, rule)
    c6_excluded(model, sizes, variables, sorted(problem.excluded))
    c7_term_sums(model, variables)
    c8_cost_tables(model, variables, tables)
    if problem.at_most is not None:
        c9_at_most(model, variables, problem.worst, problem.at_most)
    return model, variables


def _goal(model: cp_model.CpModel, variables: Vars, worst: bool) -> cp_model.LinearExprT:
    if not variables.costs:
        return model.new_constant(0)
    if not worst:
        return sum(variables.costs)
    return c10_maximum(model, variables, model.new_int_var(-MAX_TICKS, MAX_TICKS, "m"))


class _Collector(cp_model.CpSolverSolutionCallback):
    """Notes the exponents of each solution; stops after ``most``."""

    def __init__(self, exponents: Sequence[cp_model.IntVar], most: int | None) -> None:
        super().__init__()
        self.found: list[list[int]] = []
        self._exponents, self._most = exponents, most

    def on_solution_callback(self) -> None:
        """Called by CP-SAT, in its own thread."""
        self.found.append([self.value(e) for e in self._exponents])
        if self._most is not None and len(self.found) >= self._most:
            self.stop_search()


def _all_of(
    problem: PlacementProblem, sizes: PrimeSizes, part: Sequence[int], watch: StopWatch
) -> PartAnswers:
    """All matrices over some primes; one more than the limit, to know whether there are more."""
    model, variables = _build(problem, sizes, _tables(problem, sizes), part)
    most = watch.limits.max_answers
    collector = _Collector(list(variables.exponents.values()), None if most is None else most + 1)
    _, status = run(model, watch.left(), collector, every=True)
    found = (dict(zip(variables.exponents, row, strict=True)) for row in collector.found)
    complete = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    return PartAnswers(tuple(sizes.matrix(row) for row in found), complete)


MAX_BLOCK = 2**32
Variables = Mapping[Cell, cp_model.IntVar]


def smallest(
    model: cp_model.CpModel,
    sizes: PrimeSizes,
    exponents: Variables,
    answer: Matrix,
    watch: StopWatch,
) -> tuple[Matrix, int, bool]:
    """The smallest matrix, the number of solves, and whether it is proved to be smallest.

    ``answer`` is any solution of the model.  The model's objective is replaced.
    """
    calls = 0
    for block in _blocks(model, sizes, exponents):
        _hint_answer(model, sizes, exponents, answer)
        model.minimize(block)
        solver, status = run(model, watch.left())
        calls += 1
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            found = {cell: solver.value(exponent) for cell, exponent in exponents.items()}
            answer = min(answer, sizes.matrix(found))
        if status != cp_model.OPTIMAL:
            return answer, calls, False
        model.add(block == solver.value(block))
    return answer, calls, True


def c11_rank(
    model: cp_model.CpModel, parts: Sequence[cp_model.IntVar], values: Sequence[tuple[int, ...]]
) -> cp_model.LinearExpr:
    """C11: the rank of an entry with these exponents among its values, two or more."""
    if len(parts) == 1:
        return parts[0] - values[0][0]
    rank = model.new_int_var(0, len(values) - 1, "r")
    rows = [(*split, number) for number, split in enumerate(values)]
    model.add_allowed_assignments([*parts, rank], rows)
    return rank


def _blocks(
    model: cp_model.CpModel, sizes: PrimeSizes, exponents: Variables
) -> list[cp_model.LinearExpr]:
    """The mixed-radix numbers over the ranks, row-major; entries of one value are left out."""
    blocks: list[cp_model.LinearExpr] = []
    size, primes = MAX_BLOCK, range(len(sizes.primes))
    for i, j in product(range(len(sizes.axes) - 1), range(len(sizes.levels) - 1)):
        values = [split for _, split in sizes.entry_values(i, j, primes)]
        if len(values) == 1:
            continue
        rank = c11_rank(model, [exponents[i, j, p] for p in primes], values)
        if size * len(values) > MAX_BLOCK:
            blocks.append(rank)
            size = len(values)
        else:
            blocks[-1] = blocks[-1] * len(values) + rank
            size *= len(values)
    return blocks


def _hint_answer(
    model: cp_model.CpModel, sizes: PrimeSizes, exponents: Variables, answer: Matrix
) -> None:
    """Start from a known solution, for an answer even if time runs out."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    for cell, value in (sizes.split(answer) or {}).items():
        model.add_hint(exponents[cell], value)
