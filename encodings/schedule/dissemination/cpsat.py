"""Schedules of chunks that are copied, with CP-SAT: one Boolean for each orbit of messages.

Problem: a :class:`~p2smt.problems.schedule.DisseminationProblem`: k-synchronous schedules of
all-gather, broadcast, scatter, all-to-all and what else only copies (SCCL, PPoPP 2021).

Where the problem has symmetries, messages (and held chunks) that they take to each other share a
variable, and constraints that say the same are stated once: solving one orbit solves all.

Variables
    x[c, e, s]  Boolean: chunk c goes over edge e in step s
    h[c, v, s]  Boolean: rank v holds chunk c before step s, s = 0..S
    r[s]        rounds of step s, 1..R - S + 1

Constraints
    C1 held      x[c, e, s] implies h[c, source of e, s]
    C2 arrival   h[c, v, s + 1] is h[c, v, s] plus the x that arrive at v in step s: at most one
                 ever arrives
    C3 goal      h[c, v, S] for every goal v of c
    C4 capacity  the x that load a capacity in step s are at most its bandwidth times r[s]
    C5 rounds    the r sum up to R

Objective: none; any schedule will do.

A variable is left out where it must be 0: x where a chunk cannot be at the source yet, or from
the target on no longer reach a goal, h likewise.  The linear relaxation says little here and costs
much, so it is left out.  Chunks with the same root and goals are not put in an order.

Size: chunks x edges x steps Booleans, divided by the order of the group that the symmetries make.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ortools.sat.python import cp_model

from p2smt.encodings.run_cpsat import run
from p2smt.encodings.schedule.orbits import Pair, hold_orbits, send_orbits, spell
from p2smt.errors import TooLarge
from p2smt.problems.schedule import DisseminationProblem, StepSends
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

MAX_VARIABLES = 1_000_000
_SOLVER = "cpsat"


@dataclass(frozen=True, slots=True)
class Vars:
    """x and h by representative (chunk, edge or rank) and step; r by step.

    ``send_of`` and ``hold_of`` lead from every pair to its representative.
    """

    send: Mapping[tuple[Pair, int], cp_model.IntVar]
    hold: Mapping[tuple[Pair, int], cp_model.IntVar]
    rounds: tuple[cp_model.IntVar, ...]
    send_of: Mapping[Pair, Pair]
    hold_of: Mapping[Pair, Pair]


def any_schedule(
    problem: DisseminationProblem, limits: SearchLimits
) -> Result[tuple[StepSends, ...]]:
    """A schedule: FEASIBLE; INFEASIBLE: proved that there is none with these symmetries; UNKNOWN.

    Raises:
        TooLarge: more variables than MAX_VARIABLES.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    size = len(problem.chunks) * len(problem.edges) * problem.steps
    if size > MAX_VARIABLES * (1 + len(problem.symmetries)):
        raise TooLarge(
            f"{len(problem.chunks)} chunks, {len(problem.edges)} edges, {problem.steps} steps",
            f"make more than {MAX_VARIABLES} variables",
            "ask for fewer chunks or steps",
        )
    found = _variables(model, problem)
    if found is None:
        return Result(Status.INFEASIBLE, stats=SolveStats(_SOLVER, watch.elapsed_s(), calls=0))
    c1_held(model, problem, found)
    c2_arrival(model, problem, found)
    c3_goal(model, problem, found)
    c4_capacity(model, problem, found)
    c5_rounds(model, problem, found)
    solver, verdict = run(model, watch.left(), linear=False)
    counters = (("variables", len(found.send) + len(found.hold)),)
    stats = SolveStats(_SOLVER, watch.elapsed_s(), 1, counters)
    if verdict in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Result(Status.FEASIBLE, decode(found, solver), stats=stats)
    proved = verdict == cp_model.INFEASIBLE
    return Result(Status.INFEASIBLE if proved else Status.UNKNOWN, stats=stats)


