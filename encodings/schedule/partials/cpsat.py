"""All-reduce with any partial sums, with CP-SAT: which values each message adds up.

Problem: an :class:`~p2smt.problems.schedule.AllReduceProblem`, its class that of partial sums.  The
values of a rank are its own input of a chunk and every message of the chunk that came to it, each
kept for itself; a message is the sum of some values that its sender has before the step, a result
the sum of some that a rank has at last, no input twice.

Points are own inputs, messages and results (``points.py``): message m of chunk c goes over
edge e in step s, as the slot-th of at most K.  p -> m: point p is a value of the rank where m
begins (or of the rank of the result m), and was there before.

Where the problem has symmetries, messages and parts that they take to each other share a variable,
and what must hold is stated for one chunk of each orbit; turning time round turns p -> m round.

Variables
    x[m]        Boolean: the message m is sent
    z[p, m]     Boolean: p is a part of m, for every p -> m
    y[m, u]     Boolean: m holds the input of rank u
    w[p, m, u]  Boolean: z[p, m] and y[p, u]: m has the input of u from p
    r[s]        rounds of step s, 1..R - S + 1

Constraints
    C1 sent      a part of m is sent, or an own input, and so is m
    C2 product   w is z and y
    C3 sum       y[m, u] is the w[p, m, u] together, one at most; a result holds all inputs
    C4 use       a message that is sent holds an input, and is a part of something
    C5 slots     the first slots of a chunk, edge and step are taken first
    C6 capacity  the x that load a capacity in step s are at most its bandwidth times r[s]; as many,
                 where all messages that are needed fill it (``points.full_capacities``)
    C7 rounds    the r sum up to R
    C8 decided   the x of the first slot is 1 or 0 where the problem says so, and not all as it
                 excludes

Objective: none; any schedule will do.

Complete without symmetries.  Take any schedule of the class with at most K messages of a chunk over
an edge in a step.  Drop messages that hold nothing or are no part of anything, as long as there are
some: what is left is a schedule still, and no capacity carries more.  Number those of a chunk, edge
and step 0, 1, ..  Set x to what is sent, z to the parts, y to the inputs that a message holds: 0 or
1 each, for no input comes twice.  Then C1 to C7 hold: C3 is what a sum without an input twice is,
where C6 is equal every schedule fills the capacity, and the others ask for nothing that was not
given.  y[m, u] is left out where rank u is farther from the sender than the steps before: there it
is 0, by induction over the steps.  Conversely every solution is such a schedule: in the order of
the steps, C2 and C3 make y the inputs that the parts of a message add up to.  So INFEASIBLE without
symmetries says that there is none, for this S, R, C and K; and for every K, where no edge carries
more than K messages in R - S + 1 rounds.

Size: for each chunk, parts x ranks Booleans; its parts are about K^2 x edges x degree x S^2 / 2.
Divided by the order of the group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ortools.sat.python import cp_model

from p2smt.encodings.schedule.cpsat_search import (
    check_size,
    new_rounds,
    searched,
    state_capacity,
    state_rounds,
)
from p2smt.encodings.schedule.points import (
    AnyPoint,
    SumPart,
    SumPoint,
    distances,
    first_chunks,
    messages,
    orbits,
    part_count,
    part_image,
    parts,
    point_image,
    summed_schedule,
)
from p2smt.problems.schedule import AllReduceProblem, SumSchedule
from p2smt.result import Result, SearchLimits, StopWatch


@dataclass(frozen=True, slots=True)
class Vars:
    """x by message, z by (part, message or result): of an orbit all have one variable.

    y and w for the first chunk of every orbit, by message and input, by part, message and input;
    ``into``: the parts that a message or result of those chunks may have.
    """

    send: Mapping[SumPoint, cp_model.IntVar]
    part: Mapping[SumPart, cp_model.IntVar]
    holds: Mapping[tuple[SumPoint, int], cp_model.IntVar]
    brings: Mapping[tuple[SumPoint, SumPoint, int], cp_model.IntVar]
    into: Mapping[SumPoint, Sequence[SumPoint]]
    rounds: tuple[cp_model.IntVar, ...]


def any_schedule(problem: AllReduceProblem, limits: SearchLimits) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: proved that there is none with these symmetries; UNKNOWN.

    Raises:
        TooLarge: the model would be too large.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    check_size(problem, part_count(problem), part_count(problem) * problem.ranks)
    found = _variables(model, problem)
    every = (
        *(c1_sent, c2_product, c3_sum, c4_use),
        *(c5_slots, c6_capacity, c7_rounds, c8_decided),
    )
    return searched(watch, model, problem, found, every, decode)


def _variables(model: cp_model.CpModel, problem: AllReduceProblem) -> Vars:
    lead, near = set(first_chunks(problem)), distances(problem)
    send = _shared(
        model, orbits(messages(problem), [point_image(problem, g) for g in problem.symmetries])
    )
    part = _shared(
        model, orbits(parts(problem), [part_image(problem, g) for g in problem.symmetries])
    )
    holds = {
        (m, u): model.new_bool_var("")
        for m in send
        if m[0] in lead
        for u in range(problem.ranks)
        if near[u][problem.edges[m[2]][0]] <= m[1]
    }
    into: dict[SumPoint, list[SumPoint]] = defaultdict(list)
    for p, m in part:
        if m[0] in lead:
            into[m].append(p)
    brings = {
        (p, m, u): model.new_bool_var("")
        for m, before in into.items()
        for p in before
        for u in range(problem.ranks)
        if (p, u) in holds
    }
    return Vars(send, part, holds, brings, into, new_rounds(model, problem))


def _shared(
    model: cp_model.CpModel, first_of: Mapping[AnyPoint, AnyPoint]
) -> Mapping[AnyPoint, cp_model.IntVar]:
    """One Boolean for each orbit."""
    own = {first: model.new_bool_var("") for first in dict.fromkeys(first_of.values())}
    return {point: own[first] for point, first in first_of.items()}


def c1_sent(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C1: there is what has a part, and there is the part."""
    del problem
    for m, before in found.into.items():
        for p in before:
            for one in (p, m):
                if one in found.send:  # no own input, no result
                    model.add_implication(found.part[p, m], found.send[one])


