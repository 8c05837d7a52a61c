"""All-reduce over trees, with CP-SAT: each chunk is added up to a root of its own, then copied.

Problem: an :class:`~p2smt.problems.schedule.AllReduceProblem`, its class that of trees: a chunk is
added up over a tree that leads to its root, any rank, and copied from there over another tree.
Every message has a step of its own choice, so trees of different chunks overlap in time.

Messages are counted at the ports (``p2smt.problems.ports``) by which they leave and arrive: a link
has one port for both, a switch one for each rank on either side.  Which message that leaves arrives
where is chosen after the search, for any choice is a schedule.

Where the problem has symmetries, counts that they take to each other share a variable, and what
must hold is stated for one chunk of each orbit.  A symmetry that reverses time takes the first tree
of a chunk to the second one of another, or of the same, and what leaves to what arrives.  Through a
switch counts are symmetric then, and messages need not be.  The counts of a schedule whose messages
are symmetric too are a solution: where there is none, there is no such schedule.

Variables
    a[c, i, s]  partial sums of chunk c that pass port i in step s: 0 or 1, but any number where i
                is a port by which they arrive from a switch
    b[c, i, s]  whole sums of chunk c that pass port i in step s: 0 or 1, but any number where i is
                a port by which they leave for a switch
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
    C5 turn      an a that is 0 or 1 implies p, such a b implies q; never both; p never comes again,
                 q never goes
    C6 switches  as many a, and as many b, leave for a switch in step s as arrive from it, and they
                 can be paired: by the ports of a block (of one rank only by C2, C3 and C4) no more
                 leave and arrive, together, than pass the switch
    C7 capacity  the a and b that load a capacity in step s are at most its bandwidth times r[s];
                 as many, where all messages that are needed fill it
    C8 rounds    the r sum up to R

Objective: none; any schedule will do.

C5 makes the sum whole before it is copied.  It excludes nothing: the last partial sum of a chunk
goes to its root, for any other rank would still have to send, and the first copy comes from there.

Size: 2 x chunks x ports x steps variables, divided by the order of the group.  Behind a switch n
ranks have 2 n ports, and n (n - 1) edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
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
from p2smt.encodings.schedule.points import first_chunks, kept_schedule
from p2smt.problems.flow import least_of_orbits
from p2smt.problems.ports import EdgePorts, kept_ports
from p2smt.problems.schedule import AllReduceProblem, ScheduleSymmetry, SumSchedule
from p2smt.result import Result, SearchLimits, StopWatch

_UP, _DOWN = 0, 1


@dataclass(frozen=True, slots=True)
class Vars:
    """a and b as ``sent``, by the number of the first count of an orbit; ``first``: that number
    for every count, by [0: a, 1: b; c, i, s].  ``own``: the variables of the counts of a chunk
    of ``chunks``, by [c][0 or 1][i][s].

    The others by chunk, the first of its orbit, and rank or step; o and d by (0 or 1, c, v, s), p
    and q by (0 or 1, c, s).
    """

    ports: EdgePorts
    sent: Mapping[int, cp_model.IntVar]
    first: NDArray[np.int64]
    own: Mapping[int, list[list[list[cp_model.IntVar]]]]
    root: Mapping[tuple[int, int], cp_model.IntVar]
    state: Mapping[tuple[int, int, int, int], cp_model.IntVar]
    phase: Mapping[tuple[int, int, int], cp_model.IntVar]
    rounds: tuple[cp_model.IntVar, ...]
    chunks: tuple[int, ...]


def any_schedule(problem: AllReduceProblem, limits: SearchLimits) -> Result[SumSchedule]:
    """A schedule: FEASIBLE; INFEASIBLE: no trees have these symmetries; UNKNOWN.

    Raises:
        TooLarge: the model would be too large.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    ports = kept_ports(problem.edges, problem.symmetries)
    check_size(problem, *(2 * problem.steps * n for n in (len(ports), problem.ranks)))
    found = _variables(model, problem, ports)
    every = (
        c1_root,
        c2_upward,
        c3_downward,
        c4_order,
        c5_turn,
        c6_switches,
        c7_capacity,
        c8_rounds,
    )
    return searched(watch, model, problem, found, every, decode)


def _variables(model: cp_model.CpModel, problem: AllReduceProblem, ports: EdgePorts) -> Vars:
    steps, chunks, halves = range(problem.steps), first_chunks(problem), (_UP, _DOWN)
    first = _first(problem, ports)
    most, sent = (ports.most(copied=False), ports.most(copied=True)), {}
    for number in np.unique(first).tolist():
        half, _, port, _ = np.unravel_index(number, first.shape)
        sent[number] = model.new_int_var(0, most[half][port], "")
    own = {
        c: [[[sent[n] for n in port] for port in half] for half in first[:, c].tolist()]
        for c in chunks
    }
    places = [(c, v) for c in chunks for v in range(problem.ranks)]
    states = [(h, c, v, s) for h in halves for c, v in places for s in range(problem.steps + 1)]
    return Vars(
        ports,
        sent,
        first,
        own,
        {place: model.new_bool_var("") for place in places},
        {state: model.new_bool_var("") for state in states},
        {(h, c, s): model.new_bool_var("") for h in halves for c in chunks for s in steps},
        new_rounds(model, problem),
        chunks,
    )


