"""Costs for CP-SAT: C11 to C14 and C16 of :mod:`p2smt.encodings.redistribution.cpsat`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ortools.sat.python import cp_model

from p2smt.encodings.redistribution.cpsat_vars import Vars
from p2smt.problems.redistribution import ExactMove, Move, RedistributionProblem


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
            (row.move, *row.moved, *row.sharding, row.turned, row.packed, row.ticks)
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
