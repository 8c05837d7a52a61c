"""Schedules of chunks that are copied, with CP-SAT: one variable for each orbit of counts.

Problem: a :class:`~p2smt.problems.schedule.DisseminationProblem`: k-synchronous schedules of
all-gather, broadcast, scatter, all-to-all and what else only copies (SCCL, PPoPP 2021).

Messages are counted at the ports (``p2smt.problems.ports``) by which they leave and arrive: a link
has one port for both, a switch one for each rank on either side.  Which message that leaves arrives
where is chosen after the search, for any choice is a schedule.

Where the problem has symmetries, counts (and held chunks) that they take to each other share a
variable, and constraints that say the same are stated once: solving one orbit solves all.  Through
a switch counts are symmetric then, and messages need not be.  The counts of a schedule whose
messages are symmetric too are a solution: where there is none, there is no such schedule.

Variables
    x[c, i, s]  how often chunk c passes port i in step s: 0 or 1, but any number where i is a port
                by which it leaves for a switch
    h[c, v, s]  Boolean: rank v holds chunk c before step s, s = 0..S
    r[s]        rounds of step s, 1..R - S + 1

Constraints
    C1 held      an x that leaves v in step s implies h[c, v, s]
    C2 arrival   h[c, v, s + 1] is h[c, v, s] plus the x that arrive at v in step s: at most one
                 ever arrives
    C3 goal      h[c, v, S] for every goal v of c
    C4 capacity  the x that load a capacity in step s are at most its bandwidth times r[s]
    C5 rounds    the r sum up to R
    C6 fullness  where counting shows that a capacity is full in every step, its x are no less than
                 its bandwidth times r[s]; that follows from the others
    C7 decided   h is 1 or 0 where the problem says so, and not all as it excludes
    C8 switches  as many x leave for a switch in step s as arrive from it, and they can be paired:
                 by the ports of a block (of one rank only by C1 and C2) no more leave and arrive,
                 together, than pass the switch

Objective: none; any schedule will do.

A variable is left out where it must be 0: x where a chunk cannot be at any source yet, or from
any target on no longer reach a goal, h likewise.  The linear relaxation says little here and costs
much, so it is left out.  Chunks with the same root and goals are not put in an order.

Chunks with one goal each are first looked for on routes that load the fabric evenly, which makes
the model small; where that finds nothing, the whole model is solved.

Size: chunks x ports x steps variables, divided by the order of the group that the symmetries make.
Behind a switch n ranks have 2 n ports, and n (n - 1) edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import chain, product

import numpy as np
from ortools.sat.python import cp_model

from p2smt.encodings.run_cpsat import run
from p2smt.encodings.schedule.cpsat_search import SolverVerdict, check_rounds, searched, small_rate
from p2smt.encodings.schedule.orbits import (
    Firsts,
    even_routes,
    hold_firsts,
    port_firsts,
    port_times,
    spell,
    variable_count,
)
from p2smt.errors import TooLarge
from p2smt.problems.ports import EdgePorts, kept_ports
from p2smt.problems.schedule import ChunkRoute, DisseminationProblem, StepSends
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

MAX_VARIABLES = 1_000_000
MAX_PAIRS = 20_000_000
FIRST_LOOK_S = 10.0
"""Wall seconds, at most, of the search on even routes."""
_SOLVER = "cpsat"

Distances = tuple[tuple[int | None, ...], tuple[int | None, ...]]
StepRanges = Mapping[tuple[int, int], range]
"""Pairs (chunk, rank), first of their orbit, and the steps of their Booleans."""


@dataclass(frozen=True, slots=True)
class Vars:
    """x and h by the number of the first pair (chunk, port or rank) and step; r by step.

    ``send_of`` and ``hold_of`` lead from every pair to that number.
    """

    ports: EdgePorts
    send: Mapping[tuple[int, int], cp_model.IntVar]
    hold: Mapping[tuple[int, int], cp_model.IntVar]
    rounds: tuple[cp_model.IntVar, ...]
    send_of: Firsts
    hold_of: Firsts


def any_schedule(
    problem: DisseminationProblem, limits: SearchLimits
) -> Result[tuple[StepSends, ...]]:
    """A schedule: FEASIBLE; INFEASIBLE: proved that there is none with these symmetries; UNKNOWN.

    Raises:
        TooLarge: more variables than MAX_VARIABLES, or too many rounds.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    check_rounds(problem.rounds)
    ports = kept_ports(problem.edges, problem.symmetries)
    if len(problem.chunks) * len(ports) > MAX_PAIRS:
        raise _too_large(
            problem, "have more than", MAX_PAIRS, "pairs of a chunk and a port or link"
        )
    if not _reachable(problem):
        return Result(Status.INFEASIBLE, stats=SolveStats(_SOLVER, watch.elapsed_s(), calls=0))
    found = _variables(model, problem, ports)
    every = (
        *(c1_held, c2_arrival, c3_goal, c4_capacity),
        *(c5_rounds, c6_fullness, c7_decided, c8_switches),
    )
    return searched(
        *(watch, model, problem, found, every, decode),
        first=lambda: _on_even_routes(model, problem, found, watch),
    )