def _first(problem: AllReduceProblem, ports: EdgePorts) -> NDArray[np.int64]:
    """Of every count the number of the first one that symmetries take it to."""
    shape = (2, problem.chunks, len(ports), problem.steps)
    numbers = np.arange(prod(shape)).reshape(shape)
    images = [_image(numbers, one, ports) for one in problem.symmetries]
    return least_of_orbits(numbers.size, images).reshape(shape)


def _image(
    numbers: NDArray[np.int64], symmetry: ScheduleSymmetry, ports: EdgePorts
) -> NDArray[np.int64]:
    """The number of the count that each count is taken to."""
    moved = numbers[:, symmetry.chunks][:, :, ports.image(symmetry)]
    return (moved[::-1, :, :, ::-1] if symmetry.reverses else moved).ravel()


def c1_root(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C1: every chunk has one root."""
    for c in found.chunks:
        model.add_exactly_one(found.root[c, v] for v in range(problem.ranks))


def c2_upward(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C2: every rank but the root sends one partial sum."""
    out = found.ports.leaving
    for (c, v), root in found.root.items():
        model.add(found.state[_UP, c, v, 0] == 1)
        model.add(found.state[_UP, c, v, problem.steps] == root)
        for s in range(problem.steps):
            before, after = found.state[_UP, c, v, s], found.state[_UP, c, v, s + 1]
            model.add(before == after + sum(found.own[c][_UP][i][s] for i in out[v]))


def c3_downward(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C3: every rank but the root gets one whole sum."""
    into = found.ports.arriving
    for (c, v), root in found.root.items():
        model.add(found.state[_DOWN, c, v, 0] == root)
        model.add(found.state[_DOWN, c, v, problem.steps] == 1)
        for s in range(problem.steps):
            before, after = found.state[_DOWN, c, v, s], found.state[_DOWN, c, v, s + 1]
            model.add(after == before + sum(found.own[c][_DOWN][i][s] for i in into[v]))


def c4_order(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C4: what comes too late for a rank's own message does not come; no rank copies too early."""
    ends = ((_UP, found.ports.targets, 1), (_DOWN, found.ports.sources, 0))
    for half, ranks, later in ends:
        most = found.ports.most(copied=half == _DOWN)
        for c, (port, rank), s in product(found.chunks, enumerate(ranks), range(problem.steps)):
            if rank is not None:
                state = found.state[half, c, rank, s + later]
                model.add(found.own[c][half][port][s] <= most[port] * state)


def c5_turn(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C5: all partial sums of a chunk are sent before all whole ones."""
    ends = (found.ports.sources, found.ports.targets)
    for c in found.chunks:
        for s in range(problem.steps):
            up, down = found.phase[_UP, c, s], found.phase[_DOWN, c, s]
            model.add_bool_or(~up, ~down)
            for half, turn in ((_UP, up), (_DOWN, down)):
                for port, rank in enumerate(ends[half]):
                    if rank is not None:
                        model.add_implication(found.own[c][half][port][s], turn)
            if s + 1 < problem.steps:
                model.add_implication(found.phase[_UP, c, s + 1], up)
                model.add_implication(down, found.phase[_DOWN, c, s + 1])


def c6_switches(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C6: what leaves for a switch arrives from it, at another block."""
    for one, c, half, s in product(
        found.ports.switches, found.chunks, (_UP, _DOWN), range(problem.steps)
    ):
        sent = [port[s] for port in found.own[c][half]]
        out, into = ([sent[port] for port in side] for side in (one.out, one.into))
        model.add(sum(out) == sum(into))
        for block in one.blocks:
            if not found.ports.of_one_rank(block):
                model.add(sum(sent[port] for side in block for port in side) <= sum(out))


def c7_capacity(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C7: what loads a capacity in a step fits into its rounds."""
    by_port = np.sort(np.moveaxis(found.first, (2, 3), (0, 1)).reshape(*found.first.shape[2:], -1))
    sent = {(i, s): on.tolist() for i, row in enumerate(by_port) for s, on in enumerate(row)}
    state_capacity(*(model, problem, found.rounds, sent, found.sent.__getitem__), found.ports.loads)


def c8_rounds(model: cp_model.CpModel, problem: AllReduceProblem, found: Vars) -> None:
    """C8: the steps take all rounds together."""
    state_rounds(model, problem, found.rounds)


def decode(problem: AllReduceProblem, found: Vars, solver: cp_model.CpSolver) -> SumSchedule:
    """The solver's trees, lifted: a rank copies what came last, and adds up before that."""
    counts = np.zeros(found.first.size, dtype=np.int64)
    for number, x in found.sent.items():
        counts[number] = solver.value(x)
    sends, drops = set(), set()
    passed = counts[found.first]
    for half, c, s in product((_UP, _DOWN), range(problem.chunks), range(problem.steps)):
        for e in found.ports.edges(passed[half, c, :, s]):
            sends.add((c, e, s))
            if half == _DOWN:
                drops.add((c, problem.edges[e][1], s))
    return kept_schedule(problem, [solver.value(r) for r in found.rounds], sends, drops)
