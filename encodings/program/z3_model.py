"""Variables and constraints of the direct encoding (:mod:`p2smt.encodings.program.z3`)."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from p2smt.collectives.names import Collective
from p2smt.encodings.program.z3_search import Z3Search, at_most, value
from p2smt.encodings.program.z3_steps import (
    Group,
    SymbolicState,
    effect,
    initial_rows,
    is_goal,
    most_rows,
    precondition,
    same_rows,
)
from p2smt.errors import InputError, TooLarge
from p2smt.problems.program import Indices, ProgramProblem
from p2smt.programs.program import local_groups

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
    """C4 to C8: every group satisfies the precondition before, and has the effect after."""
    collective, _ = problem.instructions.items[i]
    for group in groups_of(problem, i):
        after = [v.states[t + 1].rows[d] for d in group]
        valid = precondition(collective, v.states[t], group)
        taken = same_rows(after, effect(collective, v.states[t], group))
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
