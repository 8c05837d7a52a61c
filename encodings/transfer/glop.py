"""The least time in which classes of data reach those who need them, with GLOP.

Problem: a :class:`~p2smt.problems.transfer.TransferProblem`: averages of all plans, in which every
byte goes along a tree from a holder over devices that hold or need it.  What every tree has to obey
is linear, so the least time of these averages is below that of every plan.

Variables, all continuous, for each class b and each of its members g
    T           at least 0: seconds
    e[b, g]     0 to 1: the share of b that enters g over the network; holders: 0
    o[b, g]     at least 0: how often g sends b over the network
    s[b, g]     at least 0: how often g sends b inside its node

Constraints
    C1 entry      over the network a class enters needers alone, and none where all of its devices
                  are in one node
    C2 arrival    the first copy in a node with needers comes over the network or from a holder
    C3 network    of each class as much is sent over the network as enters
    C4 leaving    if a node has needers and no holder, nodes with a holder send b once at least
    C5 inside     as much is sent inside a node as does not enter over the network
    C6 others     what does not enter a needer is sent inside by others than itself
    C7 abroad     what enters a node over the network is sent by devices of other nodes
    C8 ports      no port passes more than T times its rate

Objective: minimise T.

Bytes and rates are counted in parts of the largest, so that the solver's tolerances fit.

Size: three variables for each class and device that holds or needs it, and two rows for each class
and node, of what symmetries do not make of each other; a million variables and more are refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from ortools.linear_solver.python import model_builder_helper as linear

from p2smt.encodings.run_glop import SOLVER, Model, run
from p2smt.errors import TooLarge
from p2smt.problems.transfer import (
    ClassMember,
    ClassPart,
    ClassRow,
    FlowShares,
    TransferFlows,
    TransferProblem,
)
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

MAX_VARIABLES = 1_000_000
_At = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Vars:
    """Numbers of variables by (class, part, member); ``scale``: bytes of weight 1, rate of 1."""

    time: int
    entering: dict[_At, int]
    sending: dict[_At, int]
    giving: dict[_At, int]
    scale: tuple[float, float]


def least_time(problem: TransferProblem, limits: SearchLimits) -> Result[TransferFlows]:
    """The optimum: OPTIMAL or UNKNOWN."""
    watch = StopWatch.start(limits)
    size = 3 * sum(len(part.members) for row in problem.classes for part in row.parts)
    if size > MAX_VARIABLES:
        raise TooLarge("this transfer", f"has more than {MAX_VARIABLES} shares to be found")
    model = Model()
    found = c1_entry(model, problem)
    c2_arrival(model, problem, found)
    c3_network(model, problem, found)
    c4_leaving(model, problem, found)
    c5_inside(model, problem, found)
    c6_others(model, problem, found)
    c7_abroad(model, problem, found)
    ports = c8_ports(model, problem, found)
    model.set_var_objective_coefficient(found.time, 1.0)
    solver = run(model, watch.left())
    sizes = (("variables", model.num_variables()), ("constraints", model.num_constraints()))
    stats = SolveStats(SOLVER, watch.elapsed_s(), 1, sizes)
    if solver is None:
        return Result(Status.UNKNOWN, stats=stats)
    return Result(Status.OPTIMAL, decode(problem, found, ports, solver), stats=stats)


def _parts(problem: TransferProblem) -> Iterator[tuple[int, int, ClassRow, ClassPart]]:
    for b, row in enumerate(problem.classes):
        for n, part in enumerate(row.parts):
            yield b, n, row, part


def _row(model: Model, terms: list[tuple[int, float]], low: float, high: float) -> int:
    """A constraint: the sum of terms lies between two numbers."""
    row = model.add_linear_constraint()
    total: dict[int, float] = defaultdict(float)
    for number, factor in terms:
        total[number] += factor
    for number, factor in total.items():
        model.add_term_to_constraint(row, number, factor)
    model.set_constraint_lower_bound(row, low)
    model.set_constraint_upper_bound(row, high)
    return int(row)


def c1_entry(model: Model, problem: TransferProblem) -> Vars:
    """C1: the variables; over the network a class enters needers alone, from other nodes."""
    heaviest = max(row.payload_bytes for row in problem.classes)
    fastest = float(max(rate for _, rate in problem.ports))
    entering, sending, giving = {}, {}, {}
    for b, n, row, part in _parts(problem):
        for g, member in enumerate(part.members):
            at = (b, n, g)
            sending[at], giving[at] = _variable(model), _variable(model)
            if member.needs:
                entering[at] = _variable(model, 1.0 if row.nodes > 1 else 0.0)
    return Vars(_variable(model), entering, sending, giving, (float(heaviest), fastest))


def _variable(model: Model, most: float = inf) -> int:
    number = model.add_var()
    model.set_var_lower_bound(number, 0.0)
    model.set_var_upper_bound(number, most)
    return int(number)


def c2_arrival(model: Model, problem: TransferProblem, found: Vars) -> None:
    """C2: the first copy comes over the network or from a holder."""
    for b, n, _, part in _parts(problem):
        if part.needed:
            terms = [
                ((found.entering if member.needs else found.giving)[b, n, g], float(member.count))
                for g, member in enumerate(part.members)
            ]
            _row(model, terms, 1.0, inf)


def c3_network(model: Model, problem: TransferProblem, found: Vars) -> None:
    """C3: as much is sent over the network as enters."""
    for b, row in enumerate(problem.classes):
        terms = []
        for n, part in enumerate(row.parts):
            for g, member in enumerate(part.members):
                each = float(part.count * member.count)
                terms.append((found.sending[b, n, g], each))
                if member.needs:
                    terms.append((found.entering[b, n, g], -each))
        _row(model, terms, 0.0, 0.0)


def c4_leaving(model: Model, problem: TransferProblem, found: Vars) -> None:
    """C4: from nodes with a holder it leaves at least once, where another node needs it."""
    for b, row in enumerate(problem.classes):
        if any(part.needed and not part.held for part in row.parts):
            terms = [
                (found.sending[b, n, g], float(part.count * member.count))
                for n, part in enumerate(row.parts)
                if part.held
                for g, member in enumerate(part.members)
            ]
            _row(model, terms, 1.0, inf)


def c5_inside(model: Model, problem: TransferProblem, found: Vars) -> None:
    """C5: as much is sent inside a node as does not enter over the network."""
    for b, n, _, part in _parts(problem):
        terms, needers = [], 0
        for g, member in enumerate(part.members):
            terms.append((found.giving[b, n, g], float(member.count)))
            if member.needs:
                terms.append((found.entering[b, n, g], float(member.count)))
                needers += member.count
        _row(model, terms, float(needers), float(needers))


def c6_others(model: Model, problem: TransferProblem, found: Vars) -> None:
    """C6: what does not enter a needer is sent inside by others than itself."""
    for b, n, _, part in _parts(problem):
        for g, member in enumerate(part.members):
            if member.needs:
                terms = [
                    (found.giving[b, n, h], float(other.count - (h == g)))
                    for h, other in enumerate(part.members)
                ]
                _row(model, [*terms, (found.entering[b, n, g], 1.0)], 1.0, inf)


def c7_abroad(model: Model, problem: TransferProblem, found: Vars) -> None:
    """C7: what enters a node over the network is sent by devices of other nodes."""
    for b, row in enumerate(problem.classes):
        if row.nodes == 1:
            continue
        every = [
            (found.sending[b, n, g], float(part.count * member.count))
            for n, part in enumerate(row.parts)
            for g, member in enumerate(part.members)
        ]
        for n, part in enumerate(row.parts):
            own = []
            for g, member in enumerate(part.members):
                own.append((found.sending[b, n, g], -float(member.count)))
                if member.needs:
                    own.append((found.entering[b, n, g], -float(member.count)))
            if part.needed:
                _row(model, [*every, *own], 0.0, inf)


def c8_ports(model: Model, problem: TransferProblem, found: Vars) -> tuple[int, ...]:
    """C8: no port passes more than T times its rate; returns the rows, port by port."""
    loads: list[list[tuple[int, float]]] = [[] for _ in problem.ports]
    weight, _ = found.scale
    for b, n, row, part in _parts(problem):
        every = row.payload_bytes / weight * row.count * part.count
        for g, member in enumerate(part.members):
            for port, number, factor, fixed in _uses(found, (b, n, g), member):
                each = every * member.count / problem.ports[port][0]
                loads[port].append((number, factor * each))
                if fixed:
                    loads[port].append((-1, each))
    return tuple(_port_row(model, problem, found, p, load) for p, load in enumerate(loads))


def _uses(found: Vars, at: _At, member: ClassMember) -> Iterator[tuple[int, int, float, bool]]:
    """(port, variable, factor, whether a whole copy is added) of what a device passes."""
    yield from ((p, found.sending[at], 1.0, False) for p in member.out)
    yield from ((p, found.giving[at], 1.0, False) for p in member.give)
    if member.needs:
        yield from ((p, found.entering[at], 1.0, False) for p in member.into)
        yield from ((p, found.entering[at], -1.0, True) for p in member.take)


def _port_row(
    model: Model,
    problem: TransferProblem,
    found: Vars,
    port: int,
    load: list[tuple[int, float]],
) -> int:
    rate = float(problem.ports[port][1]) / found.scale[1]
    fixed = sum(factor for number, factor in load if number < 0)
    terms = [(number, -factor) for number, factor in load if number >= 0]
    return _row(model, [*terms, (found.time, rate)], fixed, inf)


def decode(
    problem: TransferProblem, found: Vars, ports: tuple[int, ...], solver: linear.ModelSolverHelper
) -> TransferFlows:
    """Shares and prices of an optimum, in units again."""
    values, duals = solver.variable_values(), solver.dual_values()
    weight, fastest = found.scale
    shares = tuple(
        tuple(
            tuple(
                FlowShares(
                    float(values[found.entering[b, n, g]]) if member.needs else 0.0,
                    float(values[found.sending[b, n, g]]),
                    float(values[found.giving[b, n, g]]),
                )
                for g, member in enumerate(part.members)
            )
            for n, part in enumerate(row.parts)
        )
        for b, row in enumerate(problem.classes)
    )
    prices = tuple(
        max(0.0, float(duals[row])) / (fastest * count)
        for row, (count, _) in zip(ports, problem.ports, strict=True)
    )
    return TransferFlows(solver.objective_value() * weight / fastest, shares, prices)
