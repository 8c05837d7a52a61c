"""Redistribution of an array in at most so many steps with z3: holds CP-SAT to its answers.

Problem: a :class:`~p2smt.problems.redistribution.RedistributionProblem`: a layout for each layer 0
to T and a kind of step between them, so that what the steps cost is least.

Variables
    dim[t, q]    where digit q is in layer t: a dimension, -1 (replicated) or -2 (partial)
    pos[t, q]    its position in the list of the dimension, 0 elsewhere
    kind[t]      the kind of step t, an integer
    turned[t]    Boolean: the devices of layer t have the destination's order
    packed[t]    Boolean: step t has a buffer for packing
    c[t]         ticks of step t

Constraints
    C1 place     a digit is in a dimension's list or in none
    C2 lists     no two digits have one position, and a list has no gap
    C3 capacity  the shards of a dimension divide it
    C4 ends      the first layer is the source, the last one the destination
    C5 kinds     NOTHING comes last and moves no digit; any other kind but TURN moves one
    C6 travel    moved digits come from, and go to, where the kind says
    C7 apart     in an all-to-all no dimension both loses and gains
    C8 blocks    a permute leaves each dimension as many shards
    C9 order     the order of devices changes in a TURN
    C10 rows     kind, moved and sharding digits, order and packing are those of a row; c is at
                 least its ticks
    C11 packed   a gather or reduce-scatter without a buffer cuts the leading dimension only
    C12 exact    a step between these places costs at least so much
    C13 at most  the objective does not exceed its limit
    C14 borders  a permute over a border costs at least so much
    C15 merged   no two slices in a row; nor two permutes, if one is as cheap

Objective: the sum of c, bisected by C13; the lower end is what the failures prove.  Of answers of
least cost the first is found place by place.

Size: 2 T x digits integers, T disjunctions of the rows.  It is meant for the tiniest meshes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import z3

from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.problems.redistribution import (
    PARTIAL,
    REPLICATED,
    ExactMove,
    LevelCut,
    Move,
    Moves,
    Places,
    RedistributionProblem,
)
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "z3"
_Found = tuple[int, Moves]


def optimal_redistribution(problem: RedistributionProblem, limits: SearchLimits) -> Result[Moves]:
    """The cheapest steps; ``bound`` is the proved lower bound in ticks.

    FEASIBLE with a bound that is the objective: only the tie-break is unfinished.
    The counter "objective" of the statistics is what the encoding says of its answer.
    """
    watch, solver = StopWatch.start(limits), new_solver(limits.seed)
    v = _build(solver, problem)
    low, best, calls = 0, None, 0
    try:
        while best is None or low < best[0]:
            middle = None if best is None else (low + best[0]) // 2
            calls += 1
            found = _at_most(solver, v, middle, watch)
            if found is not None:
                best = found
            elif middle is None:
                return Result(Status.INFEASIBLE, stats=_stats(watch, calls, ()))
            else:
                low = middle + 1
        best = best[0], _first(solver, problem, v, best[0], watch)
        status = Status.OPTIMAL
    except OutOfTimeError:
        status = Status.UNKNOWN if best is None else Status.FEASIBLE
    if best is None:
        return Result(status, stats=_stats(watch, calls, ()))
    return Result(status, best[1], low, _stats(watch, calls, (("objective", best[0]),)))


def decode(v: Vars, model: z3.ModelRef) -> Moves:
    """The steps of a model, without those that do nothing."""

    def value(term: z3.ArithRef) -> int:
        return int(model.eval(term, model_completion=True).as_long())

    found = []
    for t, kind in enumerate(v.kinds):
        move = Move(value(kind))
        if move is not Move.NOTHING:
            pairs = zip(v.dims[t + 1], v.positions[t + 1], strict=True)
            found.append((move, tuple((value(dim), value(place)) for dim, place in pairs)))
    return tuple(found)


def _build(solver: z3.Solver, problem: RedistributionProblem) -> Vars:
    v = new_vars(problem)
    c1_place(solver, problem, v)
    c2_lists(solver, v)
    c3_capacity(solver, problem, v)
    c4_ends(solver, problem, v)
    c5_kinds(solver, v)
    c6_travel(solver, v)
    c7_apart(solver, v)
    c8_blocks(solver, problem, v)
    c9_order(solver, v)
    c10_rows(solver, problem, v)
    if problem.packs:
        c11_packed(solver, problem, v)
    for exact in problem.exact:
        c12_exact(solver, v, exact)
    if problem.at_most is not None:
        c13_at_most(solver, v, problem.at_most)
    for border in problem.borders:
        c14_borders(solver, problem, v, border)
    c15_merged(solver, problem, v)
    return v


def _at_most(solver: z3.Solver, v: Vars, ticks: int | None, watch: StopWatch) -> _Found | None:
    """An answer of at most so many ticks with its own; None: there is none."""
    solver.push()
    try:
        if ticks is not None:
            c13_at_most(solver, v, ticks)
        model = solution(solver, watch)
    finally:
        solver.pop()
    if model is None:
        return None
    cost = sum(model.eval(c, model_completion=True).as_long() for c in v.ticks)
    return cost, decode(v, model)


def _first(
    solver: z3.Solver, problem: RedistributionProblem, v: Vars, ticks: int, watch: StopWatch
) -> Moves:
    """The first of the answers of so many ticks: fewest steps, then least places, in turn."""
    solver.push()
    try:
        c13_at_most(solver, v, ticks)
        for steps in range(problem.max_steps + 1):
            if _holds(solver, [kind == Move.NOTHING for kind in v.kinds[steps:]], watch):
                break
        for dims, positions in zip(v.dims[1:], v.positions[1:], strict=True):
            for dim, place in zip(dims, positions, strict=True):
                for wanted in problem.places:
                    if _holds(solver, [dim == wanted[0], place == wanted[1]], watch):
                        break
        model = solution(solver, watch)
    finally:
        solver.pop()
    assert model is not None  # what holds was added only where it can
    return decode(v, model)


def _holds(solver: z3.Solver, terms: list[z3.BoolRef], watch: StopWatch) -> bool:
    """Add the terms if they can hold."""
    solver.push()
    solver.add(*terms)
    found = solution(solver, watch) is not None
    solver.pop()
    if found:
        solver.add(*terms)
    return found


def _stats(watch: StopWatch, calls: int, counters: tuple[tuple[str, int], ...]) -> SolveStats:
    return SolveStats(_SOLVER, watch.elapsed_s(), calls, counters)


# Layouts and steps: C1 to C9.


_SHARDS = "shards"
_TRAVEL: Mapping[Move, tuple[str | int, str | int]] = {
    Move.SLICE: (REPLICATED[0], _SHARDS),
    Move.GATHER: (_SHARDS, REPLICATED[0]),
    Move.ALL_TO_ALL: (_SHARDS, _SHARDS),
    Move.REDUCE_SCATTER: (PARTIAL[0], _SHARDS),
    Move.ALL_REDUCE: (PARTIAL[0], REPLICATED[0]),
}
"""From where to where each kind takes digits."""


@dataclass(frozen=True, slots=True)
class Vars:
    """dim, pos and turned by layer; the others by step."""

    dims: tuple[tuple[z3.ArithRef, ...], ...]
    positions: tuple[tuple[z3.ArithRef, ...], ...]
    turned: tuple[z3.BoolRef, ...]
    kinds: tuple[z3.ArithRef, ...]
    packed: tuple[z3.BoolRef, ...]
    ticks: tuple[z3.ArithRef, ...]

    def moved(self, t: int, q: int) -> z3.BoolRef:
        """Whether step t moves digit q."""
        return z3.Or(
            self.dims[t][q] != self.dims[t + 1][q], self.positions[t][q] != self.positions[t + 1][q]
        )


def new_vars(problem: RedistributionProblem) -> Vars:
    """The variables."""
    layers, steps = range(problem.max_steps + 1), range(problem.max_steps)
    digits = range(len(problem.sizes))
    return Vars(
        tuple(tuple(z3.Int(f"dim{t},{q}") for q in digits) for t in layers),
        tuple(tuple(z3.Int(f"pos{t},{q}") for q in digits) for t in layers),
        tuple(z3.Bool(f"turned{t}") for t in layers),
        tuple(z3.Int(f"kind{t}") for t in steps),
        tuple(z3.Bool(f"packed{t}") for t in steps),
        tuple(z3.Int(f"c{t}") for t in steps),
    )


def c1_place(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C1: dim is one of the dimensions, or -1 or -2; only a list has positions."""
    for dims, positions in zip(v.dims, v.positions, strict=True):
        for dim, place in zip(dims, positions, strict=True):
            solver.add(PARTIAL[0] <= dim, dim < problem.dims, place >= 0)
            solver.add(z3.Implies(dim < 0, place == 0))


