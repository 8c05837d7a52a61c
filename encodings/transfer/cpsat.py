"""Whole trees for the pieces of a transfer, with CP-SAT.

Problem: a :class:`~p2smt.problems.transfer.PieceProblem`: every piece goes along one tree from a
holder over the devices that need it, so that the busiest port is done soonest.  Not the tree is
asked for but how often each device sends; from such numbers a tree grows by attaching first who can
send on.

Variables, for each piece b and each of its members g
    T           ticks of the busiest port
    e[b, g]     Boolean: b enters g over the network; holders: never
    o[b, g]     how often g sends b over the network
    s[b, g]     how often g sends b inside its node
    f[b, g]     Boolean: g may send b over the network before anything enters its node
    r[b, g]     Boolean: g sends b inside its node without having got it there
    m           messages of the busiest device

Constraints
    C1 entry      over the network a piece enters needers alone, and none where all of its devices
                  are in one node
    C2 arrival    the first copy in a node with needers comes over the network or from a holder
    C3 network    of each piece as much is sent over the network as enters
    C4 leaving    what enters anywhere is sent first by a holder, or by who gets it inside from one
    C5 inside     as much is sent inside a node as does not enter over the network
    C6 others     who does not enter gets it inside from a holder, or from one that enters
    C7 abroad     what enters a node over the network is sent by devices of other nodes
    C8 ports      no port takes more than T, nor T more than is allowed
    C9 alike      of pieces with the same bytes and the same members the first are the greatest, as
                  rows of e, o and s
    C10 messages  no device sends more than m

Objective: minimise T; once that is proved, m for that T.

Size: three integers and two Booleans for each piece and device that holds or needs it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from p2smt.encodings.run_cpsat import bound_without_answer, proved_bound, run
from p2smt.problems.transfer import ClassMember, ClassPart, PieceFlows, PieceProblem, PieceSends
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "cpsat"
_At = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Vars:
    """By (piece, part, member); e, o and s of the docstring, T and m."""

    time: cp_model.IntVar
    messages: cp_model.IntVar
    entering: Mapping[_At, cp_model.IntVar]
    sending: Mapping[_At, cp_model.IntVar]
    giving: Mapping[_At, cp_model.IntVar]


def best_pieces(problem: PieceProblem, limits: SearchLimits) -> Result[PieceFlows]:
    """The numbers of the fastest trees; ``bound`` is the proved lower bound in ticks.

    The counters "objective" and "messages" of the statistics are T and m of the answer, of which
    the status speaks for T alone.

    Raises:
        TooLarge: pieces have too many devices.
    """
    problem.check_size()
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    found = _build(model, problem)
    model.minimize(found.time)
    solver, verdict = run(model, watch.left(), in_ticks=True)
    if verdict not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        status = Status.INFEASIBLE if verdict == cp_model.INFEASIBLE else Status.UNKNOWN
        bound = bound_without_answer(solver) if status is Status.UNKNOWN else None
        return Result(status, None, bound, SolveStats(_SOLVER, watch.elapsed_s()))
    proved = verdict == cp_model.OPTIMAL
    least = solver.value(found.time)
    bound = least if proved else proved_bound(solver)
    if proved:
        solver = _fewest_messages(model, found, solver, watch)
    counters = (("objective", least), ("messages", solver.value(found.messages)))
    stats = SolveStats(_SOLVER, watch.elapsed_s(), 1 + proved, counters)
    status = Status.OPTIMAL if proved else Status.FEASIBLE
    return Result(status, decode(problem, found, solver), bound, stats)


def _fewest_messages(
    model: cp_model.CpModel, found: Vars, solver: cp_model.CpSolver, watch: StopWatch
) -> cp_model.CpSolver:
    """The answer with the fewest messages of its busiest device that takes no longer."""
    model.add(found.time <= solver.value(found.time))
    for index, value in enumerate(solver.response_proto.solution):
        model.add_hint(model.get_int_var_from_proto_index(index), value)
    model.minimize(found.messages)
    again, verdict = run(model, watch.left())
    return again if verdict in (cp_model.OPTIMAL, cp_model.FEASIBLE) else solver


def decode(problem: PieceProblem, found: Vars, solver: cp_model.CpSolver) -> PieceFlows:
    """The numbers of the solver's solution."""
    return tuple(
        tuple(
            tuple(
                PieceSends(
                    member.needs and bool(solver.value(found.entering[b, n, g])),
                    solver.value(found.sending[b, n, g]),
                    solver.value(found.giving[b, n, g]),
                )
                for g, member in enumerate(part.members)
            )
            for n, part in enumerate(row.parts)
        )
        for b, row in enumerate(problem.pieces)
    )


