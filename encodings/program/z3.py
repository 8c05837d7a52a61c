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

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, pairwise
from typing import TypeAlias

import z3

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.collectives.names import Collective, ProgramOperation, RequestKind
from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import InputError, OutOfTimeError, TooLarge
from p2smt.problems.placement import Indices, ProgramProblem
from p2smt.programs.program import local_groups
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch


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


# Variables and constraints.


MAX_DEVICES = 16


@dataclass(frozen=True, slots=True)
class Vars:
    """See the head of ``z3.py``; ``order`` is (length, choices), read as one number."""

    states: tuple[SymbolicState, ...]
    choice: tuple[z3.BitVecRef, ...]
    chosen: tuple[tuple[z3.BoolRef, ...], ...]
    cost: tuple[z3.BitVecRef, ...]
    total: z3.BitVecRef
    length: z3.BitVecRef
    order: z3.BitVecRef

    @staticmethod
    def of(problem: ProgramProblem) -> Vars:
        """Fresh variables."""
        steps, n = range(problem.max_length), len(problem.instructions.items)
        choice = tuple(z3.BitVec(f"choice{t}", max(1, n.bit_length())) for t in steps)
        chosen = tuple(tuple(z3.Bool(f"chosen{t}_{i}") for i in range(n + 1)) for t in steps)
        cost = tuple(z3.BitVec(f"cost{t}", max(1, _most(problem).bit_length())) for t in steps)
        bits = problem.max_length.bit_length()
        length = sum((_bit(z3.Not(c[n]), bits) for c in chosen), z3.BitVecVal(0, bits))
        states = [
            SymbolicState.named(f"row{t}", problem.rows) for t in range(problem.max_length + 1)
        ]
        total = sum(cost[1:], cost[0])
        return Vars(tuple(states), choice, chosen, cost, total, length, z3.Concat(length, *choice))


def _bit(flag: z3.BoolRef, width: int) -> z3.BitVecRef:
    return z3.If(flag, z3.BitVecVal(1, width), z3.BitVecVal(0, width))


def _most(problem: ProgramProblem) -> int:
    """No program of the problem costs more ticks."""
    return problem.max_length * max((problem.costs or {}).values(), default=0)


def c1_initial(solver: z3.Solver, problem: ProgramProblem, v: Vars) -> None:
    """C1: state 0 is the demand's start."""
    solver.add(same_rows(v.states[0].rows, initial_rows(problem.demand, problem.rows)))


def c2_goal(solver: z3.Solver, problem: ProgramProblem, v: Vars) -> None:
    """C2: the last state is the demand's goal."""
    solver.add(is_goal(problem.demand, v.states[-1]))


def c3_stop(solver: z3.Solver, problem: ProgramProblem, v: Vars, t: int) -> None:
    """C3: one instruction, or "stop" exactly when the state is the goal; it changes nothing."""
    stop = v.chosen[t][-1]
    solver.add(z3.Or(v.chosen[t]))
    solver.add([one == (v.choice[t] == i) for i, one in enumerate(v.chosen[t])])
    solver.add(stop == is_goal(problem.demand, v.states[t]))
    solver.add(z3.Implies(stop, same_rows(v.states[t + 1].rows, v.states[t].rows)))
    solver.add(z3.Implies(stop, v.cost[t] == 0))


def c4_step(solver: z3.Solver, problem: ProgramProblem, v: Vars, t: int, i: int) -> None:
    """C4 to C8: every group satisfies the precondition before, and has the effect after.

    Of an all-to-all, too, whose state matrices are of blocks (``alike``, ``exchanged``).
    """
    collective, _ = problem.instructions.items[i]
    groups = groups_of(problem, i)
    for group in groups:
        after = [v.states[t + 1].rows[d] for d in group]
        valid = precondition(collective, v.states[t], group, groups)
        taken = same_rows(after, effect(collective, v.states[t], group, groups))
        solver.add(z3.Implies(v.chosen[t][i], z3.And(valid, taken)))


def c9_frame(solver: z3.Solver, problem: ProgramProblem, v: Vars, t: int, i: int) -> None:
    """C9: devices outside every group keep their rows."""
    moved = {d for group in groups_of(problem, i) for d in group}
    before, after = v.states[t].rows, v.states[t + 1].rows
    still = [d for d in range(problem.rows) if d not in moved]
    kept = same_rows([after[d] for d in still], [before[d] for d in still])
    solver.add(z3.Implies(v.chosen[t][i], kept))


