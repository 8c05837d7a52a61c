"""Schedules of chunks that are copied, with z3: a time of arrival for each chunk and rank.

Problem: a :class:`~p2smt.problems.schedule.DisseminationProblem`, as SCCL states it (Cai et al.,
"Synthesizing optimal collective algorithms", PPoPP 2021).  The cross-check of ``cpsat.py``.

Variables
    t[c, v]  integer: steps after which rank v holds chunk c; S + 1: never
    x[c, e]  Boolean: chunk c goes over edge e, in the step t[c, target of e] - 1
    r[s]     integer: rounds of step s

Constraints
    C1 held      x[c, e] implies that t[c, source] is less than t[c, target], which is at most S
    C2 arrival   exactly one x leads to a rank that is not the root and where t is at most S
    C3 goal      t[c, v] is at most S for every goal v of c
    C4 capacity  the x that load a capacity in step s are at most its bandwidth times r[s]
    C5 rounds    every r is at least 1, and they sum up to R
    C6 decided   t[c, v] is at most s, or not, where the problem says so, and not all
                 as it excludes

Objective: none; any schedule will do.

Where the problem has symmetries, what they take to each other shares a variable.

Size: chunks x ranks integers, chunks x edges Booleans.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import z3

from p2smt.encodings.run_z3 import new_solver
from p2smt.encodings.schedule.orbits import Pair, hold_orbits, send_orbits
from p2smt.encodings.schedule.z3_search import rounds_of, searched, state_rounds
from p2smt.errors import TooLarge
from p2smt.problems.schedule import ChunkThere, DisseminationProblem, StepSends
from p2smt.result import Result, SearchLimits, StopWatch

MAX_SENDS = 20_000
_NO_LIMIT = StopWatch(SearchLimits(), 0.0)


@dataclass(frozen=True, slots=True)
class Vars:
    """t by (chunk, rank), x by (chunk, edge), r by step; see the file's head.

    ``watch``: of the constraints, which take as long as the search where there are many steps.
    """

    arrival: Mapping[Pair, z3.ArithRef]
    send: Mapping[Pair, z3.BoolRef]
    rounds: tuple[z3.ArithRef, ...]
    watch: StopWatch = _NO_LIMIT


def any_schedule(
    problem: DisseminationProblem, limits: SearchLimits
) -> Result[tuple[StepSends, ...]]:
    """A schedule: FEASIBLE; INFEASIBLE: proved that there is none with these symmetries; UNKNOWN.

    Raises:
        TooLarge: more messages than MAX_SENDS are possible.
    """
    watch, size = StopWatch.start(limits), len(problem.chunks) * len(problem.edges)
    if size > MAX_SENDS:
        given = f"{len(problem.chunks)} chunks over {len(problem.edges)} edges"
        raise TooLarge(given, f"are more than z3 takes, {MAX_SENDS}", "use cpsat")
    solver, found = new_solver(limits.seed), replace(_variables(problem), watch=watch)

    def state() -> None:
        for constraint in (c1_held, c2_arrival, c3_goal, c4_capacity, c5_rounds, c6_decided):
            constraint(solver, problem, found)

    return searched(solver, watch, state, lambda model: decode(problem, found, model))


def _variables(problem: DisseminationProblem) -> Vars:
    hold_of, send_of = hold_orbits(problem), send_orbits(problem)
    times = {first: z3.Int(f"t{first[0]}_{first[1]}") for first in set(hold_of.values())}
    sends = {first: z3.Bool(f"x{first[0]}_{first[1]}") for first in set(send_of.values())}
    return Vars(
        {pair: times[first] for pair, first in hold_of.items()},
        {pair: sends[first] for pair, first in send_of.items()},
        tuple(z3.Int(f"r{s}") for s in range(problem.steps)),
    )


def c1_held(solver: z3.Solver, problem: DisseminationProblem, found: Vars) -> None:
    """C1: a rank sends what it held before the step."""
    for (c, e), x in found.send.items():
        source, target, _ = problem.edges[e]
        found.watch.check()
        here, there = found.arrival[c, source], found.arrival[c, target]
        solver.add(z3.Implies(x, z3.And(here < there, there <= problem.steps)))


def c2_arrival(solver: z3.Solver, problem: DisseminationProblem, found: Vars) -> None:
    """C2: the root holds its chunk at first; elsewhere it arrives once, or never."""
    into = defaultdict(list)
    for e, (_, target, _) in enumerate(problem.edges):
        into[target].append(e)
    for (c, v), time in found.arrival.items():
        found.watch.check()
        if v == problem.chunks[c].root:
            solver.add(time == 0)
            continue
        solver.add(time >= 1, time <= problem.steps + 1)
        ways = [(found.send[c, e], 1) for e in into[v]]
        there = time <= problem.steps
        solver.add(there == z3.PbEq(ways, 1) if ways else z3.Not(there))
        if ways:
            solver.add(z3.PbLe(ways, 1))


def c3_goal(solver: z3.Solver, problem: DisseminationProblem, found: Vars) -> None:
    """C3: at last every goal holds its chunk."""
    for c, chunk in enumerate(problem.chunks):
        for v in chunk.goals:
            solver.add(found.arrival[c, v] <= problem.steps)


def c4_capacity(solver: z3.Solver, problem: DisseminationProblem, found: Vars) -> None:
    """C4: what loads a capacity in a step fits into its rounds."""
    loading = defaultdict(list)
    for e, (_, _, loads) in enumerate(problem.edges):
        for k in loads:
            loading[k].append(e)
    for k, edges in loading.items():
        rate = problem.capacities[k]
        for s, rounds in enumerate(found.rounds):
            found.watch.check()
            load = z3.Sum(
                [
                    z3.If(z3.And(found.send[c, e], found.arrival[c, target] == s + 1), 1, 0)
                    for c in range(len(problem.chunks))
                    for e in edges
                    for target in [problem.edges[e][1]]
                ]
            )
            solver.add(rate.denominator * load <= rate.numerator * rounds)


def c5_rounds(solver: z3.Solver, problem: DisseminationProblem, found: Vars) -> None:
    """C5: the steps take all rounds together, one or more each."""
    state_rounds(solver, found.rounds, problem.rounds)


def c6_decided(solver: z3.Solver, problem: DisseminationProblem, found: Vars) -> None:
    """C6: what is decided already."""
    for one in problem.decided:
        solver.add(_is(found, one))
    for wrong in problem.excluded:
        solver.add(z3.Not(z3.And(*(_is(found, one) for one in wrong))))


def _is(found: Vars, one: ChunkThere) -> z3.BoolRef:
    return (found.arrival[one.chunk, one.rank] <= one.steps) == one.there


def decode(problem: DisseminationProblem, found: Vars, model: z3.ModelRef) -> tuple[StepSends, ...]:
    """The steps of a model: every message in the step before its arrival."""
    sends: list[list[Pair]] = [[] for _ in found.rounds]
    for (c, e), x in found.send.items():
        if z3.is_true(model.eval(x, model_completion=True)):
            time = model.eval(found.arrival[c, problem.edges[e][1]], model_completion=True)
            sends[time.as_long() - 1].append((c, e))
    return tuple(
        StepSends(count, tuple(sorted(sent)))
        for count, sent in zip(rounds_of(model, found.rounds), sends, strict=True)
    )
