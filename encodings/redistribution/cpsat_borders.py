"""Permutes over borders for CP-SAT: C15 of :mod:`p2smt.encodings.redistribution.cpsat`."""

from __future__ import annotations

from ortools.sat.python import cp_model

from p2smt.encodings.redistribution.cpsat_vars import Vars
from p2smt.problems.redistribution import Border, Move, RedistributionProblem


def c15_borders(
    model: cp_model.CpModel, problem: RedistributionProblem, v: Vars, border: Border
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
    model: cp_model.CpModel, problem: RedistributionProblem, v: Vars, border: Border, t: int
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
