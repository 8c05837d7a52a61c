"""All-reduce with one sum of a chunk on every rank, with CP-SAT.

Problem: an :class:`~p2smt.problems.schedule.AllReduceProblem`, its class that of accumulators:
every rank keeps one sum of a chunk, at first its own input; a message is the sum that its sender
keeps before the step; after it a rank adds what arrives to its sum, or to nothing, having dropped
it.

Where the problem has symmetries, messages (and drops) that they take to each other share a
variable, and what must hold is stated for one chunk of each orbit.  Turning time round takes the
class to itself: between two drops a message that comes is a part of those that leave later.

Variables
    x[c, e, s]     Boolean: a message of chunk c goes over edge e in step s
    n[c, v, s]     Boolean: rank v drops its sum of c in step s
    y[c, v, s, u]  Boolean: rank v's sum of c before step s holds u's input, s = 0..S
    w[c, e, s, u]  Boolean: x and y of its sender: what the message holds
    k[c, v, s, u]  Boolean: y and not n: what the rank keeps
    r[s]           rounds of step s, 1..R - S + 1

Constraints
    C1 message   w is x and y; a message holds something
    C2 keep      k is y and not n
    C3 sum       y[c, v, s + 1, u] is k[c, v, s, u] plus the w that arrive in step s: no input comes
                 twice
    C4 ends      at first the sum is the rank's own input, at last it holds all
    C5 capacity  the x that load a capacity in step s are at most its bandwidth times r[s]; as many,
                 where all messages that are needed fill it
    C6 rounds    the r sum up to R

Objective: none; any schedule will do.

y and w are left out where u is farther from v than s steps.

Size: chunks x edges x steps x ranks Booleans, divided by the order of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ortools.sat.python import cp_model

from p2smt.encodings.schedule.cpsat_search import (
    check_size,
    new_rounds,
    searched,
    state_capacity,
    state_rounds,
)
from p2smt.encodings.schedule.points import (
    distances,
    edges_into,
    first_chunks,
    kept_schedule,
    orbits,
)
from p2smt.problems.schedule import AllReduceProblem, ScheduleSymmetry, SumSchedule
from p2smt.result import Result, SearchLimits, StopWatch

TimedPlace = tuple[int, int, int]
"""(chunk; edge or rank; step)."""
Holding = Mapping[tuple[int, int, int, int], cp_model.IntVar]


@dataclass(frozen=True, slots=True)
class Vars:
    """x by message, n by drop; those that symmetries take to each other have one variable.

    y, w and k by chunk, the first of its orbit, rank or edge, step and origin.
    """

    send: Mapping[TimedPlace, cp_model.IntVar]
    drop: Mapping[TimedPlace, cp_model.IntVar]
    held: Holding
    sent: Holding
    kept: Holding
    rounds: tuple[cp_model.IntVar, ...]
    chunks: tuple[int, ...]


def any_schedule(problem: AllReduceProblem, limits: SearchLimits) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: none in this class has these symmetries; UNKNOWN.

    Raises:
        TooLarge: the model would be too large.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    places = (len(problem.edges) + problem.ranks) * problem.steps
    check_size(problem, places, places * problem.ranks)
    found = _variables(model, problem)
    every = (c1_message, c2_keep, c3_sum, c4_ends, c5_capacity, c6_rounds)
    return searched(watch, model, problem, found, every, decode)


def _variables(model: cp_model.CpModel, problem: AllReduceProblem) -> Vars:
    steps, chunks, ranks = range(problem.steps), first_chunks(problem), range(problem.ranks)
    near = distances(problem)
    held = [
        (c, v, s, u)
        for c in chunks
        for v in ranks
        for s in range(problem.steps + 1)
        for u in ranks
        if near[u][v] <= s
    ]
    sent = [
        (c, e, s, u)
        for c in chunks
        for e, (source, _, _) in enumerate(problem.edges)
        for s in steps
        for u in ranks
        if near[u][source] <= s
    ]
    return Vars(
        _shared(model, problem, len(problem.edges), [one.edges for one in problem.symmetries]),
        _shared(model, problem, problem.ranks, [one.ranks for one in problem.symmetries]),
        {at: model.new_bool_var("") for at in held},
        {at: model.new_bool_var("") for at in sent},
        {at: model.new_bool_var("") for at in held if at[2] < problem.steps},
        new_rounds(model, problem),
        chunks,
    )


def _shared(
    model: cp_model.CpModel, problem: AllReduceProblem, size: int, images: list[tuple[int, ...]]
) -> dict[TimedPlace, cp_model.IntVar]:
    """A Boolean for each orbit of (chunk, one of ``size`` places, step)."""
    first = orbits(
        (
            (c, place, s)
            for c in range(problem.chunks)
            for place in range(size)
            for s in range(problem.steps)
        ),
        [
            _image(one, places, problem.steps)
            for one, places in zip(problem.symmetries, images, strict=True)
        ],
    )
    own = {point: model.new_bool_var("") for point in dict.fromkeys(first.values())}
    return {point: own[at] for point, at in first.items()}


def _image(
    symmetry: ScheduleSymmetry, places: tuple[int, ...], steps: int
) -> Callable[[TimedPlace], TimedPlace]:
    """Where a symmetry takes (chunk, place, step)."""

    def image(point: TimedPlace) -> TimedPlace:
        chunk, place, step = point
        at = steps - 1 - step if symmetry.reverses else step
        return symmetry.chunks[chunk], places[place], at

    return image


def c1_message(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C1: a message is what its sender holds, and not nothing."""
    for (c, e, s, u), w in found.sent.items():
        x, y = found.send[c, e, s], found.held[c, problem.edges[e][0], s, u]
        model.add_implication(w, x)
        model.add_implication(w, y)
        model.add_bool_or(w, ~x, ~y)
    for c in found.chunks:
        for e in range(len(problem.edges)):
            for s in range(problem.steps):
                holds = (found.sent.get((c, e, s, u)) for u in range(problem.ranks))
                model.add_bool_or(~found.send[c, e, s], *(w for w in holds if w is not None))


