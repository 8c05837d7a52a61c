"""All-reduce over trees, with CP-SAT: each chunk is added up to a root of its own, then copied.

Problem: an :class:`~p2smt.problems.schedule.AllReduceProblem`, its class that of trees: a chunk is
added up over a tree that leads to its root, any rank, and copied from there over another tree.
Every message has a step of its own choice, so trees of different chunks overlap in time.

Where the problem has symmetries, messages that they take to each other share a variable, and what
must hold is stated for one chunk of each orbit.  A symmetry that reverses time takes the first tree
of a chunk to the second one of another, or of the same.

Variables
    a[c, e, s]  Boolean: a partial sum of chunk c goes over edge e in step s
    b[c, e, s]  Boolean: the whole sum of chunk c goes over edge e in step s
    t[c, v]     Boolean: rank v is the root of chunk c
    o[c, v, s]  Boolean: rank v has not sent its partial sum of c before step s, s = 0..S
    d[c, v, s]  Boolean: rank v is the root, or holds the whole sum of c before step s
    p[c, s]     Boolean: partial sums of c may be sent in step s
    q[c, s]     Boolean: whole sums of c may be sent in step s
    r[s]        rounds of step s, 1..R - S + 1

Constraints
    C1 root      every chunk has one root
    C2 upward    o[c, v, s + 1] is o[c, v, s] less the a that leave v in step s; at first it is 1,
                 at last t[c, v]: every other rank sends once
    C3 downward  d[c, v, s + 1] is d[c, v, s] plus the b that arrive at v in step s; at first it is
                 t[c, v], at last 1: every other rank gets one
    C4 order     an a arrives only where o still holds after its step; a b leaves only where d holds
    C5 turn      a implies p, b implies q; never both; p never comes again, q never goes
    C6 capacity  the a and b that load a capacity in step s are at most its bandwidth times r[s];
                 as many, where all messages that are needed fill it
    C7 rounds    the r sum up to R

Objective: none; any schedule will do.

C5 makes the sum whole before it is copied.  It excludes nothing: the last partial sum of a chunk
goes to its root, for any other rank would still have to send, and the first copy comes from there.

Size: 2 x chunks x edges x steps Booleans, divided by the order of the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from p2smt.encodings.schedule.cpsat_search import (
    check_size,
    new_rounds,
    searched,
    state_capacity,
    state_rounds,
)
from p2smt.encodings.schedule.points import (
    edges_into,
    edges_out,
    first_chunks,
    kept_schedule,
)
from p2smt.problems.flow import least_of_orbits
from p2smt.problems.schedule import AllReduceProblem, ScheduleSymmetry, SumSchedule
from p2smt.result import Result, SearchLimits, StopWatch

_UP, _DOWN = 0, 1


@dataclass(frozen=True, slots=True)
class Vars:
    """a and b as ``send``, by the number of the first message of an orbit; ``first``: that number
    for every message, by [0: a, 1: b; c, e, s].  ``own``: the variables of the messages of a chunk
    of ``chunks``, by [c][0 or 1][e][s].

    The others by chunk, the first of its orbit, and rank or step; o and d by (0 or 1, c, v, s), p
    and q by (0 or 1, c, s).
    """

    send: Mapping[int, cp_model.IntVar]
    first: NDArray[np.int64]
    own: Mapping[int, list[list[list[cp_model.IntVar]]]]
    root: Mapping[tuple[int, int], cp_model.IntVar]
    state: Mapping[tuple[int, int, int, int], cp_model.IntVar]
    phase: Mapping[tuple[int, int, int], cp_model.IntVar]
    rounds: tuple[cp_model.IntVar, ...]
    chunks: tuple[int, ...]

    def sent(self, half: int, chunk: int, edge: int, step: int) -> cp_model.IntVar:
        """The variable of a message of one of ``chunks``."""
        return self.own[chunk][half][edge][step]


def any_schedule(problem: AllReduceProblem, limits: SearchLimits) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: no trees have these symmetries; UNKNOWN.

    Raises:
        TooLarge: the model would be too large.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    check_size(problem, *(2 * problem.steps * n for n in (len(problem.edges), problem.ranks)))
    found = _variables(model, problem)
    every = (c1_root, c2_upward, c3_downward, c4_order, c5_turn, c6_capacity, c7_rounds)
    return searched(watch, model, problem, found, every, decode)


def _variables(model: cp_model.CpModel, problem: AllReduceProblem) -> Vars:
    steps, chunks, halves = range(problem.steps), first_chunks(problem), (_UP, _DOWN)
    first = _first(problem)
    send = {number: model.new_bool_var("") for number in np.unique(first).tolist()}
    own = {
        c: [[[send[n] for n in edge] for edge in half] for half in first[:, c].tolist()]
        for c in chunks
    }
    places = [(c, v) for c in chunks for v in range(problem.ranks)]
    states = [(h, c, v, s) for h in halves for c, v in places for s in range(problem.steps + 1)]
    return Vars(
        send,
        first,
        own,
        {place: model.new_bool_var("") for place in places},
        {state: model.new_bool_var("") for state in states},
        {(h, c, s): model.new_bool_var("") for h in halves for c in chunks for s in steps},
        new_rounds(model, problem),
        chunks,
    )


def _first(problem: AllReduceProblem) -> NDArray[np.int64]:
    """Of every message the number of the first one that symmetries take it to."""
    shape = (2, problem.chunks, len(problem.edges), problem.steps)
    numbers = np.arange(prod(shape)).reshape(shape)
    images = [_image(numbers, one) for one in problem.symmetries]
    return least_of_orbits(numbers.size, images).reshape(shape)


def _image(numbers: NDArray[np.int64], symmetry: ScheduleSymmetry) -> NDArray[np.int64]:
    """The number of the message that each message is taken to."""
    moved = numbers[:, symmetry.chunks][:, :, symmetry.edges]
    return (moved[::-1, :, :, ::-1] if symmetry.reverses else moved).ravel()


def c1_root(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C1: every chunk has one root."""
    for c in found.chunks:
        model.add_exactly_one(found.root[c, v] for v in range(problem.ranks))


