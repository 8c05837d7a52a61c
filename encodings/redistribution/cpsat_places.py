"""Layouts for CP-SAT: C1 to C4 of :mod:`p2smt.encodings.redistribution.cpsat`."""

from __future__ import annotations

from ortools.sat.python import cp_model

from p2smt.encodings.redistribution.cpsat_vars import Vars
from p2smt.problems.redistribution import RedistributionProblem


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