def c2_product(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C2: a part brings what it holds."""
    del problem
    for (p, m, u), w in found.brings.items():
        z, y = found.part[p, m], found.holds[p, u]
        model.add_implication(w, z)
        model.add_implication(w, y)
        model.add_bool_or(w, ~z, ~y)


def c3_sum(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C3: a message holds what its parts bring, no input twice; a result holds all."""
    for m, before in found.into.items():
        for u in range(problem.ranks):
            brought = [found.part[p, m] for p in before if p[1] < 0 and p[2] == u]
            ways = (found.brings.get((p, m, u)) for p in before)
            brought += [w for w in ways if w is not None]
            if m[1] == problem.steps:
                model.add_exactly_one(brought)
            elif (m, u) in found.holds:
                model.add(found.holds[m, u] == sum(brought))


def c4_use(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C4: a message that is sent holds something, and is a part of something."""
    uses: dict[SumPoint, list[cp_model.IntVar]] = defaultdict(list)
    for m, before in found.into.items():
        for p in before:
            uses[p].append(found.part[p, m])
    for m in found.into:
        if m in found.send:
            inputs = (found.holds.get((m, u)) for u in range(problem.ranks))
            model.add_bool_or(~found.send[m], *(y for y in inputs if y is not None))
            model.add_bool_or(~found.send[m], *uses[m])


def c5_slots(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C5: the first slots are taken first."""
    del problem
    for c, s, e, slot in found.into:
        if (c, s, e, slot) in found.send and slot > 0:
            model.add_implication(found.send[c, s, e, slot], found.send[c, s, e, slot - 1])


def c6_capacity(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C6: what loads a capacity in a step fits into its rounds."""
    sent: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (_, s, e, _), x in found.send.items():
        sent[e, s].append(x.index)
    one = {x.index: x for x in found.send.values()}
    state_capacity(model, problem, found.rounds, sent, one.__getitem__)


def c7_rounds(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C7: the steps take all rounds together."""
    state_rounds(model, problem, found.rounds)


def c8_decided(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C8: what is decided already: by C5 a chunk that goes over an edge is in its first slot."""
    known = [(one,) for one in (replace(d, sent=not d.sent) for d in problem.decided)]
    for wrong in (*known, *problem.excluded):
        every = [(found.send.get((o.chunk, o.step, o.edge, 0)), o.sent) for o in wrong]
        if not any(x is None and sent for x, sent in every):  # where no edge carries anything
            model.add_bool_or([~x if sent else x for x, sent in every if x is not None])


def decode(problem: AllReduceProblem, found: Vars, solver: cp_model.CpSolver) -> SumSchedule:
    """The solver's messages and their parts, lifted."""
    chosen = [pair for pair, z in found.part.items() if solver.value(z)]
    return summed_schedule(problem, [solver.value(r) for r in found.rounds], chosen)