def c2_upward(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C2: every rank but the root sends one partial sum."""
    out = edges_out(problem)
    for (c, v), root in found.root.items():
        model.add(found.state[_UP, c, v, 0] == 1)
        model.add(found.state[_UP, c, v, problem.steps] == root)
        for s in range(problem.steps):
            before, after = found.state[_UP, c, v, s], found.state[_UP, c, v, s + 1]
            model.add(before == after + sum(found.sent(_UP, c, e, s) for e in out[v]))


def c3_downward(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C3: every rank but the root gets one whole sum."""
    into = edges_into(problem)
    for (c, v), root in found.root.items():
        model.add(found.state[_DOWN, c, v, 0] == root)
        model.add(found.state[_DOWN, c, v, problem.steps] == 1)
        for s in range(problem.steps):
            before, after = found.state[_DOWN, c, v, s], found.state[_DOWN, c, v, s + 1]
            model.add(after == before + sum(found.sent(_DOWN, c, e, s) for e in into[v]))


def c4_order(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C4: what comes too late for a rank's own message does not come; no rank copies too early."""
    for c in found.chunks:
        for e, (source, target, _) in enumerate(problem.edges):
            for s in range(problem.steps):
                up, down = found.sent(_UP, c, e, s), found.sent(_DOWN, c, e, s)
                model.add_implication(up, found.state[_UP, c, target, s + 1])
                model.add_implication(down, found.state[_DOWN, c, source, s])


def c5_turn(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C5: all partial sums of a chunk are sent before all whole ones."""
    for c in found.chunks:
        for s in range(problem.steps):
            up, down = found.phase[_UP, c, s], found.phase[_DOWN, c, s]
            model.add_bool_or(~up, ~down)
            for e in range(len(problem.edges)):
                model.add_implication(found.sent(_UP, c, e, s), up)
                model.add_implication(found.sent(_DOWN, c, e, s), down)
            if s + 1 < problem.steps:
                model.add_implication(found.phase[_UP, c, s + 1], up)
                model.add_implication(down, found.phase[_DOWN, c, s + 1])


def c6_capacity(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C6: what loads a capacity in a step fits into its rounds."""
    by_edge = np.sort(np.moveaxis(found.first, (2, 3), (0, 1)).reshape(*found.first.shape[2:], -1))
    sent = {(e, s): on.tolist() for e, row in enumerate(by_edge) for s, on in enumerate(row)}
    state_capacity(model, problem, found.rounds, sent, found.send.__getitem__)


def c7_rounds(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C7: the steps take all rounds together."""
    state_rounds(model, problem, found.rounds)


def decode(problem: AllReduceProblem, found: Vars, solver: cp_model.CpSolver) -> SumSchedule:
    """The solver's trees, lifted: a rank copies what came last, and adds up before that."""
    chosen = [number for number, x in found.send.items() if solver.value(x)]
    lifted = np.argwhere(np.isin(found.first, chosen)).tolist()
    sends = {(c, e, s) for _, c, e, s in lifted}
    drops = {(c, problem.edges[e][1], s) for half, c, e, s in lifted if half == _DOWN}
    return kept_schedule(problem, [solver.value(r) for r in found.rounds], sends, drops)
