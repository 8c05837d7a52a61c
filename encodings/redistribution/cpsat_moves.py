"""Steps for CP-SAT: C5 to C10 of :mod:`p2smt.encodings.redistribution.cpsat`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ortools.sat.python import cp_model

from p2smt.encodings.redistribution.cpsat_vars import Vars
from p2smt.problems.redistribution import PARTIAL, REPLICATED, Move, RedistributionProblem

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
