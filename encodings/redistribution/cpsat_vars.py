"""Variables of :mod:`p2smt.encodings.redistribution.cpsat`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ortools.sat.python import cp_model

from p2smt.problems.redistribution import Move, RedistributionProblem

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
    most = max((row.ticks for row in problem.rows), default=0)
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