def c2_keep(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C2: a rank keeps what it held, or drops it."""
    del problem
    for (c, v, s, u), k in found.kept.items():
        y, n = found.held[c, v, s, u], found.drop[c, v, s]
        model.add_implication(k, y)
        model.add_implication(k, ~n)
        model.add_bool_or(k, ~y, n)


def c3_sum(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C3: what a rank holds is what it kept and what arrived, no input twice."""
    into = edges_into(problem)
    for (c, v, s, u), after in found.held.items():
        if s > 0:
            terms = [found.sent.get((c, e, s - 1, u)) for e in into[v]]
            terms.append(found.kept.get((c, v, s - 1, u)))
            model.add(after == sum(term for term in terms if term is not None))


def c4_ends(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C4: at first a rank holds its own input, at last all."""
    for c in found.chunks:
        for v in range(problem.ranks):
            model.add(found.held[c, v, 0, v] == 1)
            for u in range(problem.ranks):
                last = found.held.get((c, v, problem.steps, u))
                model.add_bool_or([] if last is None else [last])


def c5_capacity(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C5: what loads a capacity in a step fits into its rounds."""
    sent: dict[tuple[int, int], list[int]] = {}
    for (_, e, s), x in found.send.items():
        sent.setdefault((e, s), []).append(x.index)
    one = {x.index: x for x in found.send.values()}
    state_capacity(model, problem, found.rounds, sent, one.__getitem__)


def c6_rounds(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C6: the steps take all rounds together."""
    state_rounds(model, problem, found.rounds)


def decode(problem: AllReduceProblem, found: Vars, solver: cp_model.CpSolver) -> SumSchedule:
    """The solver's messages and drops, lifted."""
    sends = {point for point, x in found.send.items() if solver.value(x)}
    drops = {point for point, n in found.drop.items() if solver.value(n)}
    return kept_schedule(problem, [solver.value(r) for r in found.rounds], sends, drops)