def _members(problem: PieceProblem) -> Iterator[tuple[_At, ClassMember]]:
    for b, row in enumerate(problem.pieces):
        for n, part in enumerate(row.parts):
            for g, member in enumerate(part.members):
                yield (b, n, g), member


def _parts(problem: PieceProblem) -> Iterator[tuple[int, int, ClassPart]]:
    for b, row in enumerate(problem.pieces):
        for n, part in enumerate(row.parts):
            yield b, n, part


def _build(model: cp_model.CpModel, problem: PieceProblem) -> Vars:
    found = c1_entry(model, problem)
    c2_arrival(model, problem, found)
    c3_network(model, problem, found)
    c4_leaving(model, problem, found)
    c5_inside(model, problem, found)
    c6_others(model, problem, found)
    c7_abroad(model, problem, found)
    c8_ports(model, problem, found)
    c9_alike(model, problem, found)
    c10_messages(model, problem, found)
    return found


def c1_entry(model: cp_model.CpModel, problem: PieceProblem) -> Vars:
    """C1: the variables; over the network a piece enters needers alone, from other nodes."""
    entering, sending, giving = {}, {}, {}
    many = [len(row.parts) for row in problem.pieces]
    needers = [sum(m.needs for part in row.parts for m in part.members) for row in problem.pieces]
    for (b, n, g), member in _members(problem):
        at = (b, n, g)
        here = sum(other.needs for other in problem.pieces[b].parts[n].members)
        abroad = needers[b] - here if many[b] > 1 else 0
        sending[at] = model.new_int_var(0, abroad, f"o{at}")
        giving[at] = model.new_int_var(0, here - member.needs, f"s{at}")
        if member.needs:
            entering[at] = model.new_int_var(0, int(many[b] > 1), f"e{at}")
    most = sum(
        problem.ticks(p, b) * needers[b] for b in range(len(many)) for p in _used(problem, b)
    )
    limit = most if problem.at_most is None else min(most, problem.at_most)
    messages = model.new_int_var(0, sum(needers), "m")
    return Vars(model.new_int_var(0, max(limit, 0), "T"), messages, entering, sending, giving)


def _used(problem: PieceProblem, piece: int) -> set[int]:
    """The slowest port of a piece's devices."""
    ports = {
        port
        for part in problem.pieces[piece].parts
        for member in part.members
        for port in (*member.out, *member.into, *member.give, *member.take)
    }
    return {min(ports, key=lambda port: problem.rates[port])} if ports else set()


