"""Prices that prove how many rounds a chunk takes, with GLOP: a linear program on orbits.

Problem: a :class:`~p2smt.problems.flow.FlowProblem`: the dual of the flows that a schedule,
averaged over its chunks and over the symmetries, is.  So prices that symmetries keep are enough,
and the bound holds for schedules that they do not keep, and for every number of chunks.

Variables, all continuous; the step s is 0..S - 1, or there is one for all, without times
    y[k, s]     at least 0: the price of a round of capacity k in step s; an edge costs in a step
                what the capacities that it loads cost together
    w[p, e, s]  at least 0: the share of way p in the cost of edge e; ways of groups with one pair
                pay all
    z[x]        at least 0: the price of a message over crossing x
    d[p, v, t]  at least 0: no more than the cheapest way of p from its source to rank v by time t

Constraints
    C1 unit      in every step the capacities together, bandwidth times y, cost 1
    C2 split     the shares of a group in an edge, and the crossings it is in, cost what it costs
                 at most
    C3 distance  d grows along an edge in a step by its share at most
    C4 waiting   d does not grow from one time to the next

Objective: maximise the d of all ways at their targets at last, and the z times their messages.

The solver counts bandwidths in parts of the largest one, and none as less than a thousand
millionth of it, so that its tolerances fit every unit: prices of what is slower are too low, and
prove less than they could, once they are made exact.

d is left out where the rank cannot be reached yet, or reaches no target any more, and w where it
lies between such.

Size: ways x edges x steps variables and constraints, divided by the order of the group that the
symmetries make; a million and more is refused.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from ortools.linear_solver.python import model_builder_helper as linear

from p2smt.encodings.run_glop import SOLVER, Model, run
from p2smt.errors import OutOfTimeError, TooLarge
from p2smt.problems.flow import FlowOrbits, FlowPrices, FlowProblem, FlowWay, flow_orbits
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch, timely

MAX_VARIABLES = 1_000_000
_TINY = 1e-12
_SLOWEST = 1e-9
"""Of the largest bandwidth: what is slower counts as that."""
_PARAMETERS = "solve_dual_problem: ALWAYS_DO"  # the flows themselves, which are easier to start at
_Terms = Iterable[tuple[int, float]]
_Row = list[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Vars:
    """Numbers of variables: y by (capacity, step), w by (way * edges + edge, step), z by crossing,
    d by (way * ranks + rank, time); each by the least of its orbit.

    ``layers``: the (step, time before, time after) of every step.
    """

    price: Mapping[tuple[int, int], int]
    share: Mapping[tuple[int, int], int]
    crossing: tuple[int, ...]
    distance: Mapping[tuple[int, int], int]
    layers: tuple[tuple[int, int, int], ...]
    orbits: FlowOrbits


def best_prices(problem: FlowProblem, limits: SearchLimits) -> Result[FlowPrices]:
    """The prices of the greatest bound: OPTIMAL; INFEASIBLE: some way is too long; UNKNOWN.

    Raises:
        TooLarge: more variables than MAX_VARIABLES.
    """
    watch = StopWatch.start(limits)
    model, orbits = Model(), flow_orbits(problem)
    if len(set(orbits.edges)) * (problem.steps or 1) > MAX_VARIABLES:
        given = f"{len(orbits.ways)} ways, {len(problem.edges)} edges, {problem.steps or 1} steps"
        raise TooLarge(given, f"make more than {MAX_VARIABLES} variables")
    try:
        found = _variables(model, problem, orbits, watch)
        if found is None:
            return Result(Status.INFEASIBLE, stats=SolveStats(SOLVER, watch.elapsed_s(), calls=0))
        c1_unit(model, problem, found)
        c2_split(model, problem, found, watch)
        c3_distance(model, problem, found, watch)
    except OutOfTimeError:
        return Result(Status.UNKNOWN, stats=SolveStats(SOLVER, watch.elapsed_s(), calls=0))
    c4_waiting(model, problem, found)
    _objective(model, problem, found)
    solver = run(model, watch.left(), _PARAMETERS)
    sizes = (("variables", model.num_variables()), ("constraints", model.num_constraints()))
    stats = SolveStats(SOLVER, watch.elapsed_s(), 1, sizes)
    if solver is None:
        return Result(Status.UNKNOWN, stats=stats)
    return Result(Status.OPTIMAL, decode(problem, found, solver), stats=stats)


def _variables(
    model: Model,
    problem: FlowProblem,
    orbits: FlowOrbits,
    watch: StopWatch | None = None,
) -> Vars | None:
    """The variables; None where some way needs more steps than there are."""
    steps = problem.steps
    layers = ((0, 0, 0),) if steps is None else tuple((s, s, s + 1) for s in range(steps))
    price = {
        (k, s): _variable(model)
        for k, least in enumerate(orbits.capacities)
        if k == least
        for s, _, _ in layers
    }
    distance: dict[tuple[int, int], int] = {}
    share: dict[tuple[int, int], int] = {}
    for p, way in enumerate(orbits.ways):
        spells = _spells(problem, way)
        if spells is None:
            return None
        for v, spell in enumerate(spells):
            n = p * problem.ranks + v
            if orbits.places[n] == n and v != way.source:
                distance.update({(n, t): _variable(model) for t in spell})
        for e, (source, target, _) in enumerate(timely(problem.edges, watch)):
            n = p * len(problem.edges) + e
            if way.group >= 0 and orbits.edges[n] == n and target != way.source:
                for s, before, after in layers:
                    if before in spells[source] and after in spells[target]:
                        share[n, s] = _variable(model)
    crossing = tuple(_variable(model) for _ in problem.crossings)
    return Vars(price, share, crossing, distance, layers, orbits)


def _variable(model: Model) -> int:
    """A variable of 0 or more."""
    number = model.add_var()
    model.set_var_lower_bound(number, 0.0)
    return number


def _spells(problem: FlowProblem, way: FlowWay) -> list[range] | None:
    """The times at which each rank can be on a way; None: some target is too far."""
    near, steps = problem.distances(way.source), problem.steps
    most = problem.ranks if steps is None else steps
    if any((d := near[t]) is None or d > most for t in way.targets):
        return None
    backs = [problem.distances(t, back=True) for t in way.targets]
    found = []
    for v, first in enumerate(near):
        lefts = [d for back in backs if (d := back[v]) is not None]
        if first is None or not lefts:
            found.append(range(0))
        else:
            found.append(range(1) if steps is None else range(first, steps - min(lefts) + 1))
    return found


def _add_row(model: Model, terms: _Terms, low: float, high: float) -> None:
    """A constraint: the sum of terms lies between two numbers."""
    row, total = model.add_linear_constraint(), Counter[int]()
    for number, factor in terms:
        total[number] += factor  # type: ignore[assignment]
    for number, factor in total.items():
        model.add_term_to_constraint(row, number, factor)
    model.set_constraint_lower_bound(row, low)
    model.set_constraint_upper_bound(row, high)


def _cost(problem: FlowProblem, found: Vars, edge: int, step: int, factor: float) -> _Row:
    """What an edge costs in a step."""
    least = found.orbits.capacities
    return [(found.price[least[k], step], factor) for k in problem.edges[edge][2]]


def _crossed(problem: FlowProblem, found: Vars) -> Mapping[int, list[int]]:
    """The prices of the crossings that each edge is in."""
    prices = defaultdict(list)
    for crossing, z in zip(problem.crossings, found.crossing, strict=True):
        for e in crossing.edges:
            prices[e].append(z)
    return prices


def c1_unit(model: Model, problem: FlowProblem, found: Vars) -> None:
    """C1: a round of everything costs 1 in every step."""
    largest = max(problem.capacities, default=Fraction(1))
    rates = [max(_SLOWEST, float(rate / largest)) for rate in problem.capacities]
    for s, _, _ in found.layers:
        terms = [
            (found.price[least, s], rates[k]) for k, least in enumerate(found.orbits.capacities)
        ]
        _add_row(model, terms, 1.0, 1.0)


def c2_split(
    model: Model,
    problem: FlowProblem,
    found: Vars,
    watch: StopWatch | None = None,
) -> None:
    """C2: what an edge costs is split among the ways of a group, after its crossings."""
    edges, crossed = len(problem.edges), _crossed(problem, found)
    members = defaultdict(list)
    for p, way in enumerate(found.orbits.ways):
        members[way.group].append(p)
    rows = {divmod(n, edges) for n in found.orbits.groups}
    rows = {(g, e) for g, e in rows if g in members}
    rows |= {(-1, e) for e in crossed}
    for g, e in timely(sorted(rows), watch):
        ways = members[g] if g >= 0 else []
        numbers = [found.orbits.edges[p * edges + e] for p in ways]
        for s, _, _ in found.layers:
            parts = [found.share[n, s] for n in numbers if (n, s) in found.share]
            parts += crossed.get(e, [])
            if parts:
                terms = [(v, 1.0) for v in parts] + _cost(problem, found, e, s, -1.0)
                _add_row(model, terms, -inf, 0.0)


def c3_distance(
    model: Model,
    problem: FlowProblem,
    found: Vars,
    watch: StopWatch | None = None,
) -> None:
    """C3: along an edge a way's distance grows by its share of what the edge costs."""
    orbits, edges, crossed = found.orbits, len(problem.edges), _crossed(problem, found)
    numbers = ((p, e) for p in range(len(orbits.ways)) for e in range(edges))
    for p, e in timely(numbers, watch):
        way, (source, target, _) = orbits.ways[p], problem.edges[e]
        n = p * edges + e
        if orbits.edges[n] != n or target == way.source:
            continue
        u, v = (orbits.places[p * problem.ranks + at] for at in (source, target))
        for s, before, after in found.layers:
            if (v, after) not in found.distance:
                continue
            if source != way.source and (u, before) not in found.distance:
                continue
            if way.group >= 0:
                share = found.share.get((n, s))
                paid = [] if share is None else [(share, -1.0)]
            else:
                paid = _cost(problem, found, e, s, -1.0)
                paid += [(z, 1.0) for z in crossed.get(e, [])]
            start = [] if source == way.source else [(found.distance[u, before], -1.0)]
            _add_row(model, [(found.distance[v, after], 1.0), *start, *paid], -inf, 0.0)


