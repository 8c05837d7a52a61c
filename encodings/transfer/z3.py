"""Whole trees for the pieces of a transfer, with z3.

Problem: a :class:`~p2smt.problems.transfer.PieceProblem`: every piece goes along one tree from a
holder over the devices that need it, so that the busiest port is done soonest.

Variables, for each piece b and each of its members g
    e[b, g]     Boolean: b enters g over the network
    o[b, g]     how often g sends b over the network, an integer
    s[b, g]     how often g sends b inside its node, an integer

Constraints
    C1 entry      over the network a piece enters needers alone, and none where all of its devices
                  are in one node
    C2 arrival    the first copy in a node with needers comes over the network or from a holder
    C3 network    of each piece as much is sent over the network as enters
    C4 leaving    what enters anywhere is sent first by a holder, or by who gets it inside from one
    C5 inside     as much is sent inside a node as does not enter over the network
    C6 others     who does not enter gets it inside from a holder, or from one that enters
    C7 abroad     what enters a node over the network is sent by devices of other nodes
    C8 ports      no port takes more ticks than are allowed
    C9 messages   no device sends more than so many messages

Objective: the ticks of the busiest port, bisected by C8; once they are proved, the messages of the
busiest device, by C9.

Size: a Boolean and two integers for each piece and device that holds or needs it.  It is meant for
small problems, and to check the other encoding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import z3

from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.problems.transfer import ClassMember, ClassPart, PieceFlows, PieceProblem, PieceSends
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "z3"
_At = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Vars:
    """By (piece, part, member): e (holders: false), o and s."""

    entering: Mapping[_At, z3.BoolRef]
    sending: Mapping[_At, z3.ArithRef]
    giving: Mapping[_At, z3.ArithRef]

    def count(self, at: _At) -> z3.ArithRef:
        """1 where a piece enters, else 0."""
        return z3.If(self.entering[at], 1, 0)


def best_pieces(problem: PieceProblem, limits: SearchLimits) -> Result[PieceFlows]:
    """The numbers of the fastest trees; ``bound`` is the proved lower bound in ticks.

    The counters "objective" and "messages" of the statistics are ticks and messages of the answer,
    of which the status speaks for the ticks alone.

    Raises:
        TooLarge: pieces have too many devices.
    """
    problem.check_size()
    watch, solver = StopWatch.start(limits), new_solver(limits.seed)
    found = _build(solver, problem)
    loads, sent = _loads(problem, found), _sent(problem, found)
    if problem.at_most is not None:
        c8_ports(solver, loads, problem.at_most)
    low, best, out_of_time = _least(
        solver, lambda ticks: c8_ports(solver, loads, ticks), loads, watch
    )
    if best is None:
        status = Status.UNKNOWN if out_of_time else Status.INFEASIBLE
        return Result(status, stats=SolveStats(_SOLVER, watch.elapsed_s()))
    ticks = _most(best, loads)
    answer = best
    if not out_of_time:
        c8_ports(solver, loads, ticks)
        _, fewest, _ = _least(solver, lambda most: c9_messages(solver, sent, most), sent, watch)
        answer = best if fewest is None else fewest
    counters = (("objective", ticks), ("messages", _most(answer, sent)))
    stats = SolveStats(_SOLVER, watch.elapsed_s(), 2, counters)
    status = Status.FEASIBLE if out_of_time else Status.OPTIMAL
    return Result(status, decode(problem, found, answer), low, stats)


def decode(problem: PieceProblem, found: Vars, model: z3.ModelRef) -> PieceFlows:
    """The numbers of a model."""
    return tuple(
        tuple(
            tuple(
                PieceSends(
                    z3.is_true(model.eval(found.entering[b, n, g], model_completion=True)),
                    model.eval(found.sending[b, n, g], model_completion=True).as_long(),
                    model.eval(found.giving[b, n, g], model_completion=True).as_long(),
                )
                for g in range(len(part.members))
            )
            for n, part in enumerate(row.parts)
        )
        for b, row in enumerate(problem.pieces)
    )


def _members(problem: PieceProblem) -> Iterator[tuple[_At, ClassMember]]:
    for b, n, part in _parts(problem):
        for g, member in enumerate(part.members):
            yield (b, n, g), member


def _parts(problem: PieceProblem) -> Iterator[tuple[int, int, ClassPart]]:
    for b, row in enumerate(problem.pieces):
        for n, part in enumerate(row.parts):
            yield b, n, part


def _build(solver: z3.Solver, problem: PieceProblem) -> Vars:
    every = [at for at, _ in _members(problem)]
    found = Vars(
        {at: z3.Bool(f"e{at}") for at in every},
        {at: z3.Int(f"o{at}") for at in every},
        {at: z3.Int(f"s{at}") for at in every},
    )
    c1_entry(solver, problem, found)
    c2_arrival(solver, problem, found)
    c3_network(solver, problem, found)
    c4_leaving(solver, problem, found)
    c5_inside(solver, problem, found)
    c6_others(solver, problem, found)
    c7_abroad(solver, problem, found)
    return found


def c1_entry(solver: z3.Solver, problem: PieceProblem, found: Vars) -> None:
    """C1: a piece enters needers alone, from other nodes; nothing is sent less than never."""
    for at, member in _members(problem):
        solver.add(found.sending[at] >= 0, found.giving[at] >= 0)
        if not member.needs or len(problem.pieces[at[0]].parts) == 1:
            solver.add(z3.Not(found.entering[at]))


def c2_arrival(solver: z3.Solver, problem: PieceProblem, found: Vars) -> None:
    """C2: the first copy comes over the network or from a holder."""
    for b, n, part in _parts(problem):
        if part.needed:
            solver.add(
                z3.Or(
                    [
                        found.entering[b, n, g] if member.needs else found.giving[b, n, g] >= 1
                        for g, member in enumerate(part.members)
                    ]
                )
            )


def c3_network(solver: z3.Solver, problem: PieceProblem, found: Vars) -> None:
    """C3: as much is sent over the network as enters."""
    for b in range(len(problem.pieces)):
        own = [at for at in found.sending if at[0] == b]
        sent = z3.Sum([found.sending[at] for at in own])
        solver.add(sent == z3.Sum([found.count(at) for at in own]))


def c4_leaving(solver: z3.Solver, problem: PieceProblem, found: Vars) -> None:
    """C4: the first to send over the network has the piece without it."""
    firsts: dict[int, list[z3.BoolRef]] = defaultdict(list)
    for b, n, part in _parts(problem):
        given = z3.Or(
            [found.giving[b, n, g] >= 1 for g, m in enumerate(part.members) if not m.needs]
        )
        for g, member in enumerate(part.members):
            sends = found.sending[b, n, g] >= 1
            if member.needs:
                sends = z3.And(sends, z3.Not(found.entering[b, n, g]), given)
            firsts[b].append(sends)
    for at, entering in found.entering.items():
        solver.add(z3.Implies(entering, z3.Or(firsts[at[0]])))


def c5_inside(solver: z3.Solver, problem: PieceProblem, found: Vars) -> None:
    """C5: as much is sent inside a node as does not enter over the network."""
    for b, n, part in _parts(problem):
        own = [(b, n, g) for g in range(len(part.members))]
        given = z3.Sum([found.giving[at] for at in own])
        entering = z3.Sum([found.count(at) for at in own])
        solver.add(given + entering == sum(member.needs for member in part.members))


def c6_others(solver: z3.Solver, problem: PieceProblem, found: Vars) -> None:
    """C6: somebody who has it without the others inside sends there."""
    for b, n, part in _parts(problem):
        roots = [
            z3.And(found.giving[b, n, g] >= 1, z3.Or(not member.needs, found.entering[b, n, g]))
            for g, member in enumerate(part.members)
        ]
        for g, member in enumerate(part.members):
            if member.needs:
                solver.add(z3.Or(found.entering[b, n, g], *roots))


def c7_abroad(solver: z3.Solver, problem: PieceProblem, found: Vars) -> None:
    """C7: what enters a node over the network is sent by devices of other nodes."""
    for b, n, part in _parts(problem):
        if part.needed:
            entering = z3.Sum([found.count((b, n, g)) for g in range(len(part.members))])
            others = [sent for at, sent in found.sending.items() if at[0] == b and at[1] != n]
            solver.add(z3.Sum([z3.IntVal(0), *others]) >= entering)


def _loads(problem: PieceProblem, found: Vars) -> list[z3.ArithRef]:
    """Ticks of each port."""
    loads: dict[int, list[z3.ArithRef]] = defaultdict(list)
    for at, member in _members(problem):
        for ports, count in (
            (member.out, found.sending[at]),
            (member.give, found.giving[at]),
            (member.into if member.needs else (), found.count(at)),
            (member.take if member.needs else (), 1 - found.count(at)),
        ):
            for port in ports:
                loads[port].append(problem.ticks(port, at[0]) * count)
    return [z3.Sum(load) for load in loads.values()]


def _sent(problem: PieceProblem, found: Vars) -> list[z3.ArithRef]:
    """Messages of each device; those with the same ports are counted together."""
    sent: dict[tuple[tuple[int, ...], ...], list[z3.ArithRef]] = defaultdict(list)
    for at, member in _members(problem):
        device = (member.out, member.into, member.give, member.take)
        sent[device] += [found.sending[at], found.giving[at]]
    return [z3.Sum(own) for own in sent.values()]


def c8_ports(solver: z3.Solver, loads: list[z3.ArithRef], ticks: int) -> None:
    """C8: no port takes more ticks."""
    solver.add(*(load <= ticks for load in loads))


def c9_messages(solver: z3.Solver, sent: list[z3.ArithRef], most: int) -> None:
    """C9: no device sends more messages."""
    solver.add(*(own <= most for own in sent))


def _most(model: z3.ModelRef, numbers: list[z3.ArithRef]) -> int:
    return max((model.eval(one, model_completion=True).as_long() for one in numbers), default=0)


def _least(
    solver: z3.Solver,
    at_most: Callable[[int], None],
    numbers: list[z3.ArithRef],
    watch: StopWatch,
) -> tuple[int, z3.ModelRef | None, bool]:
    """A bound on the largest of the numbers, a model of what is found, and whether time ran out."""
    low, best = 0, None
    try:
        while best is None or low < _most(best, numbers):
            middle = None if best is None else (low + _most(best, numbers)) // 2
            solver.push()
            try:
                if middle is not None:
                    at_most(middle)
                model = solution(solver, watch)
            finally:
                solver.pop()
            if model is not None:
                best = model
            elif middle is None:
                return low, None, False
            else:
                low = middle + 1
    except OutOfTimeError:
        return low, best, True
    return low, best, False
