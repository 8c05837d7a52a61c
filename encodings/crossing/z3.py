"""Where one cost is less than others, with z3: linear real arithmetic.

Problem: one :class:`p2smt.problems.crossing.CrossingProblem`: numbers x >= 0 for which the
candidate is less than every other cost; or, where there are none, Farkas multipliers.

Variables
    x[k]      a real per unknown
    t[i]      a real per maximum of the candidate, at least it
    m[s,i]    a real per maximum i of the other cost s, at most it
    w[s]      a real per other cost: its weight in a mixture
    u[i,k]    a real per maximum of the candidate and unknown: the share of that part

Constraints
    C1 numbers       x[k] >= 0
    C2 candidate     t[i] >= a x[k], for each part a x[k] of the maximum
    C3 other         m[s,i] <= a x[k], for some part of the maximum
    C4 cheaper       fixed . x + sum t < fixed[s] . x + sum m[s]
    C5 weights       w >= 0, and they add up to 1; so do the shares u[i] of each maximum
    C6 mixture       per unknown: the candidate's fixed part and shares of its maxima are at least
                     the mixture of the lines that the others have in one case

C1 to C4 hold together where the candidate is cheaper.  A case takes each maximum of the others
at one of its parts, which makes lines of them that are nowhere more; with C1, C2 and these lines C4
is linear, so C5 and C6 have a solution in every case exactly if C1 to C4 have none (Farkas).

Objective: none.

Size: a real per unknown and maximum, a clause per maximum of the others; per case a real per other
cost and part of a maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import z3

from p2smt.encodings.run_z3 import new_solver, solution
from p2smt.errors import OutOfTimeError
from p2smt.problems.crossing import (
    Case,
    CaseMultipliers,
    Coefficients,
    CrossingProblem,
    Refutation,
    SumOfMaxima,
    cases,
)
from p2smt.result import Result, SearchLimits, SolveStats, Status, StopWatch

_SOLVER = "z3"
_LOGIC = "QF_LRA"


@dataclass(frozen=True, slots=True)
class Vars:
    """x by unknown, t by maximum of the candidate, m by other cost and maximum."""

    x: tuple[z3.ArithRef, ...]
    t: tuple[z3.ArithRef, ...]
    m: tuple[tuple[z3.ArithRef, ...], ...]

    @staticmethod
    def of(problem: CrossingProblem) -> Vars:
        """Fresh variables for a problem."""
        return Vars(
            tuple(z3.Real(f"x{k}") for k in range(problem.unknowns)),
            tuple(z3.Real(f"t{i}") for i in range(len(problem.candidate.maxima))),
            tuple(
                tuple(z3.Real(f"m{s}_{i}") for i in range(len(other.maxima)))
                for s, other in enumerate(problem.others)
            ),
        )


def cheaper_somewhere(problem: CrossingProblem, limits: SearchLimits) -> Result[Coefficients]:
    """Numbers for which the candidate is less than all others: FEASIBLE, INFEASIBLE or UNKNOWN."""
    watch = StopWatch.start(limits)
    v, solver = _stated(problem, range(len(problem.others)), limits.seed)
    try:
        model = solution(solver, watch)
    except OutOfTimeError as error:
        stats = SolveStats(_SOLVER, watch.elapsed_s(), reason=str(error))
        return Result(Status.UNKNOWN, stats=stats)
    stats = SolveStats(_SOLVER, watch.elapsed_s())
    if model is None:
        return Result(Status.INFEASIBLE, stats=stats)
    return Result(Status.FEASIBLE, decode(model, v.x), stats=stats)


def refuted_everywhere(problem: CrossingProblem, limits: SearchLimits) -> Result[Refutation]:
    """Multipliers for every case of some of the others.

    COMPLETE; INFEASIBLE if the candidate is cheaper somewhere, so that there are none; UNKNOWN.
    """
    watch = StopWatch.start(limits)
    try:
        by = _needed(problem, watch)
        found = None if by is None else _multipliers(problem, by, watch)
    except OutOfTimeError as error:
        stats = SolveStats(_SOLVER, watch.elapsed_s(), reason=str(error))
        return Result(Status.UNKNOWN, stats=stats)
    stats = SolveStats(_SOLVER, watch.elapsed_s())
    if by is None or found is None:
        return Result(Status.INFEASIBLE, stats=stats)
    return Result(Status.COMPLETE, Refutation(by, found), stats=stats)


def decode(model: z3.ModelRef, variables: Sequence[z3.ArithRef]) -> Coefficients:
    """The exact values of variables."""
    values = (model.eval(one, model_completion=True) for one in variables)
    return tuple(
        Fraction(value.numerator_as_long(), value.denominator_as_long()) for value in values
    )


def _stated(problem: CrossingProblem, others: Sequence[int], seed: int) -> tuple[Vars, z3.Solver]:
    """C1 to C4 for some of the others."""
    v, solver = Vars.of(problem), new_solver(seed, _LOGIC)
    c1_numbers(solver, v)
    c2_candidate(solver, v, problem.candidate)
    for s in others:
        c3_other(solver, v, problem.others[s], s)
        c4_cheaper(solver, v, problem, s)
    return v, solver


def _needed(problem: CrossingProblem, watch: StopWatch) -> tuple[int, ...] | None:
    """Others that together leave no place, none of which can be left out; None: there is one."""
    kept = list(range(len(problem.others)))
    if _has_place(problem, kept, watch):
        return None
    for s in tuple(kept):  # one alone makes the fewest cases
        if not _has_place(problem, [s], watch):
            return (s,)
    for s in tuple(kept):
        fewer = [one for one in kept if one != s]
        if len(fewer) > 1 and not _has_place(problem, fewer, watch):
            kept = fewer
    return tuple(kept)


def _has_place(problem: CrossingProblem, others: Sequence[int], watch: StopWatch) -> bool:
    _, solver = _stated(problem, others, watch.limits.seed)
    return solution(solver, watch) is not None


def _multipliers(
    problem: CrossingProblem, by: Sequence[int], watch: StopWatch
) -> tuple[CaseMultipliers, ...] | None:
    """C5 and C6 in every case; None: one has no solution."""
    others = [problem.others[s] for s in by]
    solver = new_solver(watch.limits.seed, _LOGIC)
    w = [z3.Real(f"w{s}") for s in range(len(others))]
    u = _shares(problem.candidate)
    c5_weights(solver, w, u)
    found = []
    for case in cases(others):
        solver.push()
        c6_mixture(solver, w, u, problem.candidate, _lines(others, case))
        model = solution(solver, watch)
        if model is None:
            return None
        shares = tuple(
            _spread(part, decode(model, list(part.values())), problem.unknowns) for part in u
        )
        found.append(CaseMultipliers(decode(model, w), shares))
        solver.pop()
    return tuple(found)


def _lines(others: Sequence[SumOfMaxima], case: Case) -> list[Coefficients]:
    """The lines of the others in one case."""
    found, at = [], 0
    for other in others:
        found.append(other.lines(case[at : at + len(other.maxima)]))
        at += len(other.maxima)
    return found


def _shares(candidate: SumOfMaxima) -> list[dict[int, z3.ArithRef]]:
    """u by maximum and by the unknowns that it has."""
    return [
        {k: z3.Real(f"u{i}_{k}") for k, a in enumerate(term) if a}
        for i, term in enumerate(candidate.maxima)
    ]


def _spread(part: dict[int, z3.ArithRef], values: Coefficients, unknowns: int) -> Coefficients:
    """Shares of a maximum with zeros for the unknowns that it has not."""
    known = dict(zip(part, values, strict=True))
    return tuple(known.get(k, Fraction(0)) for k in range(unknowns))


def c1_numbers(solver: z3.Solver, v: Vars) -> None:
    """C1: no number is negative."""
    solver.add([x >= 0 for x in v.x])


def c2_candidate(solver: z3.Solver, v: Vars, candidate: SumOfMaxima) -> None:
    """C2: t is at least each maximum of the candidate."""
    for t, term in zip(v.t, candidate.maxima, strict=True):
        solver.add([t >= part for part in _parts(term, v.x)])


def c3_other(solver: z3.Solver, v: Vars, other: SumOfMaxima, s: int) -> None:
    """C3: m is at most each maximum of the other cost."""
    for m, term in zip(v.m[s], other.maxima, strict=True):
        solver.add(z3.Or([m <= part for part in _parts(term, v.x)]))


def c4_cheaper(solver: z3.Solver, v: Vars, problem: CrossingProblem, s: int) -> None:
    """C4: the candidate is less than the other cost."""
    here = z3.Sum([*_parts(problem.candidate.fixed, v.x), *v.t, z3.RealVal(0)])
    there = z3.Sum([*_parts(problem.others[s].fixed, v.x), *v.m[s], z3.RealVal(0)])
    solver.add(here < there)


def c5_weights(
    solver: z3.Solver, w: Sequence[z3.ArithRef], u: Sequence[dict[int, z3.ArithRef]]
) -> None:
    """C5: weights, and the shares of each maximum, are parts of 1."""
    for parts in (list(w), *(list(part.values()) for part in u)):
        solver.add([part >= 0 for part in parts])
        solver.add(z3.Sum(parts) == 1)


def c6_mixture(
    solver: z3.Solver,
    w: Sequence[z3.ArithRef],
    u: Sequence[dict[int, z3.ArithRef]],
    candidate: SumOfMaxima,
    lines: Sequence[Coefficients],
) -> None:
    """C6: the candidate is at least the mixture of the lines, unknown by unknown."""
    for k, fixed in enumerate(candidate.fixed):
        terms = zip(u, candidate.maxima, strict=True)
        own = [_number(term[k]) * part[k] for part, term in terms if term[k]]
        mixed = [_number(line[k]) * one for one, line in zip(w, lines, strict=True) if line[k]]
        zero = z3.RealVal(0)
        solver.add(z3.Sum([*own, _number(fixed), zero]) >= z3.Sum([*mixed, zero]))


def _parts(term: Coefficients, x: Sequence[z3.ArithRef]) -> list[z3.ArithRef]:
    return [_number(a) * one for a, one in zip(term, x, strict=True) if a]


def _number(value: Fraction) -> z3.RatNumRef:
    return z3.RealVal(f"{value.numerator}/{value.denominator}")