def _on_even_routes(
    model: cp_model.CpModel, problem: DisseminationProblem, found: Vars, watch: StopWatch
) -> SolverVerdict | None:
    """A short search in which chunks of one goal each take routes that load the fabric evenly.

    That it finds nothing says nothing.  None: some chunk has several goals.
    """
    routes = even_routes(problem)
    if routes is None:
        return None
    passed = ((c, by[e]) for c, e in routes for by in (found.ports.leaves, found.ports.arrives))
    kept = {int(found.send_of[one]) for one in passed}
    few = model.clone()
    for (number, _), x in found.send.items():
        if number not in kept:
            few.add(x == 0)
    left = watch.remaining_s()
    short = FIRST_LOOK_S if left is None else min(FIRST_LOOK_S, left / 4)
    return run(few, replace(watch.left(), time_limit_s=short), linear=False)


def _too_large(problem: DisseminationProblem, verb: str, most: int, what: str) -> TooLarge:
    size = f"{len(problem.chunks)} chunks, {len(problem.edges)} edges, {problem.steps} steps"
    return TooLarge(size, f"{verb} {most} {what}", "ask for fewer chunks or steps")


def _reachable(problem: DisseminationProblem) -> bool:
    """Whether the steps are enough to come from every root to its goals."""
    near = cache(lambda root: problem.distances([root]))
    return all(
        (d := near(chunk.root)[goal]) is not None and d <= problem.steps
        for chunk in problem.chunks
        for goal in chunk.goals
    )


def _variables(model: cp_model.CpModel, problem: DisseminationProblem, ports: EdgePorts) -> Vars:
    """The variables, one for each orbit and step at which they need not be 0."""
    send_of, hold_of = port_firsts(problem, ports), hold_firsts(problem)
    sends = port_times(problem, ports, send_of)
    if variable_count(problem, sends, hold_of) > MAX_VARIABLES:
        raise _too_large(problem, "make more than", MAX_VARIABLES, "variables")
    holds, many = _hold_times(problem, hold_of), len(ports)
    most, passing = problem.rounds - problem.steps + 1, ports.most(copied=True)
    return Vars(
        ports,
        {
            (one.chunk * many + port, s): model.new_int_var(0, passing[port], "")
            for one in sends
            for port, begin, end in zip(*(row.tolist() for row in one[1:]), strict=True)
            for s in range(begin, end)
        },
        {
            (c * problem.ranks + v, s): model.new_bool_var("")
            for (c, v), at in holds.items()
            for s in at
        },
        tuple(model.new_int_var(1, most, "") for _ in range(problem.steps)),
        send_of,
        hold_of,
    )


def _distances(problem: DisseminationProblem) -> Mapping[int, Distances]:
    """Of every chunk: steps from its root to each rank, and from each to the nearest goal."""
    near = cache(lambda root: problem.distances([root]))
    left = cache(lambda goals: problem.distances(goals, back=True))
    return {c: (near(one.root), left(one.goals)) for c, one in enumerate(problem.chunks)}


