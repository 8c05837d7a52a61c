"""Reduction programs by the direct state-matrix encoding in z3: cross-check of the default.

Problem: P2's synthesis of reduction programs: sequences of at most L instructions that lead
from the start of a demand to its goal, on the real factors.  It shares
neither the table of reachable states nor the small model with the default encoding.

Variables, for steps t = 0..L-1, states t = 0..L, k devices and n instructions
    chosen[t, i]  Boolean, i = 0..n: step t is instruction i; n is "stop", which pads
                  shorter programs; choice[t] is that i as a bit-vector
    row[t, d, r]  bit-vector of k contributors: row r of device d's state matrix
    cost[t]       in ticks, bit-vector; 0 where the problem has no costs

Constraints
    C1 initial     state 0 is the demand's start
    C2 goal        state L is the demand's goal
    C3 stop        each step is one instruction, or "stop": that exactly when its state is the
                   goal; it changes nothing
    C4-C8 step     preconditions and effects of the chosen collective on every group
                   (:mod:`p2smt.encodings.program.z3_steps`)
    C9 frame       devices outside the chosen instruction's groups keep their rows
    C10 forbidden  no forbidden instruction
    C11 limit      no more steps of a kind than its limit allows
    C12 excluded   the program differs from every excluded program
    C13 cost       cost[t] is the table's for the largest payload over the groups; a pair that is
                   absent from the table is not allowed
    C14 at most    the sum of the costs is within the bound

Objective: the sum of the costs (without costs: the length), pushed down until z3 proves that
nothing is below; then, among the programs tied with it (within the problem's slack), length
and choices as one number, likewise.  Without costs ``at_most``, which is in ticks, is no bound.

Size: O(L n k^2) equations of k bits; refused above ``MAX_DEVICES`` devices.
Speed, on one core: all programs of (2,2), length 5, 0.5 s; of (2,2,2), length 3, 3 s.
"""

from __future__ import annotations

from contextlib import suppress

from p2smt.collectives.demand import Chunks
from p2smt.encodings.program.z3_model import Vars, build, c12_excluded, decode, groups_of
from p2smt.encodings.program.z3_search import Z3Search, at_most, value
from p2smt.errors import OutOfTimeError
from p2smt.problems.program import Indices, ProgramProblem
from p2smt.result import Result, SearchLimits, SolveStats, Status


def _optimum(problem: ProgramProblem, search: Z3Search, v: Vars) -> Result[Indices]:
    """The best of the programs that the solver still holds."""
    term = v.length if problem.costs is None else v.total
    proved, best = search.least(term)
    if best is None:
        return Result(Status.INFEASIBLE if proved else Status.UNKNOWN, stats=search.stats())
    least = value(best, term)
    stats = ("objective", least)
    if not proved:
        return Result(Status.FEASIBLE, decode(best, v), 0, search.stats(stats))
    tied = least if problem.costs is None else least + problem.slack
    proved, first = search.least(v.order, at_most(term, tied))
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    return Result(status, decode(first or best, v), least, search.stats(stats))


def enumerate_programs(
    problem: ProgramProblem, limits: SearchLimits
) -> Result[tuple[Indices, ...]]:
    """Every program of at most ``max_length`` steps once, sorted by (length, indices).

    COMPLETE, or TRUNCATED at the time limit or after ``limits.max_answers``.

    Raises:
        TooLarge: more than ``MAX_DEVICES`` devices.
    """
    search, found, status = Z3Search(limits), set[Indices](), Status.TRUNCATED
    v = build(problem, search)
    with suppress(OutOfTimeError):
        while (model := search.solution()) is not None and len(found) != limits.max_answers:
            found.add(decode(model, v))
            c12_excluded(search.solver, v, decode(model, v))
        status = Status.COMPLETE if model is None else Status.TRUNCATED
    programs = tuple(sorted(found, key=lambda program: (len(program), program)))
    return Result(status, programs, stats=search.stats())


def optimal_program(problem: ProgramProblem, limits: SearchLimits) -> Result[Indices]:
    """The program of least total cost; ties: shortest, then smallest indices.

    FEASIBLE if the time ran out before the proof, tie-break included; ``bound`` is the
    optimum where that is proved, else 0.

    Raises:
        TooLarge: more than ``MAX_DEVICES`` devices.
    """
    search = Z3Search(limits)
    return _optimum(problem, search, build(problem, search))


def best_programs(
    problem: ProgramProblem, limits: SearchLimits, k: int
) -> Result[tuple[Indices, ...]]:
    """The k programs of least cost in order (all, if there are fewer).

    COMPLETE if the order is proved, else TRUNCATED with its proved beginning.

    Raises:
        TooLarge: more than ``MAX_DEVICES`` devices.
    """
    search, found, status = Z3Search(limits), list[Indices](), Status.COMPLETE
    v = build(problem, search)
    while len(found) < k:
        result = _optimum(problem, search, v)
        if result.status is not Status.OPTIMAL or result.value is None:
            status = Status.COMPLETE if result.status is Status.INFEASIBLE else Status.TRUNCATED
            break
        found.append(result.value)
        c12_excluded(search.solver, v, result.value)
    return Result(status, tuple(found), stats=search.stats())


def cost_keys(problem: ProgramProblem, limits: SearchLimits) -> Result[tuple[tuple[int, int], ...]]:
    """The (instruction, payload rows) pairs that a cost table must cover, sorted: COMPLETE.

    A superset of those that occur: row counts start at k (or at 1, a device's own row), and a step
    keeps them or divides or multiplies them by a group size.
    """
    del limits  # no search: this takes no time
    allowed = [i for i in range(len(problem.instructions.items)) if i not in problem.forbidden]
    sizes = {len(groups_of(problem, i)[0]) for i in allowed}
    counts, new = set[int](), {1 if problem.demand.start.chunks is Chunks.OWN else problem.rows}
    while new:
        counts |= new
        larger = {r * n for r in new for n in sizes if r * n <= problem.rows}
        new = (larger | {r // n for r in new for n in sizes if r % n == 0}) - counts
    keys = tuple((i, rows) for i in allowed for rows in sorted(counts))
    return Result(Status.COMPLETE, keys, stats=SolveStats("z3", calls=0))
