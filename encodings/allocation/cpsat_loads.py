"""Loads of the uplinks for CP-SAT: C3 and C4 of :mod:`p2smt.encodings.allocation.cpsat`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from p2smt.problems.allocation import AllocationProblem, Messages, Shares

EntityCells = Mapping[tuple[int, int], cp_model.LinearExpr]
"""Cells of each block in each entity."""


def held_of(
    problem: AllocationProblem, cells: Mapping[tuple[int, int], cp_model.IntVar]
) -> EntityCells:
    """The sum over its pools of what each entity holds of each block."""
    return {
        (b, e): cp_model.LinearExpr.sum([cells[b, p] for p in pools])
        for e, pools in enumerate(problem.entities)
        for b in range(problem.blocks)
    }


def c3_messages(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    held: EntityCells,
    load: Messages,
    entity: int,
    largest: cp_model.IntVar,
) -> None:
    """C3: out - into is what the first end of an edge has more; k >= the sum of either."""
    most = min(problem.members, sum(problem.pools[p] for p in problem.entities[entity]))
    out, into = [], []
    for a, b, count in load.edges:
        leaves = model.new_int_var(0, most, "out")
        enters = model.new_int_var(0, most, "into")
        model.add(leaves - enters == held[a, entity] - held[b, entity])
        model.add(leaves <= held[a, entity])
        model.add(enters <= held[b, entity])
        out.append(count * leaves)
        into.append(count * enters)
    model.add(sum(out) <= largest)
    model.add(sum(into) <= largest)


def c4_shares(
    model: cp_model.CpModel,
    problem: AllocationProblem,
    held: EntityCells,
    load: Shares,
    entity: int,
    largest: cp_model.IntVar,
) -> None:
    """C4: v is the share of what the entity holds of a group; k >= their sum."""
    total: list[cp_model.LinearExprT] = []
    for group in load.groups:
        inside = sum(held[b, entity] for b in group)
        size = len(group) * problem.members
        if len(set(load.sent[1:-1])) == 1:
            total.append(load.sent[1] * _partly(model, inside, size))
        elif size > 1:
            total.append(_looked_up(model, inside, load.sent))
    model.add(sum(total) <= largest)


def _partly(model: cp_model.CpModel, inside: cp_model.LinearExprT, size: int) -> cp_model.IntVar:
    """Whether an entity holds some of a group and not all: 0 < inside < size."""
    partly, wholly = model.new_bool_var("partly"), model.new_bool_var("wholly")
    model.add(inside <= size * wholly + (size - 1) * partly)
    model.add(inside >= size * wholly + partly)
    model.add_at_most_one(partly, wholly)
    return partly


def _looked_up(
    model: cp_model.CpModel, inside: cp_model.LinearExprT, sent: Sequence[int]
) -> cp_model.IntVar:
    """The share of a number of cells."""
    number = model.new_int_var(0, len(sent) - 1, "held")
    model.add(number == inside)
    share = model.new_int_var(0, max(sent), "v")
    model.add_element(number, list(sent), share)
    return share
