"""Redistribution of an array in at most so many steps with CP-SAT.

Problem: a :class:`~p2smt.problems.redistribution.RedistributionProblem`: a layout for each layer 0
to T and a kind of step between them, so that what the steps cost is least.

Variables
    z[t, q, s]   Boolean: digit q has place s in layer t (a slot of a dimension's list, replicated
                 or partial)
    x[t, q, d]   Boolean: it is in the list of dimension d
    kind[t, m]   Boolean: step t is of kind m
    g[t, q]      Boolean: step t moves digit q
    turned[t]    Boolean: the devices of layer t have the destination's order
    packed[t]    Boolean: step t has a buffer for packing
    least[t]     ticks of the row of step t
    c[t]         ticks of step t

Constraints
    C1 place     a digit has one place
    C2 lists     a slot has one digit at most, and a list no gap
    C3 capacity  the shards of a dimension divide it
    C4 ends      the first layer is the source, the last one the destination
    C5 kinds     a step has one kind; NOTHING comes last; any other kind but TURN moves a digit
    C6 still     a digit is moved exactly if its place changes
    C7 travel    moved digits come from, and go to, where the kind says
    C8 apart     in an all-to-all no dimension both loses and gains
    C9 blocks    a permute leaves each dimension as many shards
    C10 order    the order of devices changes in a TURN
    C11 rows     kind, moved and sharding digits, order and packing are those of a row; c is at
                 least its ticks
    C12 packed   a gather or reduce-scatter without a buffer cuts the leading dimension only
    C13 exact    a step between these places costs at least so much
    C14 at most  the objective does not exceed its limit
    C15 borders  a permute over a border costs at least so much
    C16 merged   no two slices in a row; nor two permutes, if one is as cheap
    C17 outlook  before and after a layer c is at least what its counts of digits tell (follows from
                 the others)

Objective: the sum of c.  Of answers of least cost the first is found by more goals, one by one.

That digits leave and join the end of a list follows from C2 and C6: whoever stays keeps its slot.

Size: T x digits x slots Booleans, T tables of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python import cp_model

from p2smt.encodings.run_cpsat import bound_without_answer, proved_bound, run
from p2smt.problems.redistribution import (
    PARTIAL,
    REPLICATED,
    CostToGo,
    ExactMove,
    LevelCut,
    Move,
    Moves,
    Places,
    RedistributionProblem,
)
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "cpsat"


def optimal_redistribution(problem: RedistributionProblem, limits: SearchLimits) -> Result[Moves]:
    """The cheapest steps; ``bound`` is the proved lower bound in ticks.

    FEASIBLE with a bound that is the objective: only the tie-break is unfinished.
    The counter "objective" of the statistics is what the encoding says of its answer.
    """
    watch, model = StopWatch.start(limits), cp_model.CpModel()
    variables = _build(model, problem)
    model.minimize(sum(variables.ticks))
    left = watch.left()
    solver, verdict = run(model, left, in_ticks=True)
    if verdict not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        status = Status.INFEASIBLE if verdict == cp_model.INFEASIBLE else Status.UNKNOWN
        asked = status is Status.UNKNOWN and left.time_limit_s != 0
        bound = (bound_without_answer(solver) or 0) if asked else None
        return Result(status, None, bound, SolveStats(_SOLVER, watch.elapsed_s()))
    value = sum(solver.value(ticks) for ticks in variables.ticks)
    proved = verdict == cp_model.OPTIMAL
    bound = value if proved else max(0, proved_bound(solver))
    if proved:
        solver, proved = first_of_cheapest(model, problem, variables, solver, watch)
    stats = SolveStats(_SOLVER, watch.elapsed_s(), 1, (("objective", value),))
    answer = decode(problem, variables, solver)
    return Result(Status.OPTIMAL if proved else Status.FEASIBLE, answer, bound, stats)


def decode(problem: RedistributionProblem, variables: Vars, solver: cp_model.CpSolver) -> Moves:
    """The steps of the solver's solution, without those that do nothing."""
    found = []
    for t in range(problem.max_steps):
        kinds = variables.kinds[t]
        kind = next(move for move in Move if move in kinds and solver.value(kinds[move]))
        if kind is not Move.NOTHING:
            found.append((kind, _places(variables, solver, t + 1)))
    return tuple(found)