def c4_waiting(model: Model, problem: FlowProblem, found: Vars) -> None:
    """C4: who waits is no farther away."""
    if problem.steps is None:
        return
    for (n, t), later in found.distance.items():
        if (n, t - 1) in found.distance:
            _add_row(model, [(later, 1.0), (found.distance[n, t - 1], -1.0)], -inf, 0.0)


def _objective(model: Model, problem: FlowProblem, found: Vars) -> None:
    last, total = problem.steps or 0, Counter[int]()
    for p, way in enumerate(found.orbits.ways):
        for t in way.targets:
            total[found.distance[found.orbits.places[p * problem.ranks + t], last]] += 1
    for crossing, z in zip(problem.crossings, found.crossing, strict=True):
        total[z] += crossing.messages
    for number, factor in total.items():
        model.set_var_objective_coefficient(number, float(factor))
    model.set_maximize(True)


def decode(problem: FlowProblem, found: Vars, solver: linear.ModelSolverHelper) -> FlowPrices:
    """The prices of an optimum, in units again."""
    edges = len(found.orbits.edges) // max(1, len(found.orbits.ways))
    largest = float(max(problem.capacities, default=Fraction(1)))
    values = solver.variable_values()
    return FlowPrices(
        solver.objective_value() / largest,
        tuple((at, values[n] / largest) for at, n in found.price.items() if values[n] > _TINY),
        tuple(
            ((*divmod(n, edges), s), values[number] / largest)
            for (n, s), number in found.share.items()
            if values[number] > _TINY
        ),
        tuple((x, values[n] / largest) for x, n in enumerate(found.crossing) if values[n] > _TINY),
    )