def c2_arrival(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C2: the first copy comes over the network or from a holder."""
    for b, n, part in _parts(problem):
        if part.needed:
            model.add(
                sum(
                    (found.entering if member.needs else found.giving)[b, n, g]
                    for g, member in enumerate(part.members)
                )
                >= 1
            )


def c3_network(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C3: as much is sent over the network as enters."""
    for own, into in zip(
        _by_piece(problem, found.sending), _by_piece(problem, found.entering), strict=True
    ):
        model.add(sum(own) == sum(into))


def _by_piece(
    problem: PieceProblem, numbers: Mapping[_At, cp_model.IntVar]
) -> list[list[cp_model.IntVar]]:
    rows: list[list[cp_model.IntVar]] = [[] for _ in problem.pieces]
    for (b, _, _), number in numbers.items():
        rows[b].append(number)
    return rows


def c4_leaving(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C4: the first to send over the network has the piece without it."""
    firsts: dict[int, list[cp_model.IntVar]] = defaultdict(list)
    for b, n, part in _parts(problem):
        given = sum(found.giving[b, n, g] for g, one in enumerate(part.members) if not one.needs)
        for g, member in enumerate(part.members):
            if part.held:
                first = model.new_bool_var("f")
                model.add(found.sending[b, n, g] >= first)
                if member.needs:
                    model.add(found.entering[b, n, g] + first <= 1)
                    model.add(given >= first)
                firsts[b].append(first)
    for (b, _, _), entering in found.entering.items():
        model.add(sum(firsts[b]) >= entering)


def c5_inside(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C5: as much is sent inside a node as does not enter over the network."""
    for b, n, part in _parts(problem):
        needing = [g for g, member in enumerate(part.members) if member.needs]
        entering = sum(found.entering[b, n, g] for g in needing)
        given = sum(found.giving[b, n, g] for g in range(len(part.members)))
        model.add(given + entering == len(needing))


def c6_others(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C6: somebody who has it without the others inside sends there, and nobody to itself."""
    for b, n, part in _parts(problem):
        roots = []
        for g, member in enumerate(part.members):
            root = model.new_bool_var("r")
            model.add(found.giving[b, n, g] >= root)
            if member.needs:
                model.add(found.entering[b, n, g] >= root)
            roots.append(root)
        for g, member in enumerate(part.members):
            if member.needs:
                others = [found.giving[b, n, h] for h in range(len(part.members)) if h != g]
                model.add(sum(others) + found.entering[b, n, g] >= 1)
                model.add(sum(roots) + found.entering[b, n, g] >= 1)


def c7_abroad(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C7: what enters a node over the network is sent by devices of other nodes."""
    for b, row in enumerate(problem.pieces):
        for n, part in enumerate(row.parts):
            entering = [found.entering[b, n, g] for g, one in enumerate(part.members) if one.needs]
            others = [
                found.sending[b, m, g]
                for m, other in enumerate(row.parts)
                if m != n
                for g in range(len(other.members))
            ]
            if entering:
                model.add(sum(others) >= sum(entering))


def c8_ports(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C8: no port takes more than T ticks."""
    loads: dict[int, list[cp_model.LinearExprT]] = defaultdict(list)
    for at, member in _members(problem):
        used: list[tuple[int, cp_model.LinearExprT]] = [
            *((port, found.sending[at]) for port in member.out),
            *((port, found.giving[at]) for port in member.give),
        ]
        if member.needs:
            used += [(port, found.entering[at]) for port in member.into]
            used += [(port, 1 - found.entering[at]) for port in member.take]
        for port, count in used:
            loads[port].append(problem.ticks(port, at[0]) * count)
    for load in loads.values():
        model.add(sum(load) <= found.time)


def c9_alike(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C9: of pieces that are alike the first are the greatest."""
    rows: list[list[cp_model.IntVar]] = [[] for _ in problem.pieces]
    for numbers in (found.entering, found.sending, found.giving):
        for (b, _, _), number in numbers.items():
            rows[b].append(number)
    for b, c in pairwise(range(len(rows))):
        if problem.pieces[b] == problem.pieces[c]:
            _no_less(model, rows[b], rows[c])


def _no_less(
    model: cp_model.CpModel, first: list[cp_model.IntVar], second: list[cp_model.IntVar]
) -> None:
    """The first row is no less than the second: where all before are equal, so is each number."""
    equal: cp_model.IntVar | None = None
    for one, other in zip(first, second, strict=True):
        more = model.new_bool_var("equal")
        before = [] if equal is None else [equal]
        model.add(one >= other).only_enforce_if(before)
        model.add(one > other).only_enforce_if([*before, more.negated()])
        equal = more


def c10_messages(model: cp_model.CpModel, problem: PieceProblem, found: Vars) -> None:
    """C10: no device sends more than m; devices with the same ports are counted together."""
    sent: dict[tuple[tuple[int, ...], ...], list[cp_model.IntVar]] = defaultdict(list)
    for at, member in _members(problem):
        device = (member.out, member.into, member.give, member.take)
        sent[device] += [found.sending[at], found.giving[at]]
    for own in sent.values():
        model.add(sum(own) <= found.messages)