def _places(variables: Vars, solver: cp_model.CpSolver, t: int) -> Places:
    return tuple(
        next(place for place, here in digit.items() if solver.value(here))
        for digit in variables.places[t]
    )


def _build(model: cp_model.CpModel, problem: RedistributionProblem) -> Vars:
    v = new_vars(model, problem)
    c1_place(model, v)
    c2_lists(model, problem, v)
    c3_capacity(model, problem, v)
    c4_ends(model, problem, v)
    c5_kinds(model, v)
    c6_still(model, v)
    c7_travel(model, v)
    c8_apart(model, problem, v)
    c9_blocks(model, problem, v)
    c10_order(model, v)
    c11_rows(model, problem, v)
    if problem.packs:
        c12_packed(model, problem, v)
    for exact in problem.exact:
        c13_exact(model, v, exact)
    if problem.at_most is not None:
        c14_at_most(model, v, problem.at_most)
    for border in problem.borders:
        c15_borders(model, problem, v, border)
    c16_merged(model, problem, v)
    if problem.outlook is not None:
        c17_outlook(model, problem, v, problem.outlook)
    return v


# Variables.


_Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Vars:
    """z by layer, digit and place; x by layer, digit and dimension; the others by step.

    ``turned`` has an entry for each layer.
    """

    places: tuple[tuple[Mapping[_Place, cp_model.IntVar], ...], ...]
    lists: tuple[tuple[tuple[cp_model.IntVar, ...], ...], ...]
    kinds: tuple[Mapping[Move, cp_model.IntVar], ...]
    moved: tuple[tuple[cp_model.IntVar, ...], ...]
    turned: tuple[cp_model.IntVar, ...]
    packed: tuple[cp_model.IntVar, ...]
    least: tuple[cp_model.IntVar, ...]
    ticks: tuple[cp_model.IntVar, ...]


def new_vars(model: cp_model.CpModel, problem: RedistributionProblem) -> Vars:
    """The variables, x being the sums of its slots."""
    layers, steps = range(problem.max_steps + 1), range(problem.max_steps)
    digits = range(len(problem.sizes))
    places = tuple(
        tuple({s: model.new_bool_var(f"z{t},{q},{s}") for s in problem.places} for q in digits)
        for t in layers
    )
    lists = tuple(
        tuple(_lists(model, problem, places[t][q], f"x{t},{q}") for q in digits) for t in layers
    )
    used = [Move.NOTHING, *sorted({row.move for row in problem.rows})]
    most = max((row.price for row in problem.rows), default=0)
    most = max([most, *(exact.ticks for exact in problem.exact)])
    most = max([most, *(ticks for border in problem.borders for _, _, ticks in border.costs)])
    return Vars(
        places,
        lists,
        tuple({m: model.new_bool_var(f"kind{t},{m.name}") for m in used} for t in steps),
        tuple(tuple(model.new_bool_var(f"g{t},{q}") for q in digits) for t in steps),
        tuple(model.new_bool_var(f"turned{t}") for t in layers),
        tuple(model.new_bool_var(f"packed{t}") for t in steps),
        tuple(model.new_int_var(0, most, f"least{t}") for t in steps),
        tuple(model.new_int_var(0, most, f"c{t}") for t in steps),
    )


def _lists(
    model: cp_model.CpModel,
    problem: RedistributionProblem,
    places: Mapping[_Place, cp_model.IntVar],
    name: str,
) -> tuple[cp_model.IntVar, ...]:
    found = []
    for dim in range(problem.dims):
        here = model.new_bool_var(f"{name},{dim}")
        model.add(sum(z for place, z in places.items() if place[0] == dim) == here)
        found.append(here)
    return tuple(found)


# Layouts: C1 to C4.


def c1_place(model: cp_model.CpModel, v: Vars) -> None:
    """C1: exactly one place of a digit in each layer."""
    for layer in v.places:
        for digit in layer:
            model.add_exactly_one(digit.values())


def c2_lists(model: cp_model.CpModel, problem: RedistributionProblem, v: Vars) -> None:
    """C2: at most one digit a slot, and none in a slot after an empty one."""
    for layer in v.places:
        for dim, k in problem.places:
            if dim < 0:
                continue
            here = [digit[dim, k] for digit in layer]
            model.add_at_most_one(here)
            if k:
                model.add(sum(here) <= sum(digit[dim, k - 1] for digit in layer))