def c10_forbidden(solver: z3.Solver, problem: ProgramProblem, v: Vars, t: int) -> None:
    """C10: no forbidden instruction."""
    known = range(len(problem.instructions.items))
    solver.add([z3.Not(v.chosen[t][i]) for i in known if i in problem.forbidden])


def c11_limit(solver: z3.Solver, problem: ProgramProblem, v: Vars) -> None:
    """C11: no more steps of a kind than its limit allows."""
    known = range(len(problem.instructions.items))
    for limit in problem.limits:
        counted = [i for i in known if i in limit.instructions]
        uses = [(chosen[i], 1) for chosen in v.chosen for i in counted]
        solver.add(z3.PbLe(uses, limit.at_most) if uses else z3.BoolVal(limit.at_most >= 0))


def c12_excluded(solver: z3.Solver, v: Vars, program: Indices) -> None:
    """C12: not this program: another instruction somewhere, or another length."""
    stop = len(v.chosen[0]) - 1
    padded = program + (stop,) * (len(v.choice) - len(program))
    if len(padded) == len(v.choice) and all(0 <= i < stop for i in program):
        same = [chosen[i] for chosen, i in zip(v.chosen, padded, strict=True)]
        solver.add(z3.Not(z3.And(same)))


def c13_cost(solver: z3.Solver, problem: ProgramProblem, v: Vars, t: int, i: int) -> None:
    """C13: the payload and the cost are a row of the instruction's table."""
    if problem.costs is None:
        solver.add(v.cost[t] == 0)
        return
    collective, _ = problem.instructions.items[i]
    moment = v.states[t + 1] if collective is Collective.ALL_GATHER else v.states[t]
    if collective is RequestKind.ALL_TO_ALL:
        moment = v.states[0]  # every block is in the buffer all the time
    payload = most_rows(moment, [group[0] for group in groups_of(problem, i)])
    prices = {r: ticks for (at, r), ticks in problem.costs.items() if at == i and r <= problem.rows}
    cases = [z3.And(payload == r, v.cost[t] == ticks) for r, ticks in sorted(prices.items())]
    solver.add(z3.Implies(v.chosen[t][i], z3.Or(cases)))


def c14_at_most(solver: z3.Solver, problem: ProgramProblem, v: Vars) -> None:
    """C14: the sum of the costs is within the bound."""
    if problem.at_most is not None:
        solver.add(at_most(v.total, problem.at_most))


def groups_of(problem: ProgramProblem, instruction: int) -> list[Group]:
    """Members of the instruction's groups, in device order."""
    _, grouping = problem.instructions.items[instruction]
    return [tuple(members) for members in local_groups(problem.factors, grouping).tolist()]


def build(problem: ProgramProblem, search: Z3Search) -> Vars:
    """State the problem.  Ends early where the time is up: then no answer is asked for."""
    if problem.rows > MAX_DEVICES:
        raise TooLarge(
            f"programs over factors {list(problem.factors)}, {problem.rows} devices",
            f"the state matrices are given to z3 up to {MAX_DEVICES} devices",
            "use the default solver, cpsat",
        )
    if min((problem.costs or {}).values(), default=0) < 0:
        raise InputError("a table of costs with negative ticks", "costs must be 0 or more")
    v, solver = Vars.of(problem), search.solver
    c1_initial(solver, problem, v)
    c2_goal(solver, problem, v)
    c11_limit(solver, problem, v)
    c14_at_most(solver, problem, v)
    for program in sorted(problem.excluded):
        c12_excluded(solver, v, program)
    for t in range(problem.max_length):
        c3_stop(solver, problem, v, t)
        c10_forbidden(solver, problem, v, t)
        for i in range(len(problem.instructions.items)):
            if i not in problem.forbidden and not search.watch.expired():
                c4_step(solver, problem, v, t, i)
                c9_frame(solver, problem, v, t, i)
                c13_cost(solver, problem, v, t, i)
    return v


def decode(model: z3.ModelRef, v: Vars) -> Indices:
    """Instruction indices of the steps that are not stop."""
    stop = len(v.chosen[0]) - 1
    return tuple(i for x in v.choice if (i := value(model, x)) != stop)


