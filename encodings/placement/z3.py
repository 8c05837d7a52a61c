"""Parallelism matrices with z3 (P2, section "Parallelism matrix").

Problem: split parallelism axes over hierarchy levels, all ways or the cheapest one; folded: by two
matrices with one first row.  The entries are written as products of primes, so products of entries
become sums.

Variables
    e[i, j, p]   exponent of prime p in matrix[i][j], an integer between the bounds that the
                 sums leave
    c[t]         cost of table t in ticks, an integer

Constraints
    C1 row sums       the exponents of an axis sum to those of its size
    C2 column sums    the exponents of a level sum to those of its size; folded: in each of two
                      matrices, which share the exponents of their first row
    C3 inside         an axis inside level j: its exponents at level j and outside are 0
    C4 across         an axis across level j: one of them is not 0
    C5 fixed entry    the exponents of the entry are those of its value
    C6 excluded       the exponents together are not those of an excluded matrix
    C7 cost tables    the exponent sums are a row of the table, and c is its cost
    C8 at most        the sum of the costs, or each of them, does not exceed the limit
    C9 entry          in a branch the exponents of one entry are those of one of its values

Objective: the sum of c, or the largest, bisected between the bounds of the tables by C8; the
lower end is what the failures prove.

Enumeration: a tree over the entries, row-major, values ascending, whose leaves are all matrices in
lexicographic order, so that its first leaf at the proved optimum is the smallest optimal one.  A
branch is entered only if z3 finds a solution in it; the solution known at a node also serves the
branch in which it lies.  At most (answers) x (entries) x (values of an entry) checks.
Primes that no side constraint couples are solved apart and combined.

Conflict: C1 and C2 hold, the formulas of each rule (C3 to C5) are tracked, and the unsatisfiable
core is the answer.

Size: axes x levels x primes integers; a table is a disjunction of its rows.
16,16,32,8 with axes 8,64,16,8: 16 exponents, 6434 matrices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

import z3

from p2smt.encodings.placement.primes import (
    Cell,
    ExponentTable,
    PartAnswers,
    PrimeSizes,
    combine,
    independent_parts,
)
from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.parallelism.placement import AxisRule, FixedEntry, Matrix
from p2smt.problems.placement import PlacementProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "z3"


@dataclass(frozen=True, slots=True)
class Vars:
    """e by cell and c by table."""

    exponents: Mapping[Cell, z3.ArithRef]
    costs: tuple[z3.ArithRef, ...]


def enumerate_placements(
    problem: PlacementProblem, limits: SearchLimits
) -> Result[tuple[Matrix, ...]]:
    """All answers, each once, in lexicographic order.

    COMPLETE (with an empty tuple if there is none), or TRUNCATED at a limit of ``limits``.

    Raises:
        TooLarge: a level exceeds MAX_LEVEL_SIZE.
    """
    watch, sizes = StopWatch.start(limits), PrimeSizes.of(problem)
    parts = [_all_of(problem, sizes, part, watch) for part in independent_parts(problem, sizes)]
    status, matrices = combine(parts, limits.max_answers, watch.expired)
    return Result(status, matrices, None, SolveStats(_SOLVER, watch.elapsed_s(), len(parts)))


def optimal_placement(problem: PlacementProblem, limits: SearchLimits) -> Result[Matrix]:
    """The cheapest matrix; of several, the lexicographically smallest.

    ``bound`` is the proved lower bound in ticks; the counter "objective" of the statistics is
    the objective of the answer.  FEASIBLE with both equal: only the tie-break is unfinished.

    Raises:
        TooLarge: a level exceeds MAX_LEVEL_SIZE.
    """
    watch, sizes = StopWatch.start(limits), PrimeSizes.of(problem)
    tables = tuple(sizes.table(table) for table in problem.costs)
    solver = new_solver(limits.seed, "QF_LIA")  # ten times faster here, slower for the tree
    variables = _build(problem, sizes, tables, range(len(sizes.primes)), solver)
    search = _Bisection(solver, variables, problem.worst, _least(tables, problem.worst))
    try:
        status = Status.OPTIMAL if search.to_the_end(sizes, watch) else Status.INFEASIBLE
    except OutOfTimeError:
        status = Status.UNKNOWN if search.best is None else Status.FEASIBLE
    if search.best is None:
        return Result(status, stats=SolveStats(_SOLVER, watch.elapsed_s(), search.calls))
    counters = (("objective", search.value),)
    stats = SolveStats(_SOLVER, watch.elapsed_s(), search.calls, counters)
    return Result(status, sizes.matrix(search.best), search.bound, stats)


def conflicting_rules(problem: PlacementProblem, limits: SearchLimits) -> Result[tuple[int, ...]]:
    """Indices of rules that leave no answer together, ascending; perhaps more than it takes.

    Raises:
        TooLarge: a level exceeds MAX_LEVEL_SIZE.
    """
    watch, sizes = StopWatch.start(limits), PrimeSizes.of(problem)
    solver = new_solver(limits.seed)
    bare = replace(problem, rules=(), costs=(), excluded=frozenset(), at_most=None)
    variables = _build(bare, sizes, (), range(len(sizes.primes)), solver)
    for k, rule in enumerate(problem.rules):
        _rule(_Tracked(solver, k), sizes, variables, rule)
    status, found = Status.FEASIBLE, None
    try:
        if solution(solver, watch) is None:
            core = {int(str(name).split(".")[0]) for name in solver.unsat_core()}
            status, found = Status.INFEASIBLE, tuple(sorted(core))
    except OutOfTimeError:
        status = Status.UNKNOWN
    return Result(status, found, stats=SolveStats(_SOLVER, watch.elapsed_s()))


@dataclass(slots=True)
class _Tracked:
    """Adds formulas to a solver under names "RULE.NUMBER", for its unsatisfiable core."""

    solver: z3.Solver
    rule: int
    count: int = 0

    def add(self, *formulas: z3.BoolRef | list[z3.BoolRef]) -> None:
        """As a solver's own."""
        self.solver.assert_and_track(z3.And(*formulas), f"{self.rule}.{self.count}")
        self.count += 1