def c3_capacity(model: cp_model.CpModel, problem: RedistributionProblem, v: Vars) -> None:
    """C3: no prime has a larger exponent in the shards of a dimension than in its size."""
    for _, of_digits, of_dims in problem.factors():
        for layer in v.lists:
            for dim, most in enumerate(of_dims):
                held = [n * x[dim] for n, x in zip(of_digits, layer, strict=True) if n]
                model.add(sum(held) <= most)


def c4_ends(model: cp_model.CpModel, problem: RedistributionProblem, v: Vars) -> None:
    """C4: the places of the first and of the last layer, and their orders of devices."""
    for layer, wanted in ((v.places[0], problem.source), (v.places[-1], problem.target)):
        for digit, place in zip(layer, wanted, strict=True):
            model.add(digit[place] == 1)
    model.add(v.turned[0] == 0)
    model.add(v.turned[-1] == int(problem.turns))


# Steps: C5 to C10.


_SHARDING = None
_TRAVEL = {
    Move.SLICE: ((REPLICATED,), _SHARDING),
    Move.GATHER: (_SHARDING, (REPLICATED,)),
    Move.ALL_TO_ALL: (_SHARDING, _SHARDING),
    Move.REDUCE_SCATTER: ((PARTIAL,), _SHARDING),
    Move.ALL_REDUCE: ((PARTIAL,), (REPLICATED,)),
}
"""From where to where each kind takes digits; None: any list."""


def c5_kinds(model: cp_model.CpModel, v: Vars) -> None:
    """C5: one kind a step, nothing but NOTHING after NOTHING, and a digit that moves."""
    for t, kinds in enumerate(v.kinds):
        model.add_exactly_one(kinds.values())
        for move, chosen in kinds.items():
            if move is Move.NOTHING:
                model.add(sum(v.moved[t]) == 0).only_enforce_if(chosen)
            elif move is not Move.TURN:
                model.add_bool_or(v.moved[t]).only_enforce_if(chosen)
    for one, after in pairwise(v.kinds):
        model.add_implication(one[Move.NOTHING], after[Move.NOTHING])


def c6_still(model: cp_model.CpModel, v: Vars) -> None:
    """C6: z of both layers is equal where g is not; where it is, no place stays."""
    for t, moved in enumerate(v.moved):
        for q, goes in enumerate(moved):
            for place, before in v.places[t][q].items():
                after = v.places[t + 1][q][place]
                model.add_bool_or(goes, ~before, after)
                model.add_bool_or(goes, before, ~after)
                model.add_bool_or(~goes, ~before, ~after)


def c7_travel(model: cp_model.CpModel, v: Vars) -> None:
    """C7: what moves is before and after where the kind takes it; a permute leaves PARTIAL."""
    for t, q, move, chosen in _each(v):
        given = [~chosen, ~v.moved[t][q]]
        if move in _TRAVEL:
            for layer, where in zip((t, t + 1), _TRAVEL[move], strict=True):
                digit = v.places[layer][q]
                there = v.lists[layer][q] if where is _SHARDING else [digit[p] for p in where]
                model.add_bool_or(*given, *there)
        else:
            for layer in (t, t + 1):
                model.add_bool_or(*given, ~v.places[layer][q][PARTIAL])


def _each(v: Vars) -> Iterator[tuple[int, int, Move, cp_model.IntVar]]:
    """Each step, digit and kind that may move it."""
    for t, kinds in enumerate(v.kinds):
        for q in range(len(v.moved[t])):
            for move, chosen in kinds.items():
                if move is not Move.NOTHING:
                    yield t, q, move, chosen


def c8_apart(model: cp_model.CpModel, problem: RedistributionProblem, v: Vars) -> None:
    """C8: a dimension that loses in an all-to-all gains nothing."""
    for t, kinds in enumerate(v.kinds):
        if Move.ALL_TO_ALL not in kinds:
            continue
        for dim in range(problem.dims):
            loses = model.new_bool_var(f"loses{t},{dim}")
            for q, goes in enumerate(v.moved[t]):
                given = [~kinds[Move.ALL_TO_ALL], ~goes]
                model.add_bool_or(*given, ~v.lists[t][q][dim], loses)
                model.add_bool_or(*given, ~v.lists[t + 1][q][dim], ~loses)


