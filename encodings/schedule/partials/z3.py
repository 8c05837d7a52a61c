"""All-reduce with any partial sums, with z3: the inputs of a message as bits of a word.

Problem: an :class:`~p2smt.problems.schedule.AllReduceProblem`, its class that of partial sums;
points and p -> m as in ``cpsat.py``, whose cross-check this is.

Variables
    z[p, m]  Boolean: p is a part of m, for every p -> m
    v[m]     word of a bit for each rank: the inputs that the message m holds; 0: it is not sent
    r[s]     integer: rounds of step s

Constraints
    C1 part      z[p, m] implies that p is an own input, or not 0
    C2 sum       v[m] is the union of its parts, which have no bit in common; of a result it is all
    C3 capacity  the v that load a capacity in step s and are not 0 are at most its bandwidth
                 times r[s]
    C4 rounds    every r is at least 1, and they sum up to R
    C5 symmetry  z[p, m] equals z where a symmetry takes it; in reversed time p and m change places,
                 and r[s] equals r[S - 1 - s]
    C6 decided   where the problem decides whether a chunk goes over an edge in a step, one of its
                 v is not 0, or none; not all as it excludes; and then every message that is sent
                 is a part of something

Objective: none; any schedule will do.

Size: a Boolean for every p -> m of every chunk, a word for every message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import z3

from p2smt.encodings.run_z3 import new_solver
from p2smt.encodings.schedule.points import (
    SumPart,
    SumPoint,
    loads,
    messages,
    part_count,
    part_image,
    parts,
    summed_schedule,
)
from p2smt.encodings.schedule.z3_search import rounds_of, searched, state_rounds
from p2smt.errors import TooLarge
from p2smt.problems.schedule import AllReduceProblem, ChunkSent, SumSchedule
from p2smt.result import Result, SearchLimits, StopWatch

MAX_PARTS = 20_000
_NO_LIMIT = StopWatch(SearchLimits(), 0.0)


@dataclass(frozen=True, slots=True)
class Vars:
    """z by part, v by message, r by step; ``into``: the parts that each point may have.

    ``watch``: of the constraints.
    """

    part: Mapping[SumPart, z3.BoolRef]
    value: Mapping[SumPoint, z3.BitVecRef]
    into: Mapping[SumPoint, Sequence[SumPoint]]
    rounds: tuple[z3.ArithRef, ...]
    watch: StopWatch = _NO_LIMIT


def any_schedule(problem: AllReduceProblem, limits: SearchLimits) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: proved that there is none with these symmetries; UNKNOWN.

    Raises:
        TooLarge: messages have more than MAX_PARTS parts to choose from, all together.
    """
    watch, count = StopWatch.start(limits), problem.chunks * part_count(problem)
    if count > MAX_PARTS:
        given = f"{count} parts of messages"
        raise TooLarge(given, f"are more than z3 takes, {MAX_PARTS}", "use cpsat")
    solver = new_solver(limits.seed)
    found = replace(_variables(problem, list(parts(problem))), watch=watch)

    def state() -> None:
        for constraint in (c1_part, c2_sum, c3_capacity, c4_rounds, c5_symmetry, c6_decided):
            constraint(solver, problem, found)

    return searched(solver, watch, state, lambda model: decode(problem, found, model))


def _variables(problem: AllReduceProblem, every: Sequence[SumPart]) -> Vars:
    into: dict[SumPoint, list[SumPoint]] = defaultdict(list)
    for p, m in every:
        into[m].append(p)
    return Vars(
        {pair: z3.Bool(f"z{n}") for n, pair in enumerate(every)},
        {m: z3.BitVec(f"v{n}", problem.ranks) for n, m in enumerate(messages(problem))},
        into,
        tuple(z3.Int(f"r{s}") for s in range(problem.steps)),
    )


def c1_part(solver: z3.Solver, problem: AllReduceProblem, found: Vars) -> None:
    """C1: a part is there."""
    del problem
    for (p, _), z in found.part.items():
        found.watch.check()
        if p in found.value:
            solver.add(z3.Implies(z, found.value[p] != 0))


def c2_sum(solver: z3.Solver, problem: AllReduceProblem, found: Vars) -> None:
    """C2: parts have no input in common, and are the whole together; a result holds all."""
    nothing, everything = z3.BitVecVal(0, problem.ranks), z3.BitVecVal(-1, problem.ranks)
    for m, before in found.into.items():
        total = nothing
        found.watch.check()
        for p in before:
            own = z3.BitVecVal(1 << p[2], problem.ranks)
            part = z3.If(found.part[p, m], found.value.get(p, own), nothing)
            solver.add(total & part == nothing)
            total = total | part
        solver.add(found.value.get(m, everything) == total)


def c3_capacity(solver: z3.Solver, problem: AllReduceProblem, found: Vars) -> None:
    """C3: what loads a capacity in a step fits into its rounds."""
    sent: dict[tuple[int, int], list[SumPoint]] = defaultdict(list)
    for m in found.value:
        sent[m[2], m[1]].append(m)
    for k, step, counts in loads(problem, sent):
        found.watch.check()
        rate = problem.capacities[k]
        load = z3.Sum([z3.If(found.value[m] != 0, count, 0) for m, count in counts.items()])
        solver.add(rate.denominator * load <= rate.numerator * found.rounds[step])


def c4_rounds(solver: z3.Solver, problem: AllReduceProblem, found: Vars) -> None:
    """C4: the steps take all rounds together, one or more each."""
    state_rounds(solver, found.rounds, problem.rounds)


def c5_symmetry(solver: z3.Solver, problem: AllReduceProblem, found: Vars) -> None:
    """C5: symmetries take the schedule to itself."""
    for symmetry in problem.symmetries:
        found.watch.check()
        image = part_image(problem, symmetry)
        solver.add(*(z == found.part[image(pair)] for pair, z in found.part.items()))
        if symmetry.reverses:
            turned = zip(found.rounds, reversed(found.rounds), strict=True)
            solver.add(*(one == other for one, other in turned))


def c6_decided(solver: z3.Solver, problem: AllReduceProblem, found: Vars) -> None:
    """C6: what is decided already, of messages that are of use."""
    slots: dict[tuple[int, int, int], list[z3.BoolRef]] = defaultdict(list)
    for (c, s, e, _), value in found.value.items():
        slots[c, s, e].append(value != 0)

    def true(one: ChunkSent) -> z3.BoolRef:
        return z3.Or(slots[one.chunk, one.step, one.edge]) == one.sent

    solver.add(*map(true, problem.decided))
    solver.add(*(z3.Not(z3.And(*map(true, wrong))) for wrong in problem.excluded))
    if not problem.decided and not problem.excluded:
        return
    uses: dict[SumPoint, list[z3.BoolRef]] = defaultdict(list)
    for (p, _), z in found.part.items():
        uses[p].append(z)
    for m, value in found.value.items():
        found.watch.check()
        solver.add(z3.Implies(value != 0, z3.Or(uses[m])))


def decode(problem: AllReduceProblem, found: Vars, model: z3.ModelRef) -> SumSchedule:
    """The messages of a model and their parts."""
    chosen = [
        pair for pair, z in found.part.items() if z3.is_true(model.eval(z, model_completion=True))
    ]
    return summed_schedule(problem, rounds_of(model, found.rounds), chosen)