def c1_row_sums(solver: z3.Solver, sizes: PrimeSizes, variables: Vars) -> None:
    """C1: sum over j of e[i, j, p] is the exponent of p in axis i."""
    for i, p in sorted({(i, p) for i, _, p in variables.exponents}):
        cells = [(i, j, p) for j in range(len(sizes.levels))]
        solver.add(z3.Sum([variables.exponents[cell] for cell in cells]) == sizes.axes[i][p])


def c2_column_sums(solver: z3.Solver, sizes: PrimeSizes, variables: Vars) -> None:
    """C2: in each matrix the sum over its rows i of e[i, j, p] is the exponent of p in level j."""
    for j, p in sorted({(j, p) for _, j, p in variables.exponents}):
        for rows in sizes.blocks:
            cells = [(i, j, p) for i in rows]
            solver.add(z3.Sum([variables.exponents[cell] for cell in cells]) == sizes.levels[j][p])


def c3_inside(solver: z3.Solver, variables: Vars, rule: AxisRule) -> None:
    """C3: the exponents of the axis at the level and outside are 0."""
    solver.add([exponent == 0 for exponent in _outer(variables, rule)])


def c4_across(solver: z3.Solver, variables: Vars, rule: AxisRule) -> None:
    """C4: one of the exponents of the axis at the level and outside is not 0."""
    solver.add(z3.Or([exponent >= 1 for exponent in _outer(variables, rule)]))


def c5_fixed_entry(solver: z3.Solver, sizes: PrimeSizes, variables: Vars, rule: FixedEntry) -> None:
    """C5: the exponents of the entry are those of its value, which may have none."""
    exponents = sizes.exponents(rule.value)
    if exponents is None:
        solver.add(z3.BoolVal(False))
        return
    for (i, j, p), exponent in variables.exponents.items():
        if (i, j) == (rule.axis, rule.level):
            solver.add(exponent == exponents[p])