def c9_blocks(model: cp_model.CpModel, problem: RedistributionProblem, v: Vars) -> None:
    """C9: in a permute the exponents of each prime in a dimension's shards stay."""
    for t, kinds in enumerate(v.kinds):
        for move, chosen in kinds.items():
            if not move.permutes:
                continue
            for _, of_digits, _ in problem.factors():
                for dim in range(problem.dims):
                    before, after = (
                        sum(n * x[dim] for n, x in zip(of_digits, v.lists[layer], strict=True))
                        for layer in (t, t + 1)
                    )
                    model.add(before == after).only_enforce_if(chosen)


def c10_order(model: cp_model.CpModel, v: Vars) -> None:
    """C10: a layer has the destination's order if the one before has, or a TURN led to it."""
    for t, kinds in enumerate(v.kinds):
        model.add(v.turned[t + 1] == v.turned[t] + kinds.get(Move.TURN, 0))


# Costs: C11 to C14, and C16.


def c11_rows(model: cp_model.CpModel, problem: RedistributionProblem, v: Vars) -> None:
    """C11: the columns of a step are a row of the table, or it does nothing at the destination.

    c is at least the ticks of the row.
    """
    done = [len(_target_sizes(problem, s)) for s in problem.size_classes]
    idle = [0 for _ in set(problem.classes)]
    nothing = (int(Move.NOTHING), *idle, *done, int(problem.turns), 0, 0)
    for t in range(problem.max_steps):
        rows = [nothing]
        rows += [
            (row.move, *row.moved, *row.sharding, row.turned, row.packed, row.price)
            for row in problem.rows
            if (row.later if t else row.first)
        ]
        model.add_allowed_assignments(_columns(model, problem, v, t), rows)
        model.add(v.ticks[t] >= v.least[t])


def _target_sizes(problem: RedistributionProblem, size: int) -> list[int]:
    """The digits of this size that shard at the destination."""
    pairs = enumerate(zip(problem.sizes, problem.target, strict=True))
    return [q for q, (own, (dim, _)) in pairs if own == size and dim >= 0]


def _columns(
    model: cp_model.CpModel, problem: RedistributionProblem, v: Vars, t: int
) -> list[cp_model.IntVar]:
    """Kind, moved digits by class, sharding ones by size, order, packing and ticks."""
    digits, kinds = len(problem.sizes), v.kinds[t]
    kind = model.new_int_var(0, max(Move), f"kind{t}")
    model.add(kind == sum(int(move) * chosen for move, chosen in kinds.items()))
    found = [kind]
    for one in sorted(set(problem.classes)):
        inside = [v.moved[t][q] for q in range(digits) if problem.classes[q] == one]
        found.append(_count(model, inside))
    for size in problem.size_classes:
        inside = [x for q in range(digits) if problem.sizes[q] == size for x in v.lists[t][q]]
        found.append(_count(model, inside))
    return [*found, v.turned[t], v.packed[t], v.least[t]]


def _count(model: cp_model.CpModel, inside: list[cp_model.IntVar]) -> cp_model.IntVar:
    found = model.new_int_var(0, len(inside), "count")
    model.add(found == sum(inside))
    return found


def c12_packed(model: cp_model.CpModel, problem: RedistributionProblem, v: Vars) -> None:
    """C12: without a buffer one dimension is cut, by digits in order, and those before it are 1.

    The dimension is cut in the smaller blocks: before a gather, after a reduce-scatter.
    """
    for t, kinds in enumerate(v.kinds):
        for move, small in ((Move.GATHER, t), (Move.REDUCE_SCATTER, t + 1)):
            if move in kinds:
                bare = [kinds[move], ~v.packed[t]]
                _leading(model, problem, v, t, small, bare)


def _leading(
    model: cp_model.CpModel,
    problem: RedistributionProblem,
    v: Vars,
    t: int,
    small: int,
    bare: Sequence[cp_model.LiteralT],
) -> None:
    cut = [model.new_bool_var(f"cut{t},{small},{dim}") for dim in range(problem.dims)]
    model.add_exactly_one(cut)
    for dim, here in enumerate(cut):
        for q, goes in enumerate(v.moved[t]):
            model.add_implication(goes, v.lists[small][q][dim]).only_enforce_if(*bare, here)
        for other in range(dim):
            _whole(model, problem, v, small, other, [*bare, here])
    _ascending(model, v, t, small, bare)


