"""What `plan` answers: the best strategies with their proof, and those near the best."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isclose

from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import DEFAULT_LENGTH
from p2smt.plans.solution import RequestAnswer
from p2smt.programs.program import ProofBasis, bases_to, basis_names
from p2smt.result import SolveStats, Status
from p2smt.training.efficiency import TrainingRun
from p2smt.training.prediction import Prediction, RunEstimate
from p2smt.training.search.question import PlanQuestion, Prices
from p2smt.training.strategy import Strategy
from p2smt.units import format_time, plain

_SHOWN = 1e-6
"""Relative: times that differ by less are not told apart in words."""


@dataclass(frozen=True, slots=True)
class PlannedStrategy:
    """A strategy on its best placement.

    ``matrix`` has a row for each of :data:`~p2smt.training.strategy.AXES`, those of size 1 too;
    of a mixture ``expert_matrix`` has one for each of ``EXPERT_AXES``.
    ``iteration_s`` is what was searched for: with ``programs`` (one answer for each request that
    has an axis of more than one device, in the order of the prediction's) less than or equal to
    that of ``prediction``, which is with single collectives; ``with_programs`` is with those.
    ``status``: whether no placement (and no programs, if they were looked for) of this strategy is
    faster.  ``alike``: strategies that differ in dp, cp and micro-batch only, and take the same
    time.
    """

    strategy: Strategy
    matrix: Matrix
    iteration_s: float
    prediction: Prediction
    status: Status = Status.OPTIMAL
    programs: tuple[RequestAnswer, ...] = ()
    with_programs: Prediction | None = None
    alike: tuple[Strategy, ...] = ()
    expert_matrix: Matrix | None = None

    @property
    def placement(self) -> Placement:
        """Where its ranks lie."""
        return Placement(self.matrix)

    @property
    def experts(self) -> Placement | None:
        """Where the ranks of its experts lie."""
        return None if self.expert_matrix is None else Placement(self.expert_matrix)

    def estimate(self, question: PlanQuestion) -> RunEstimate:
        """The strategy as an estimate of the question's training; with its programs, if any."""
        return RunEstimate(
            TrainingRun(question.model, question.batch, self.strategy),
            question.topology,
            question.efficiency,
            self.placement,
            self.with_programs or self.prediction,
            question.capacity_bytes,
            self.experts,
        )


@dataclass(frozen=True, slots=True)
class SpaceCounts:
    """How the space was closed: every strategy is counted under one of the ways.

    ``strategies`` obey every rule of validity.  Of them ``too_large`` do not fit into memory,
    ``lacking`` the launcher cannot run, ``unplaced`` have no placement under the rules, ``bounded``
    cannot be near the best by a bound, ``evaluated`` had their placements looked at; ``open`` are
    left at a time limit.  ``placements`` counts the pairs of strategy and matrix that obey the
    rules on placements; of them ``placements_excluded`` belong to strategies too large or lacking,
    ``placements_priced`` got their time, ``placements_bounded`` were closed by a bound, and
    ``placements_open`` are left.
    """

    strategies: int
    too_large: int
    lacking: int
    unplaced: int
    bounded: int
    evaluated: int
    open: int
    placements: int
    placements_excluded: int
    placements_priced: int
    placements_bounded: int
    placements_open: int

    @property
    def closed(self) -> bool:
        """Whether nothing is left."""
        return self.open == 0 and self.placements_open == 0


@dataclass(frozen=True, slots=True)
class StrategyTime:
    """A strategy and the time of an iteration on its best placement."""

    strategy: Strategy
    iteration_s: float


@dataclass(frozen=True, slots=True)
class StrategyRun:
    """A strategy that was measured, and the name of the run: ``MODEL on N HARDWARE (.., ID)``."""

    name: str
    strategy: Strategy

    @property
    def id(self) -> str:
        """Its name in the file of runs."""
        return self.name.rpartition(", ")[2].rstrip(")")


@dataclass(frozen=True, slots=True)
class NearRun:
    """A strategy and the measured one that it is nearest to.

    ``distance``: the square root of the sum of squares of the logarithms (base 2) of the ratios of
    their degrees, and one for each switch that differs.
    """

    planned: PlannedStrategy
    run: StrategyRun
    distance: float


@dataclass(frozen=True, slots=True)
class NearStrategies:
    """The strategies that take at most ``1 + within`` times the best one's time.

    ``members`` in order of time, the best first; COMPLETE: there are no others; TRUNCATED: at least
    these; ``distinct``: how many there are, those alike counted once.  ``common``: fields that have
    one value in all members.  ``ranges``: the others, with the values that they have.  ``nearest``:
    the member nearest to a measured strategy, if one is near.
    """

    within: float
    status: Status
    members: tuple[StrategyTime, ...]
    common: tuple[tuple[str, str], ...]
    ranges: tuple[tuple[str, tuple[str, ...]], ...]
    nearest: NearRun | None = None
    distinct: int = 1

    @property
    def count(self) -> int:
        """How many there are, the best one among them."""
        return len(self.members)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The strategy that comes nearest to fitting, and what it lacks.

    ``help``: what would help, in words.
    """

    strategy: Strategy
    bytes_needed: int
    bytes_given: int
    help: tuple[str, ...]

    @property
    def missing_bytes(self) -> int:
        """Bytes that it needs beyond those there are."""
        return self.bytes_needed - self.bytes_given


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The answer to a question.

    OPTIMAL: ``bound_s`` is the least time of all strategies of the space, and ``best`` the plainest
    of those that take it, or longer by no more than the question's ``tie``.  FEASIBLE: a limit came
    first; no strategy of the space is faster than ``bound_s``.  INFEASIBLE: nothing fits
    (``shortfall``), or no placement obeys the rules, or the launcher can run none (``reason``).
    UNKNOWN: the limit came before the first answer.  ``top``: the best strategies in order, those
    alike on one place, ``ranking`` COMPLETE if they are proved to be.  ``space``: what was
    searched, in words, name and range.  ``measured``: the best one with the measured run that is
    nearest to it.  ``outside``: how it lies outside of what was measured, in words; empty: it does
    not, or nothing measured was given.  ``recommended``: of the near ones whose times lie in the
    range of the best one's time the one nearest to a measured run; None: no measured run is like
    any of them.
    """

    question: PlanQuestion
    status: Status
    top: tuple[PlannedStrategy, ...]
    ranking: Status
    bound_s: float
    counts: SpaceCounts
    space: tuple[tuple[str, str], ...]
    near: NearStrategies | None = None
    measured: NearRun | None = None
    outside: tuple[str, ...] = ()
    recommended: NearRun | None = None
    shortfall: Shortfall | None = None
    reason: str = ""
    stats: SolveStats = field(default_factory=lambda: SolveStats("branch and bound"))
    interrupted: bool = False

    @property
    def best(self) -> PlannedStrategy | None:
        """The best one found."""
        return self.top[0] if self.top else None

    @property
    def bases(self) -> dict[int, ProofBasis]:
        """What the proof rests on as to programs, by levels; of single collectives, nothing."""
        if self.question.prices is Prices.COLLECTIVES:
            return {}
        return bases_to(len(self.question.topology.levels), DEFAULT_LENGTH)

    @property
    def gap(self) -> float | None:
        """How much faster a strategy of the space may be at most, as a part of the best's time."""
        if self.best is None:
            return None
        return max(0.0, 1 - self.bound_s / self.best.iteration_s)

    def proof(self) -> str:
        """What is proved, in words."""
        counts, least = self.counts, self._prices()
        among = f"among {counts.strategies:,} strategies and {counts.placements:,} placements"
        proved = f"optimal in the model: {counts.strategies:,} strategies, "
        proved += f"{counts.placements:,} placements"
        if self.status is Status.OPTIMAL and not counts.closed:
            open_ones = f"; of the slower ones {counts.open:,} are open"
            return f"{proved}, {least}{open_ones}" + self._tied()
        if self.status is Status.OPTIMAL:
            return f"{proved}, all closed, {least}" + self._tied()
        if self.status is Status.INFEASIBLE:
            return f"none {among} is possible, all closed"
        still = f"{counts.open:,} strategies are open"
        if self.best is None:
            return f"no answer found {among}: {still}"
        bound = f"none takes less than {plain(self.bound_s, 4)} s {least}"
        return f"not proved {among}: {still}, of which {bound}"

    def _prices(self) -> str:
        """What requests cost in what is proved, in words."""
        if self.question.prices is Prices.COLLECTIVES:
            return "with a single collective for each request"
        return f"with the best program for each request ({', '.join(basis_names(self.bases))})"

    def _tied(self) -> str:
        """What is said where the best one does not take the very least time."""
        if self.best is None or isclose(self.best.iteration_s, self.bound_s, rel_tol=_SHOWN):
            return ""
        equal = f"those within {plain(100 * self.question.tie, 2)} % count as equal"
        return f"; the least time is {format_time(self.bound_s)}, {equal}: this is the plainest"
