"""The nearest flips of an answer: for each number, of the placement and of every program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from p2smt.errors import InputError, OutOfTimeError
from p2smt.plans.explanation import SEARCHED, ChangedNumber, FlipOutcome, NearestFlip
from p2smt.result import OUT_OF_TIME
from p2smt.search.explain.both_sides import (
    NOT_BEFORE,
    Confirmed,
    bisected,
    confirmed_placement,
    confirmed_program,
    still_best,
)
from p2smt.search.explain.crossing import (
    Crossing,
    Looked,
    placement_crossing,
    program_crossing,
)
from p2smt.search.explain.landscape import Landscape
from p2smt.search.explain.numbers import numbers_of, outward
from p2smt.solvers.solver import Solver

_MORE = 5
"""So many matrices may turn up that are nearer than those looked at."""


def flips_of(land: Landscape, solver: Solver) -> Iterator[NearestFlip]:
    """Where the placement changes, by each number; then the same of each program."""
    for number in numbers_of(land.problem):
        if len(land.matrices) > 1 or not land.whole:
            yield _settled(number, None, partial(_placement, land, number, solver))
    for r, answer in enumerate(land.answer.requests):
        if answer.program is None:
            continue
        for number in numbers_of(land.problem):
            if number.what != "payload" or number.index == r:
                name = str(answer.request)
                yield _settled(number, name, partial(_program, land, number, r, solver))


def _settled(
    number: ChangedNumber, request: str | None, look: Callable[[], NearestFlip]
) -> NearestFlip:
    """A flip; open where the time is over or a cost is not linear."""
    try:
        return look()
    except OutOfTimeError:
        return NearestFlip(number, request, FlipOutcome.OPEN, why=OUT_OF_TIME)
    except InputError as fault:
        return NearestFlip(number, request, FlipOutcome.OPEN, why=str(fault))


def _placement(land: Landscape, number: ChangedNumber, solver: Solver) -> NearestFlip:
    """The nearest flip; matrices that turn out to be nearer join those looked at."""
    for _ in range(_MORE):
        looked = placement_crossing(land, number)
        x, confirmed = _checked(land, number, None, looked, solver)
        if confirmed.nearer is None or confirmed.nearer in land.matrices:
            break
        land = land.with_matrix(confirmed.nearer)
    return _sharpened(land, number, None, (looked, x, confirmed), solver)


def _program(land: Landscape, number: ChangedNumber, request: int, solver: Solver) -> NearestFlip:
    looked = program_crossing(land, number, request)
    x, confirmed = _checked(land, number, request, looked, solver)
    return _sharpened(land, number, request, (looked, x, confirmed), solver)


def _checked(
    land: Landscape, number: ChangedNumber, request: int | None, looked: Looked, solver: Solver
) -> tuple[float, Confirmed]:
    """Where it was solved again, and what came of it: on both sides of a crossing, or far out."""
    if looked.crossing is None:
        x = float(SEARCHED) if outward(number) else 1 / SEARCHED
        proved = looked.proved
        return x, Confirmed() if proved else still_best(land, number, request, x, solver)
    x = looked.crossing.x
    if request is None:
        return x, confirmed_placement(land, number, x, solver)
    return x, confirmed_program(land, number, request, x, solver)


def _sharpened(
    land: Landscape,
    number: ChangedNumber,
    request: int | None,
    found: tuple[Looked, float, Confirmed],
    solver: Solver,
) -> NearestFlip:
    """The flip; where another answer is better before it, what solving again and again finds."""
    looked, x, confirmed = found
    name = None if request is None else str(land.answer.requests[request].request)
    if confirmed.why == NOT_BEFORE:
        x, confirmed = bisected(land, number, request, x, solver)
        looked = Looked(Crossing(x, None), False, looked.tried)
    return _flip(number, name, looked, confirmed)


def _flip(
    number: ChangedNumber, request: str | None, looked: Looked, confirmed: Confirmed
) -> NearestFlip:
    found = NearestFlip(number, request, FlipOutcome.NONE, proved=looked.proved, tried=looked.tried)
    if confirmed.why:
        return replace(found, outcome=FlipOutcome.OPEN, proved=False, why=confirmed.why)
    if looked.crossing is None:
        return found
    x, exact = looked.crossing.x, looked.crossing.exact
    return replace(
        found,
        outcome=FlipOutcome.FLIP,
        factor=x if x >= 1 else 1 / x,
        exact=None if exact is None else max(exact, 1 / exact),
        matrix=confirmed.matrix,
        program=confirmed.program,
    )