def _whole(
    model: cp_model.CpModel,
    problem: RedistributionProblem,
    v: Vars,
    layer: int,
    dim: int,
    given: Sequence[cp_model.LiteralT],
) -> None:
    """The local size of a dimension is 1."""
    size = problem.shape[dim]
    for prime, of_digits, of_dims in problem.factors():
        held = sum(n * x[dim] for n, x in zip(of_digits, v.lists[layer], strict=True))
        model.add(held == of_dims[dim]).only_enforce_if(*given)
        size //= prime ** of_dims[dim]
    if size > 1:
        model.add_bool_or([~one for one in given])


def _ascending(
    model: cp_model.CpModel, v: Vars, t: int, small: int, bare: Sequence[cp_model.LiteralT]
) -> None:
    """Of two moved digits the lower one comes first in the list."""
    digits = v.places[small]
    for q, low in enumerate(digits):
        for r in range(q + 1, len(digits)):
            both = [v.moved[t][q], v.moved[t][r], *bare]
            place = [
                sum(k * z for (dim, k), z in one.items() if dim >= 0) for one in (low, digits[r])
            ]
            model.add(place[0] < place[1]).only_enforce_if(*both)


def c13_exact(model: cp_model.CpModel, v: Vars, exact: ExactMove) -> None:
    """C13: whichever step leads between these places, its ticks are at least these."""
    for t, kinds in enumerate(v.kinds):
        if exact.move not in kinds or any(
            place not in digit
            for layer, places in ((t, exact.before), (t + 1, exact.after))
            for digit, place in zip(v.places[layer], places, strict=True)
        ):
            continue
        here = [
            v.places[layer][q][place]
            for layer, places in ((t, exact.before), (t + 1, exact.after))
            for q, place in enumerate(places)
        ]
        order = v.turned[t] if exact.turned else ~v.turned[t]
        model.add(v.ticks[t] >= exact.ticks).only_enforce_if(kinds[exact.move], order, *here)


def c14_at_most(model: cp_model.CpModel, v: Vars, ticks: int) -> None:
    """C14: the sum of c is at most so many ticks."""
    model.add(sum(v.ticks) <= ticks)


def c16_merged(model: cp_model.CpModel, problem: RedistributionProblem, v: Vars) -> None:
    """C16: a slice does not follow a slice, nor a permute a permute if they merge."""
    groups = [[Move.SLICE], *([[Move.PERMUTE, Move.TURN]] if problem.merges else [])]
    for one, after in pairwise(v.kinds):
        for group in groups:
            pairs = ((a, b) for a in group for b in group if a in one and b in after)
            for a, b in pairs:
                model.add_bool_or(~one[a], ~after[b])


# Permutes over borders: C15.


def c15_borders(
    model: cp_model.CpModel, problem: RedistributionProblem, v: Vars, border: LevelCut[int]
) -> None:
    """C15: a permute's ticks are at least those of its crossing and of the sharding digits."""
    digits, whole = len(problem.sizes), len(problem.sizes) + 1
    most = max(ticks for _, _, ticks in border.costs)
    rows = [(crossing, *sharding, ticks) for crossing, sharding, ticks in border.costs]
    outside = [_outside(model, problem, v, border, t) for t in range(problem.max_steps + 1)]
    for t, kinds in enumerate(v.kinds):
        if Move.PERMUTE not in kinds:
            continue
        here = [kinds[Move.PERMUTE], v.turned[t] if border.turned else ~v.turned[t]]
        crossing = model.new_int_var(0, whole, f"crossing{t}")
        least = model.new_int_var(0, most, f"least{t}")
        model.add_allowed_assignments([crossing, *_sharding(model, problem, v, t), least], rows)
        model.add(v.ticks[t] >= least).only_enforce_if(*here)
        for one, other in ((outside[t], outside[t + 1]), (outside[t + 1], outside[t])):
            left = []
            for slot, before in one.items():
                gone = model.new_bool_var("gone")
                model.add_bool_or(~before, other[slot], gone)
                left.append(gone)
            model.add(crossing >= sum(left)).only_enforce_if(*here)
        changes = model.new_bool_var(f"changes{t}")
        model.add(crossing == whole).only_enforce_if(*here, changes)
        for q in (q for q in range(digits) if q in border.digits):
            for slot, after in outside[t + 1].items():
                stays = v.places[t + 1][q][slot]
                model.add_bool_or(~v.places[t][q][slot], ~after, stays, changes)