# Start, goal, preconditions and effects on symbolic state matrices: the paper's encoding (z3).
# ``SymbolicState.rows[d][r]`` is a bit-vector over the k contributors: bit c is set when row r of
# device d holds the contribution of device c.  Every function speaks about the members of one
# group, in device order, and is written from the definition of its collective (P2, state
# matrices); the constraints above join them to steps.
#
#     C4 reducible      all-reduce, reduce-scatter, reduce: the same non-empty rows, at least
#                       one, the contributors of each row pairwise disjoint
#     C5 divisible      reduce-scatter: besides, their number divides by the group size
#     C6 gatherable     all-gather: non-empty rows pairwise disjoint, the same positive number
#     C7 broadcastable  broadcast: the first member strictly contains every other
#     C8 effect         all-reduce, all-gather: all get the union; reduce: the first does, the
#                       others become empty; broadcast: all get the first; reduce-scatter:
#                       member i keeps the i-th run of the non-empty rows of the union
#
# Which rows form the i-th run is decided by symbolic ranks: of T non-empty rows shared by n
# members the row of rank q (q rows before it) belongs to member i when iT <= nq < (i+1)T.


Rows: TypeAlias = tuple[z3.BitVecRef, ...]
Group: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SymbolicState:
    """State matrices of one moment, with what the constraints count in them.

    ``filled[d][r]``: the row is not empty; ``ranks[d][r]``: how many rows before it are not;
    ``totals[d]``: how many rows of the device are not.
    """

    rows: tuple[Rows, ...]
    filled: tuple[tuple[z3.BoolRef, ...], ...]
    ranks: tuple[Rows, ...]
    totals: Rows

    @staticmethod
    def named(name: str, devices: int) -> SymbolicState:
        """A state of fresh variables."""
        k = range(devices)
        return SymbolicState.of(
            [tuple(z3.BitVec(f"{name}_{d}_{r}", devices) for r in k) for d in k]
        )

    @staticmethod
    def of(rows: Sequence[Rows]) -> SymbolicState:
        """The state with these rows."""
        width = count_bits(len(rows))
        filled = tuple(tuple(row != 0 for row in device) for device in rows)
        counts = [_running_counts(flags, width) for flags in filled]
        ranks = tuple(tuple(count[:-1]) for count in counts)
        return SymbolicState(tuple(rows), filled, ranks, tuple(count[-1] for count in counts))


def count_bits(devices: int) -> int:
    """Bits for the products of a row count and a group size: at most the square of k."""
    return (devices * devices).bit_length()


def _running_counts(flags: Sequence[z3.BoolRef], width: int) -> list[z3.BitVecRef]:
    counts = [z3.BitVecVal(0, width)]
    for flag in flags:
        one = z3.If(flag, z3.BitVecVal(1, width), z3.BitVecVal(0, width))
        counts.append(counts[-1] + one)
    return counts


def most_rows(state: SymbolicState, devices: Sequence[int]) -> z3.BitVecRef:
    """The largest number of non-empty rows among these devices (C13)."""
    totals = [state.totals[d] for d in devices]
    return reduce(lambda a, b: z3.If(z3.ULT(a, b), b, a), totals)


def same_rows(left: Sequence[Rows], right: Sequence[Rows]) -> z3.BoolRef:
    """Row by row, the same contributors on each device."""
    pairs = zip(left, right, strict=True)
    return z3.And([a == b for rows, others in pairs for a, b in zip(rows, others, strict=True)])


def initial_rows(demand: Demand, k: int) -> list[Rows]:
    """C1: device d holds every row or row d, complete or with its own contribution."""

    def row(d: int, r: int) -> int:
        if demand.start.chunks is Chunks.OWN and r != d:
            return 0
        return 2**k - 1 if demand.start.givers is Givers.EVERY else 1 << d

    return [tuple(z3.BitVecVal(row(d, r), k) for r in range(k)) for d in range(k)]


