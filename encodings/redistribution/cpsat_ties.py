"""The first of the cheapest answers, by :mod:`p2smt.encodings.redistribution.cpsat`'s model.

One goal after the other is minimised and then held: the number of steps, and for each layer the
places of its digits, several digits at a time as one number.
"""

from __future__ import annotations

from collections.abc import Iterator

from ortools.sat.python import cp_model

from p2smt.encodings.redistribution.cpsat_vars import Vars
from p2smt.encodings.run_cpsat import run
from p2smt.problems.redistribution import Move, RedistributionProblem
from p2smt.result import StopWatch

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