def c6_excluded(
    solver: z3.Solver, sizes: PrimeSizes, variables: Vars, excluded: Sequence[Matrix]
) -> None:
    """C6: the exponents together are not those of an excluded matrix."""
    for matrix in excluded:
        split = sizes.split(matrix)
        if split is not None:
            solver.add(z3.Or([e != split[cell] for cell, e in variables.exponents.items()]))


def c7_cost_tables(solver: z3.Solver, variables: Vars, tables: Sequence[ExponentTable]) -> None:
    """C7: the exponent sums and the cost of each table are one of its rows."""
    for table, cost in zip(tables, variables.costs, strict=True):
        terms = [z3.Sum([variables.exponents[cell] for cell in c]) for c in table.columns]
        rows = [
            z3.And(cost == ticks, *(t == x for t, x in zip(terms, key, strict=True)))
            for key, ticks in table.rows
        ]
        solver.add(z3.Or(rows))


def c8_at_most(solver: z3.Solver, variables: Vars, worst: bool, ticks: int) -> None:
    """C8: the sum of the costs, or each of them, is at most ``ticks``."""
    if worst:
        solver.add([cost <= ticks for cost in variables.costs])
    if not worst or not variables.costs:
        solver.add(z3.Sum([z3.IntVal(0), *variables.costs]) <= ticks)


def _rule(
    solver: z3.Solver | _Tracked, sizes: PrimeSizes, variables: Vars, rule: AxisRule | FixedEntry
) -> None:
    """The constraints of a rule: C3, C4 or C5."""
    if isinstance(rule, FixedEntry):
        c5_fixed_entry(solver, sizes, variables, rule)
    elif rule.inside:
        c3_inside(solver, variables, rule)
    else:
        c4_across(solver, variables, rule)


def _outer(variables: Vars, rule: AxisRule) -> list[z3.ArithRef]:
    """The exponents of the rule's axis at its level and outside."""
    cells = variables.exponents.items()
    return [e for (i, j, _), e in cells if i == rule.axis and j <= rule.level]


def _build(
    problem: PlacementProblem,
    sizes: PrimeSizes,
    tables: Sequence[ExponentTable],
    part: Sequence[int],
    solver: z3.Solver,
) -> Vars:
    """The model of some primes (all, unless no side constraint couples them): C1 to C8."""
    exponents = {cell: z3.Int(f"e{cell}") for cell in sizes.cells(part)}
    variables = Vars(exponents, tuple(z3.Int(f"c{k}") for k in range(len(tables))))
    for cell, exponent in exponents.items():
        low, high = sizes.bounds(cell)
        solver.add(low <= exponent, exponent <= high)
    c1_row_sums(solver, sizes, variables)
    c2_column_sums(solver, sizes, variables)
    for rule in problem.rules:
        _rule(solver, sizes, variables, rule)
    c6_excluded(solver, sizes, variables, sorted(problem.excluded))
    c7_cost_tables(solver, variables, tables)
    if problem.at_most is not None:
        c8_at_most(solver, variables, problem.worst, problem.at_most)
    return variables


def _least(tables: Sequence[ExponentTable], worst: bool) -> int:
    """A lower bound on the objective: from the cheapest row of each table."""
    cheapest = [min(ticks for _, ticks in table.rows) for table in tables if table.rows]
    return max(cheapest, default=0) if worst else sum(cheapest)


def _all_of(
    problem: PlacementProblem, sizes: PrimeSizes, part: Sequence[int], watch: StopWatch
) -> PartAnswers:
    """All matrices over some primes; one more than the limit, to know whether there are more."""
    tables = tuple(sizes.table(table) for table in problem.costs)
    solver = new_solver(watch.limits.seed)
    variables = _build(problem, sizes, tables, part, solver)
    most = watch.limits.max_answers
    found: list[Matrix] = []
    leaves = leaves_of(solver, sizes, variables.exponents, watch)
    try:
        for leaf in islice(leaves, None if most is None else most + 1):
            found.append(sizes.matrix(leaf))
    except OutOfTimeError:
        return PartAnswers(tuple(found), complete=False)
    return PartAnswers(tuple(found), complete=most is None or len(found) <= most)