def is_goal(demand: Demand, state: SymbolicState) -> z3.BoolRef:
    """C2: all ones, or one row on each device, complete, and each row somewhere."""
    if demand.has_exchanges:
        return delivered(state.rows)
    full = 2 ** len(state.rows) - 1
    if demand.goal.chunks is not Chunks.ONE_EACH:
        return z3.And([row == full for device in state.rows for row in device])
    one = [total == 1 for total in state.totals]
    whole = [z3.Or(row == 0, row == full) for device in state.rows for row in device]
    every = [z3.Or(flags) for flags in zip(*state.filled, strict=True)]
    return z3.And(*one, *whole, *every)


def union(state: SymbolicState, group: Group) -> Rows:
    """Row by row, everything that some member holds."""
    columns = zip(*(state.rows[d] for d in group), strict=True)
    return tuple(reduce(lambda a, b: a | b, column) for column in columns)


def reducible(state: SymbolicState, group: Group) -> z3.BoolRef:
    """C4: the same non-empty rows, at least one, with pairwise disjoint contributors."""
    first = group[0]
    flags = [zip(state.filled[d], state.filled[e], strict=True) for d, e in pairwise(group)]
    same = [a == b for pairs in flags for a, b in pairs]
    return z3.And(z3.Or(state.filled[first]), *same, *_disjoint(state, group))


def _disjoint(state: SymbolicState, group: Group) -> list[z3.BoolRef]:
    """No contributor twice: each member against the union of those before it."""
    clauses, before = [], state.rows[group[0]]
    for d in group[1:]:
        clauses += [a & b == 0 for a, b in zip(before, state.rows[d], strict=True)]
        before = tuple(a | b for a, b in zip(before, state.rows[d], strict=True))
    return clauses


def divisible(state: SymbolicState, group: Group) -> z3.BoolRef:
    """C5: the number of non-empty rows is a multiple of the group size."""
    total, k = state.totals[group[0]], len(state.rows)
    return z3.Or([total == m for m in range(len(group), k + 1, len(group))])


def gatherable(state: SymbolicState, group: Group) -> z3.BoolRef:
    """C6: no non-empty row twice, and the same positive number of them for each member."""
    first = state.totals[group[0]]
    equal = [state.totals[d] == first for d in group[1:]]
    columns = zip(*(state.filled[d] for d in group), strict=True)
    apart = [z3.Not(z3.And(a, b)) for column in columns for a, b in combinations(column, 2)]
    return z3.And(first != 0, *equal, *apart)


def broadcastable(state: SymbolicState, group: Group) -> z3.BoolRef:
    """C7: every other member's rows lie within the first member's, and some row is smaller."""
    first, clauses = state.rows[group[0]], []
    for d in group[1:]:
        pairs = list(zip(first, state.rows[d], strict=True))
        clauses += [b & ~a == 0 for a, b in pairs]
        clauses.append(z3.Or([a != b for a, b in pairs]))
    return z3.And(clauses)


def precondition(
    collective: ProgramOperation,
    state: SymbolicState,
    group: Group,
    groups: Sequence[Group] = (),
) -> z3.BoolRef:
    """What one of these groups must satisfy before this collective (C4 to C7)."""
    match collective:
        case RequestKind.ALL_TO_ALL:
            return alike(state.rows, group, groups)
        case Collective.ALL_REDUCE | Collective.REDUCE:
            return reducible(state, group)
        case Collective.REDUCE_SCATTER:
            return z3.And(reducible(state, group), divisible(state, group))
        case Collective.ALL_GATHER:
            return gatherable(state, group)
        case Collective.BROADCAST:
            return broadcastable(state, group)


def effect(
    collective: ProgramOperation,
    state: SymbolicState,
    group: Group,
    groups: Sequence[Group] = (),
) -> tuple[Rows, ...]:
    """C8: the members' rows after this collective, on one of these groups."""
    if collective is RequestKind.ALL_TO_ALL:
        return exchanged(state.rows, group, groups)
    joined = union(state, group)
    match collective:
        case Collective.ALL_REDUCE | Collective.ALL_GATHER:
            return (joined,) * len(group)
        case Collective.REDUCE:
            empty = tuple(z3.BitVecVal(0, len(joined)) for _ in joined)
            return (joined, *(empty,) * (len(group) - 1))
        case Collective.BROADCAST:
            return (state.rows[group[0]],) * len(group)
        case Collective.REDUCE_SCATTER:
            return tuple(_run(state, group, member, joined) for member in range(len(group)))