def _own(firsts: Firsts) -> list[tuple[int, int]]:
    """The pairs that are the first of their orbit."""
    numbers = np.arange(firsts.size).reshape(firsts.shape)
    return [(int(c), int(n)) for c, n in np.argwhere(firsts == numbers)]


def _hold_times(problem: DisseminationProblem, hold_of: Firsts) -> StepRanges:
    spans = _distances(problem)
    return {(c, v): spell(spans[c][0][v], spans[c][1][v], problem.steps) for c, v in _own(hold_of)}


def c1_held(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C1: a rank sends what it held before the step."""
    del problem
    most = found.ports.most(copied=True)
    for (number, s), x in found.send.items():
        c, port = divmod(number, len(found.ports))
        source = found.ports.sources[port]
        if source is not None:
            model.add(x <= most[port] * found.hold[int(found.hold_of[c, source]), s])


def c2_arrival(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C2: what is held is what was held before, and what arrived."""
    into = found.ports.arriving
    for (number, s), after in found.hold.items():
        c, v = divmod(number, problem.ranks)
        if v == problem.chunks[c].root:
            model.add(after == 1)
            continue
        terms = _sent(found, c, into[v], s - 1)
        before = found.hold.get((number, s - 1))
        terms += [] if before is None else [before]
        model.add(after == cp_model.LinearExpr.sum(terms))


def _sent(found: Vars, chunk: int, ports: Iterable[int], step: int) -> list[cp_model.IntVar]:
    """The x of a chunk at some ports in a step, but those that are left out."""
    sent = (found.send.get((int(found.send_of[chunk, port]), step)) for port in ports)
    return [x for x in sent if x is not None]


def c3_goal(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C3: at last every goal holds its chunk."""
    goals = {int(found.hold_of[c, v]) for c, one in enumerate(problem.chunks) for v in one.goals}
    for number in sorted(goals):
        model.add(found.hold[number, problem.steps] == 1)


def c4_capacity(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C4: what loads a capacity in a step fits into its rounds."""
    for rate, s, load in _loads(problem, found, range(len(problem.capacities))):
        model.add(load * rate.denominator <= rate.numerator * found.rounds[s])


def _loads(
    problem: DisseminationProblem, found: Vars, capacities: Iterable[int]
) -> Iterator[tuple[Fraction, int, cp_model.LinearExprT]]:
    """Of each capacity in each step: its bandwidth, the step, its load; what is alike once.

    Bandwidths are small fractions that let the same pass.
    """
    longest = problem.rounds - problem.steps + 1
    loading: Mapping[int, list[int]] = {k: [] for k in capacities}
    for port, loads in enumerate(found.ports.loads):
        for k in loads:
            if k in loading:
                loading[k].append(port)
    stated = set()
    for k, ports in loading.items():
        numbers, counts = np.unique(found.send_of[:, ports], return_counts=True)
        same = (problem.capacities[k], numbers.tobytes(), counts.tobytes())
        if same not in stated:
            stated.add(same)
            passed = np.array(found.ports.most(copied=True))[numbers % len(found.ports)]
            rate = small_rate(problem.capacities[k], longest, int((counts * passed).sum()))
            for s in range(problem.steps):
                rows = zip(numbers.tolist(), counts.tolist(), strict=True)
                sent = [(found.send[at, s], n) for at, n in rows if (at, s) in found.send]
                load = cp_model.LinearExpr.weighted_sum([x for x, _ in sent], [n for _, n in sent])
                yield rate, s, load


def c5_rounds(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C5: the steps take all rounds together."""
    model.add(cp_model.LinearExpr.sum(list(found.rounds)) == problem.rounds)


def c6_fullness(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C6: where all that can be carried is needed, nothing stays empty."""
    for rate, s, load in _loads(problem, found, sorted(full_capacities(problem))):
        model.add(load * rate.denominator >= rate.numerator * found.rounds[s])


def c7_decided(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C7: what is decided already."""
    known = [(one,) for one in (replace(d, there=not d.there) for d in problem.decided)]
    for wrong in (*known, *problem.excluded):
        every = [
            (found.hold.get((int(found.hold_of[one.chunk, one.rank]), one.steps)), one.there)
            for one in wrong
        ]
        if not any(held is None and there for held, there in every):  # too far away: it is not
            model.add_bool_or([~h if there else h for h, there in every if h is not None])


def c8_switches(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C8: what leaves for a switch arrives from it, at another block."""
    chunks = np.unique(found.send_of // len(found.ports)).tolist() if problem.edges else []
    for c, one, s in product(chunks, found.ports.switches, range(problem.steps)):
        left = cp_model.LinearExpr.sum(_sent(found, c, one.out, s))
        model.add(left == cp_model.LinearExpr.sum(_sent(found, c, one.into, s)))
        for block in one.blocks:
            if not found.ports.of_one_rank(block):
                inside = _sent(found, c, chain(*block), s)
                model.add(cp_model.LinearExpr.sum(inside) <= left)


def decode(
    problem: DisseminationProblem, found: Vars, solver: cp_model.CpSolver
) -> tuple[StepSends, ...]:
    """The steps of the solver's schedule, lifted to all messages of every orbit."""
    steps = []
    for s, rounds in enumerate(found.rounds):
        counts = np.zeros(found.send_of.size, dtype=np.int64)
        for (at, step), x in found.send.items():
            if step == s:
                counts[at] = solver.value(x)
        passed = counts[found.send_of]
        sent = ((c, e) for c in range(len(problem.chunks)) for e in found.ports.edges(passed[c]))
        steps.append(StepSends(solver.value(rounds), tuple(sent)))
    return tuple(steps)


# Capacities that a schedule has to use up, because it needs all that its rounds give.
# If all data must pass over some capacities, and together they carry just as much in all rounds,
# then each of them is full in every step.  That follows from the other constraints, by counting,
# which a solver without linear programs does not do.


def full_capacities(problem: DisseminationProblem) -> frozenset[int]:
    """The capacities that are full in every step of every schedule, as far as counting tells.

    Raises nothing: where more is needed than there is, the same capacities are given, and the
    problem has no schedule.
    """
    found: set[int] = set()
    for edges, messages in _needs(problem):
        found |= _filled(problem, edges, messages)
    return frozenset(found)


def _needs(problem: DisseminationProblem) -> Iterator[tuple[list[int], int]]:
    """Edges, and how many messages must at least go over them in all."""
    into = Counter(goal for chunk in problem.chunks for goal in chunk.goals if goal != chunk.root)
    out = Counter(chunk.root for chunk in problem.chunks if set(chunk.goals) - {chunk.root})
    for rank in range(problem.ranks):
        yield [e for e, edge in enumerate(problem.edges) if edge[1] == rank], into[rank]
        yield [e for e, edge in enumerate(problem.edges) if edge[0] == rank], out[rank]
    yield list(range(len(problem.edges))), fewest_messages(problem)


def fewest_messages(problem: DisseminationProblem) -> int:
    """Messages that every schedule has at least: a chunk comes to each goal, by all ranks between.

    Raises:
        ValueError: never for goals that can be reached.
    """
    near = cache(lambda root: problem.distances([root]))
    return sum(_fewest(chunk, near(chunk.root)) for chunk in problem.chunks)


def _fewest(chunk: ChunkRoute, near: tuple[int | None, ...]) -> int:
    """Of one chunk: it comes to each goal, and before to a rank at every smaller distance."""
    goals = set(chunk.goals) - {chunk.root}
    return max(len(goals), max((near[goal] or 0 for goal in goals), default=0))


def _filled(problem: DisseminationProblem, edges: Iterable[int], messages: int) -> set[int]:
    """The capacities that these edges alone load, if so many messages fill them all.

    Each edge must load one of them, or all edges as many.
    """
    inside, counts = set(edges), Counter[int]()
    outside = {k for e, edge in enumerate(problem.edges) if e not in inside for k in edge[2]}
    own = {k for e in inside for k in problem.edges[e][2]} - outside
    for e in inside:
        counts[len(own.intersection(problem.edges[e][2]))] += 1
    fewest = min(counts, default=0)
    room = sum(problem.capacities[k] for k in own) * problem.rounds
    return own if fewest and messages * fewest >= room else set()