@dataclass(slots=True)
class _Bisection:
    """The search for the least objective: ``bound`` is proved, ``value`` that of ``best``."""

    solver: z3.Solver
    variables: Vars
    worst: bool
    bound: int
    best: Exponents | None = None
    value: int = 0
    calls: int = 0

    def to_the_end(self, sizes: PrimeSizes, watch: StopWatch) -> bool:
        """Find the smallest optimal matrix; False if it is proved that there is none."""
        if not self._improve(watch):
            return False
        while self.bound < self.value:
            middle = (self.bound + self.value) // 2
            self.solver.push()
            c8_at_most(self.solver, self.variables, self.worst, middle)
            if not self._improve(watch):
                self.bound = middle + 1
            self.solver.pop()
        c8_at_most(self.solver, self.variables, self.worst, self.value)
        self.best = next(leaves_of(self.solver, sizes, self.variables.exponents, watch))
        return True

    def _improve(self, watch: StopWatch) -> bool:
        """Take a solution of what the solver holds, if there is one."""
        self.calls += 1
        model = solution(self.solver, watch)
        if model is None:
            return False
        self.best = decode(self.variables.exponents, model)
        costs = [number(model, cost) for cost in self.variables.costs]
        self.value = max(costs, default=0) if self.worst else sum(costs)
        return True


Variables = Mapping[Cell, z3.ArithRef]
Exponents = dict[Cell, int]
Choice = tuple[Exponents, z3.BoolRef]


def number(model: z3.ModelRef, variable: z3.ArithRef) -> int:
    """The value of an integer variable; any allowed one if the solver left it open."""
    return int(model.eval(variable, model_completion=True).as_long())


def decode(variables: Variables, model: z3.ModelRef) -> Exponents:
    """The exponents of a solution."""
    return {cell: number(model, exponent) for cell, exponent in variables.items()}


def leaves_of(
    solver: z3.Solver, sizes: PrimeSizes, variables: Variables, watch: StopWatch
) -> Iterator[Exponents]:
    """All solutions, smallest matrix first, by a tree over the entries.

    The last row and column are left out: the sums determine them.

    Raises:
        OutOfTimeError: the watch ran out.
    """
    inner = product(range(len(sizes.axes) - 1), range(len(sizes.levels) - 1))
    entries = [c9_entry(sizes, variables, i, j) for i, j in inner]
    model = solution(solver, watch)
    if model is not None:
        yield from _branches(solver, variables, entries, decode(variables, model), watch)


def c9_entry(sizes: PrimeSizes, variables: Variables, axis: int, level: int) -> list[Choice]:
    """C9: what an entry can be, ascending: its exponents, and the same as a formula."""
    part = sorted({p for _, _, p in variables})
    cells = [(axis, level, p) for p in part]
    found = []
    for _, exponents in sizes.entry_values(axis, level, part):
        choice = dict(zip(cells, exponents, strict=True))
        found.append((choice, z3.And([variables[c] == x for c, x in choice.items()])))
    return found


def _branches(
    solver: z3.Solver,
    variables: Variables,
    entries: Sequence[list[Choice]],
    known: Exponents,
    watch: StopWatch,
) -> Iterator[Exponents]:
    """The solutions below a node whose solution ``known`` needs no second check."""
    if not entries:
        yield known
        return
    for choice, formula in entries[0]:
        solver.push()
        solver.add(formula)
        below = known if choice.items() <= known.items() else None
        if below is None and (model := solution(solver, watch)) is not None:
            below = decode(variables, model)
        if below is not None:
            yield from _branches(solver, variables, entries[1:], below, watch)
        solver.pop()