def _run(state: SymbolicState, group: Group, member: int, joined: Rows) -> Rows:
    """The rows of the union whose rank lies in this member's run, the others empty."""
    total, n = state.totals[group[0]], len(group)
    low, high = member * total, (member + 1) * total
    kept = [z3.And(z3.ULE(low, n * q), z3.ULT(n * q, high)) for q in state.ranks[group[0]]]
    return tuple(z3.If(keep, row, 0) for keep, row in zip(kept, joined, strict=True))


# Descending on a bit-vector term with one incremental z3 solver.


class Z3Search:
    """A finite-domain solver with one time limit over all its checks, which it counts.

    z3 works on one thread here, whatever ``limits.workers`` says.
    """

    def __init__(self, limits: SearchLimits) -> None:
        self.watch = StopWatch.start(limits)
        self.solver = new_solver(limits.seed, "QF_FD")
        self.calls = 0

    def solution(self) -> z3.ModelRef | None:
        """A model of what the solver holds, or None if it is proved that there is none.

        Raises:
            OutOfTimeError: no verdict within the time limit.
        """
        self.calls += 1
        return solution(self.solver, self.watch, resumes=False)

    def least(self, term: z3.BitVecRef, *side: z3.BoolRef) -> tuple[bool, z3.ModelRef | None]:
        """(proved, a model in which ``term`` is least) under ``side`` conditions.

        Not proved: the time ran out, and the model, if any, is the best found.  The solver
        holds the same afterwards as before.
        """
        best = None
        self.solver.push()
        self.solver.add(*side)
        try:
            while (model := self.solution()) is not None:
                best = model
                self.solver.add(z3.ULT(term, value(model, term)))
        except OutOfTimeError:
            return False, best
        finally:
            self.solver.pop()
        return True, best

    def stats(self, *counters: tuple[str, int]) -> SolveStats:
        """Statistics so far."""
        return SolveStats("z3", self.watch.elapsed_s(), self.calls, counters)


def value(model: z3.ModelRef, term: z3.BitVecRef) -> int:
    """The unsigned value of a term; one that the model leaves open counts as 0."""
    return int(model.eval(term, model_completion=True).as_long())


def at_most(term: z3.BitVecRef, bound: int) -> z3.BoolRef:
    """Unsigned ``term <= bound``, also for a bound outside the range of the bit-vector."""
    if bound >= 2 ** term.size() - 1:
        return z3.BoolVal(True)
    return z3.ULE(term, bound) if bound >= 0 else z3.BoolVal(False)


# All-to-alls on symbolic state matrices.
#
# Row r of device d is here the set of blocks that d holds for rank r, by their sources: nothing is
# added up.  On the real factors, and by the definition of an all-to-all alone: a rank sends every
# member its share of what it holds, the blocks whose destinations lie on that member's side.
# Goal, precondition and effect are those of C2, C5 and C8 above.


def delivered(rows: Sequence[Rows]) -> z3.BoolRef:
    """C2: each device holds the blocks of all sources for it, and none for others."""
    full = 2 ** len(rows) - 1
    cells = [(row, d == r) for d, device in enumerate(rows) for r, row in enumerate(device)]
    return z3.And([row == (full if own else 0) for row, own in cells])


def alike(rows: Sequence[Rows], group: Group, groups: Sequence[Group]) -> z3.BoolRef:
    """C5: each member holds for every member what it holds for any other, but for the destination.

    Destinations on two members' sides pair off by the groups that they are in.  So each member is
    sent as many blocks; and where members are, they are such blocks, in all states that steps lead
    to: the digits of a rank's blocks at a level are all there are, or one.
    """
    pairs = [(every[0], other) for every in groups for other in every[1:]]
    return z3.And([rows[d][first] == rows[d][other] for d in group for first, other in pairs])


def exchanged(rows: Sequence[Rows], group: Group, groups: Sequence[Group]) -> tuple[Rows, ...]:
    """C8: the rows of all members, each at the member on its side."""
    none = z3.BitVecVal(0, len(rows))
    joined = [
        reduce(lambda a, b: a | b, column) for column in zip(*(rows[d] for d in group), strict=True)
    ]
    sides = ({every[at] for every in groups} for at in range(len(group)))
    return tuple(
        tuple(row if r in side else none for r, row in enumerate(joined)) for side in sides
    )
