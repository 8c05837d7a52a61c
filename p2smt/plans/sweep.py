"""Times over sizes: the requests of a problem, or several programs for one, on a placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from p2smt.parallelism.placement import Placement
from p2smt.parallelism.request import Problem
from p2smt.plans.given_program import candidates, cost_by_size
from p2smt.plans.solution import Alternative, RequestAnswer
from p2smt.programs.program import Program


@dataclass(frozen=True, slots=True)
class Curve:
    """One way to answer a request, over the sizes of a sweep.

    ``program`` is None for the single collective and for one fixed step.  ``seconds`` are times of
    one execution; ``answers`` are empty for a single collective that was not asked for.
    """

    program: Program | None
    seconds: tuple[float, ...]
    answers: tuple[RequestAnswer, ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Candidates over sizes: ``by_size`` has a row per size, an entry per candidate in each."""

    problem: Problem
    placement: Placement
    sizes: tuple[int, ...]
    by_size: tuple[tuple[Alternative, ...], ...]

    def curves(self, request: int) -> tuple[Curve, ...]:
        """The ways to answer a request (its index), each once, the single collective first."""
        found: dict[Program | None, Curve] = {None: self._single(request)}
        for column in zip(*self.by_size, strict=True):
            answers = tuple(at.requests[request] for at in column)
            program = None if _is_single(answers[0]) else answers[0].program
            seconds = tuple(answer.seconds for answer in answers)
            found[program] = Curve(program, seconds, answers)
        return tuple(found.values())

    def _single(self, request: int) -> Curve:
        singles = (candidates[0].requests[request].single_s for candidates in self.by_size)
        return Curve(None, tuple(singles), ())

    def fastest(self, request: int) -> tuple[tuple[int, int, int], ...]:
        """Which curve is the fastest (the first of tied ones), as runs of sizes: (index of the
        curve, first size, last size)."""
        rows = zip(*(curve.seconds for curve in self.curves(request)), strict=True)
        best = [row.index(min(row)) for row in rows]
        runs = [
            [size for _, size in run]
            for _, run in groupby(zip(best, self.sizes, strict=True), key=itemgetter(0))
        ]
        return tuple((best[self.sizes.index(run[0])], run[0], run[-1]) for run in runs)


def _is_single(answer: RequestAnswer) -> bool:
    """Whether it is the single collective (no other program has one step), or has no program."""
    return answer.program is None or len(answer.program) == 1


def sweep(
    problem: Problem,
    placement: Placement,
    sizes: Sequence[int],
    programs: Sequence[str] = (),
) -> Sweep:
    """What the requests take with each of these payloads in bytes, instead of their own.

    programs: of one request any number, which are compared; of several one for each that has
        programs, as for :func:`~p2smt.plans.given_program.cost_of`.
    """
    columns = [
        cost_by_size(problem, placement, sizes, texts) for texts in candidates(problem, programs)
    ]
    return Sweep(problem, placement, tuple(sizes), tuple(zip(*columns, strict=True)))