def _variables(model: cp_model.CpModel, problem: DisseminationProblem) -> Vars | None:
    """The variables; None where some goal cannot be reached in the steps there are."""
    send_of = send_orbits(problem)
    hold_of = hold_orbits(problem)
    send: dict[tuple[Pair, int], cp_model.IntVar] = {}
    hold: dict[tuple[Pair, int], cp_model.IntVar] = {}
    for c, chunk in enumerate(problem.chunks):
        near, left = problem.distances([chunk.root]), problem.distances(chunk.goals, back=True)
        if any((d := near[goal]) is None or d > problem.steps for goal in chunk.goals):
            return None
        for v in range(problem.ranks):
            if hold_of[c, v] == (c, v):
                for s in spell(near[v], left[v], problem.steps):
                    hold[(c, v), s] = model.new_bool_var("")
        for e, (source, target, _) in enumerate(problem.edges):
            if send_of[c, e] == (c, e):
                leaving = spell(near[source], None if left[target] is None else 0, problem.steps)
                arriving = spell(near[target], left[target], problem.steps)
                for s in leaving:
                    if s + 1 in arriving and target != chunk.root:
                        send[(c, e), s] = model.new_bool_var("")
    most = problem.rounds - problem.steps + 1
    rounds = tuple(model.new_int_var(1, most, "") for _ in range(problem.steps))
    return Vars(send, hold, rounds, send_of, hold_of)


def _edge_ends(problem: DisseminationProblem) -> Mapping[int, list[int]]:
    """The edges that lead to each rank."""
    into = defaultdict(list)
    for e, (_, target, _) in enumerate(problem.edges):
        into[target].append(e)
    return into


def c1_held(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C1: a rank sends what it held before the step."""
    for ((c, e), s), x in found.send.items():
        held = found.hold[found.hold_of[c, problem.edges[e][0]], s]
        model.add_implication(x, held)


def c2_arrival(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C2: what is held is what was held before, and what arrived."""
    into = _edge_ends(problem)
    for ((c, v), s), after in found.hold.items():
        if v == problem.chunks[c].root:
            model.add(after == 1)
            continue
        sent = (found.send.get((found.send_of[c, e], s - 1)) for e in into[v])
        terms = [x for x in sent if x is not None]
        before = found.hold.get(((c, v), s - 1))
        terms += [] if before is None else [before]
        model.add(after == cp_model.LinearExpr.sum(terms))


def c3_goal(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C3: at last every goal holds its chunk."""
    for c, chunk in enumerate(problem.chunks):
        for v in chunk.goals:
            if found.hold_of[c, v] == (c, v):
                model.add(found.hold[(c, v), problem.steps] == 1)


def c4_capacity(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C4: what loads a capacity in a step fits into its rounds."""
    loading = defaultdict(list)
    for e, (_, _, loads) in enumerate(problem.edges):
        for k in loads:
            loading[k].append(e)
    stated = set()
    for k, edges in loading.items():
        counts = Counter(found.send_of[c, e] for c in range(len(problem.chunks)) for e in edges)
        same = (problem.capacities[k], frozenset(counts.items()))
        if same not in stated:
            stated.add(same)
            _one_capacity(model, problem, found, k, counts)


def _one_capacity(
    model: cp_model.CpModel,
    problem: DisseminationProblem,
    found: Vars,
    capacity: int,
    counts: Mapping[Pair, int],
) -> None:
    """A capacity in every step; ``counts``: how many messages of an orbit load it."""
    rate = problem.capacities[capacity]
    for s, rounds in enumerate(found.rounds):
        sent = [(found.send[pair, s], n) for pair, n in counts.items() if (pair, s) in found.send]
        weights = [n * rate.denominator for _, n in sent]
        load = cp_model.LinearExpr.weighted_sum([x for x, _ in sent], weights)
        model.add(load <= rate.numerator * rounds)


def c5_rounds(model: cp_model.CpModel, problem: DisseminationProblem, found: Vars) -> None:
    """C5: the steps take all rounds together."""
    model.add(cp_model.LinearExpr.sum(list(found.rounds)) == problem.rounds)


def decode(found: Vars, solver: cp_model.CpSolver) -> tuple[StepSends, ...]:
    """The steps of the solver's schedule, lifted to all messages of every orbit."""
    steps = []
    for s, rounds in enumerate(found.rounds):
        chosen = {pair for (pair, at), x in found.send.items() if at == s and solver.value(x)}
        sends = tuple(sorted(pair for pair, first in found.send_of.items() if first in chosen))
        steps.append(StepSends(solver.value(rounds), sends))
    return tuple(steps)