def c2_lists(solver: z3.Solver, v: Vars) -> None:
    """C2: positions of a list differ, and each is less than its length."""
    for dims, positions in zip(v.dims, v.positions, strict=True):
        digits = list(zip(dims, positions, strict=True))
        for (one, k), (other, m) in combinations(digits, 2):
            solver.add(z3.Or(one < 0, one != other, k != m))
        for dim, place in digits:
            length = z3.Sum([z3.If(other == dim, 1, 0) for other in dims])
            solver.add(z3.Or(dim < 0, place < length))


def c3_capacity(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C3: no prime has a larger exponent in the shards of a dimension than in its size."""
    for _, of_digits, of_dims in problem.factors():
        for dims in v.dims:
            for dim, most in enumerate(of_dims):
                solver.add(exponent(dims, of_digits, dim) <= most)


def exponent(dims: tuple[z3.ArithRef, ...], of_digits: tuple[int, ...], dim: int) -> z3.ArithRef:
    """The exponent of a prime in the shards of a dimension."""
    return z3.Sum([z3.If(d == dim, n, 0) for d, n in zip(dims, of_digits, strict=True)])


def c4_ends(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C4: the places of the first and of the last layer, and their orders of devices."""
    for t, wanted in ((0, problem.source), (-1, problem.target)):
        for dim, place, (at, k) in zip(v.dims[t], v.positions[t], wanted, strict=True):
            solver.add(dim == at, place == k)
    solver.add(z3.Not(v.turned[0]), v.turned[-1] == problem.turns)


def c5_kinds(solver: z3.Solver, v: Vars) -> None:
    """C5: nothing but NOTHING after NOTHING; which digits a kind may leave alone."""
    for t, kind in enumerate(v.kinds):
        solver.add(min(Move) <= kind, kind <= max(Move))
        some = z3.Or([v.moved(t, q) for q in range(len(v.dims[t]))])
        solver.add(z3.Implies(kind == Move.NOTHING, z3.Not(some)))
        solver.add(z3.Or(kind == Move.NOTHING, kind == Move.TURN, some))
    for one, after in pairwise(v.kinds):
        solver.add(z3.Implies(one == Move.NOTHING, after == Move.NOTHING))


def c6_travel(solver: z3.Solver, v: Vars) -> None:
    """C6: what moves is before and after where the kind takes it; a permute leaves PARTIAL."""
    for t, kind in enumerate(v.kinds):
        for q, (before, after) in enumerate(zip(v.dims[t], v.dims[t + 1], strict=True)):
            moved = v.moved(t, q)
            for move, (source, target) in _TRAVEL.items():
                there = z3.And(_is(before, source), _is(after, target))
                solver.add(z3.Implies(z3.And(kind == move, moved), there))
            whole = z3.And(before != PARTIAL[0], after != PARTIAL[0])
            solver.add(z3.Implies(z3.And(permutes(kind), moved), whole))


def _is(dim: z3.ArithRef, where: str | int) -> z3.BoolRef:
    return dim >= 0 if where == _SHARDS else dim == where


def permutes(kind: z3.ArithRef) -> z3.BoolRef:
    """Whether whole blocks change places."""
    return z3.Or(kind == Move.PERMUTE, kind == Move.TURN)


def c7_apart(solver: z3.Solver, v: Vars) -> None:
    """C7: of two moved digits, none joins the dimension that the other leaves."""
    for t, kind in enumerate(v.kinds):
        digits = range(len(v.dims[t]))
        for q in digits:
            for r in digits:
                both = z3.And(kind == Move.ALL_TO_ALL, v.moved(t, q), v.moved(t, r))
                solver.add(z3.Implies(both, v.dims[t][q] != v.dims[t + 1][r]))


def c8_blocks(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C8: in a permute the exponents of each prime in a dimension's shards stay."""
    for t, kind in enumerate(v.kinds):
        for _, of_digits, _ in problem.factors():
            for dim in range(problem.dims):
                before, after = (exponent(v.dims[t + i], of_digits, dim) for i in (0, 1))
                solver.add(z3.Implies(permutes(kind), before == after))


def c9_order(solver: z3.Solver, v: Vars) -> None:
    """C9: a layer has the destination's order if the one before has, or a TURN led to it."""
    for t, kind in enumerate(v.kinds):
        turn = kind == Move.TURN
        solver.add(v.turned[t + 1] == z3.Or(v.turned[t], turn))
        solver.add(z3.Implies(turn, z3.Not(v.turned[t])))


# Costs: C10 to C15.


def c10_rows(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C10: the columns of a step are those of a row, c at least its ticks; or it does nothing."""
    for t, kind in enumerate(v.kinds):
        moved = _numbers([v.moved(t, q) for q in range(len(v.dims[t]))], problem.classes)
        held = _numbers([dim >= 0 for dim in v.dims[t]], problem.sizes)
        columns = [*moved, *held]
        ways = [z3.And(kind == Move.NOTHING, v.ticks[t] >= 0, z3.Not(v.packed[t]))]
        for row in problem.rows:
            if row.later if t else row.first:
                equal = [
                    column == value
                    for column, value in zip(columns, (*row.moved, *row.sharding), strict=True)
                ]
                flags = [v.turned[t] == row.turned, v.packed[t] == row.packed]
                ways.append(z3.And(kind == row.move, v.ticks[t] >= row.price, *equal, *flags))
        solver.add(z3.Or(ways))


def _numbers(terms: Sequence[z3.BoolRef], names: Sequence[int]) -> list[z3.ArithRef]:
    """How many of the terms with each name hold, by name."""
    return [
        z3.Sum([z3.If(term, 1, 0) for term, own in zip(terms, names, strict=True) if own == name])
        for name in sorted(set(names))
    ]


def c11_packed(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C11: without a buffer one dimension is cut, by digits in order, and those before it are 1.

    The dimension is cut in the smaller blocks: before a gather, after a reduce-scatter.
    """
    for t, kind in enumerate(v.kinds):
        for move, small in ((Move.GATHER, t), (Move.REDUCE_SCATTER, t + 1)):
            ways = [_leads(problem, v, t, small, dim) for dim in range(problem.dims)]
            solver.add(z3.Or(kind != move, v.packed[t], *ways))


def _leads(problem: RedistributionProblem, v: Vars, t: int, small: int, dim: int) -> z3.BoolRef:
    """Whether the step cuts this dimension alone, in order, and those before it are of size 1."""
    digits = range(len(problem.sizes))
    here = [z3.Implies(v.moved(t, q), v.dims[small][q] == dim) for q in digits]
    rising = [
        z3.Implies(
            z3.And(v.moved(t, q), v.moved(t, r)), v.positions[small][q] < v.positions[small][r]
        )
        for q, r in combinations(digits, 2)
    ]
    return z3.And(*here, *rising, *(_whole(problem, v, small, other) for other in range(dim)))


def _whole(problem: RedistributionProblem, v: Vars, layer: int, dim: int) -> z3.BoolRef:
    """The local size of a dimension is 1."""
    size, terms = problem.shape[dim], []
    for prime, of_digits, of_dims in problem.factors():
        terms.append(exponent(v.dims[layer], of_digits, dim) == of_dims[dim])
        size //= prime ** of_dims[dim]
    return z3.And(*terms, z3.BoolVal(size == 1))


def c12_exact(solver: z3.Solver, v: Vars, exact: ExactMove) -> None:
    """C12: whichever step leads between these places, its ticks are at least these."""
    for t, kind in enumerate(v.kinds):
        here = z3.And(
            kind == exact.move,
            v.turned[t] == exact.turned,
            _at(v, t, exact.before),
            _at(v, t + 1, exact.after),
        )
        solver.add(z3.Implies(here, v.ticks[t] >= exact.ticks))


def _at(v: Vars, layer: int, places: Places) -> z3.BoolRef:
    """Whether the layer has these places."""
    terms = []
    for dim, position, (at, k) in zip(v.dims[layer], v.positions[layer], places, strict=True):
        terms += [dim == at, position == k]
    return z3.And(terms)


def c13_at_most(solver: z3.Solver, v: Vars, ticks: int) -> None:
    """C13: the sum of c is at most so many ticks."""
    solver.add(z3.Sum(v.ticks) <= ticks)


def c14_borders(
    solver: z3.Solver, problem: RedistributionProblem, v: Vars, border: LevelCut[int]
) -> None:
    """C14: a permute's ticks are at least those of its crossing and of the sharding digits."""
    slots = [place for place in problem.places if place[0] >= 0]
    for t, kind in enumerate(v.kinds):
        here = z3.And(kind == Move.PERMUTE, v.turned[t] == border.turned)
        before, after = (
            [z3.Or([_in(v, t + i, q, slot) for q in border.digits]) for slot in slots]
            for i in (0, 1)
        )
        left = z3.Sum(
            [z3.If(z3.And(a, z3.Not(b)), 1, 0) for a, b in zip(before, after, strict=True)]
        )
        new = z3.Sum(
            [z3.If(z3.And(b, z3.Not(a)), 1, 0) for a, b in zip(before, after, strict=True)]
        )
        changes = z3.Or(
            [
                z3.And(_in(v, t, q, slot), there, z3.Not(_in(v, t + 1, q, slot)))
                for slot, there in zip(slots, after, strict=True)
                for q in border.digits
            ]
        )
        most = z3.If(left > new, left, new)
        crossing = z3.If(changes, len(problem.sizes) + 1, most)
        held = _numbers([dim >= 0 for dim in v.dims[t]], problem.sizes)
        for value, sharding, ticks in border.costs:
            equal = [crossing == value, *(h == n for h, n in zip(held, sharding, strict=True))]
            solver.add(z3.Implies(z3.And(here, *equal), v.ticks[t] >= ticks))


def _in(v: Vars, layer: int, q: int, slot: tuple[int, int]) -> z3.BoolRef:
    return z3.And(v.dims[layer][q] == slot[0], v.positions[layer][q] == slot[1])


def c15_merged(solver: z3.Solver, problem: RedistributionProblem, v: Vars) -> None:
    """C15: a slice does not follow a slice, nor a permute a permute if they merge."""
    for one, after in pairwise(v.kinds):
        solver.add(z3.Or(one != Move.SLICE, after != Move.SLICE))
        if problem.merges:
            solver.add(z3.Not(z3.And(permutes(one), permutes(after))))