def _outside(
    model: cp_model.CpModel, problem: RedistributionProblem, v: Vars, border: LevelCut[int], t: int
) -> dict[tuple[int, int], cp_model.IntVar]:
    """Whether each slot has a digit of the border."""
    found = {}
    for slot in problem.places:
        if slot[0] >= 0:
            found[slot] = model.new_bool_var(f"outside{t},{slot}")
            model.add(found[slot] == sum(v.places[t][q][slot] for q in border.digits))
    return found


def _sharding(
    model: cp_model.CpModel, problem: RedistributionProblem, v: Vars, t: int
) -> list[cp_model.IntVar]:
    """Digits that shard, by size."""
    found = []
    for size in problem.size_classes:
        digits = [q for q, own in enumerate(problem.sizes) if own == size]
        count = model.new_int_var(0, len(digits), "sharding")
        model.add(count == sum(x for q in digits for x in v.lists[t][q]))
        found.append(count)
    return found


# What follows from counts: C17.


def c17_outlook(
    model: cp_model.CpModel, problem: RedistributionProblem, v: Vars, outlook: CostToGo
) -> None:
    """C17: the counts of a layer are a row; the sums of c before and after are at least its."""
    limit = problem.at_most
    rows = [row for row in outlook.rows if limit is None or row[-2] + row[-1] <= limit]
    most = max((max(row[-2:]) for row in rows), default=0)
    for t in range(problem.max_steps + 1):
        before = model.new_int_var(0, most, f"before{t}")
        after = model.new_int_var(0, most, f"after{t}")
        columns = _counts(model, v, outlook, t)
        model.add_allowed_assignments([*columns, before, after], rows)
        model.add(sum(v.ticks[:t]) >= before)
        model.add(sum(v.ticks[t:]) >= after)


def _counts(model: cp_model.CpModel, v: Vars, outlook: CostToGo, t: int) -> list[cp_model.IntVar]:
    """The digits of each role in each bin."""
    found = []
    for role in outlook.roles:
        for bin_ in outlook.bins:
            count = model.new_int_var(0, len(role), "role")
            if bin_ == (PARTIAL[0],):
                model.add(count == sum(v.places[t][q][PARTIAL] for q in role))
            else:
                model.add(count == sum(v.lists[t][q][dim] for q in role for dim in bin_))
            found.append(count)
    return found


# The first of the cheapest answers, by the same model.
# One goal after the other is minimised and then held: the number of steps, and for each layer the
# places of its digits, several digits at a time as one number.


MAX_NUMBER = 2**40
"""Numbers of places stay below this, so that sums of them are exact in the solver."""


def first_of_cheapest(
    model: cp_model.CpModel,
    problem: RedistributionProblem,
    v: Vars,
    found: cp_model.CpSolver,
    watch: StopWatch,
) -> tuple[cp_model.CpSolver, bool]:
    """The solver that holds the first answer as cheap as what is found; whether it is proved."""
    model.add(sum(v.ticks) <= sum(found.value(ticks) for ticks in v.ticks))
    for goal in _goals(problem, v):
        _hint(model, found)
        model.minimize(goal)
        solver, verdict = run(model, watch.left())
        if verdict in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            found = solver
        if verdict != cp_model.OPTIMAL:
            return found, False
        model.add(goal == found.value(goal))
    return found, True


def _goals(problem: RedistributionProblem, v: Vars) -> Iterator[cp_model.LinearExpr]:
    yield cp_model.LinearExpr.sum([~kinds[Move.NOTHING] for kinds in v.kinds])
    base, chunk = len(problem.places), 1
    while base ** (chunk + 1) < MAX_NUMBER:
        chunk += 1
    for layer in v.places[1:-1]:
        for start in range(0, len(layer), chunk):
            terms = []
            for weight, digit in enumerate(reversed(layer[start : start + chunk])):
                for number, place in enumerate(problem.places):
                    terms.append(number * base**weight * digit[place])
            yield cp_model.LinearExpr.sum(terms)


def _hint(model: cp_model.CpModel, found: cp_model.CpSolver) -> None:
    """Begin with the answer that is known."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    for index, value in enumerate(found.response_proto.solution):
        model.add_hint(model.get_int_var_from_proto_index(index), value)
