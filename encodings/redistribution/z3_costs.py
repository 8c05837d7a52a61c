"""Costs for z3: C10 to C15 of :mod:`p2smt.encodings.redistribution.z3`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import z3

from p2smt.encodings.redistribution.z3_steps import Vars, exponent, permutes
from p2smt.problems.redistribution import Border, ExactMove, Move, Places, RedistributionProblem


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
                ways.append(z3.And(kind == row.move, v.ticks[t] >= row.ticks, *equal, *flags))
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


def c14_borders(solver: z3.Solver, problem: RedistributionProblem, v: Vars, border: Border) -> None:
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
