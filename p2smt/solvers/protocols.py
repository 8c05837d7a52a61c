"""What the encoding modules of each problem offer: one protocol a problem, one module a solver.

What the answers mean is said by :mod:`p2smt.solvers.questions`.
"""

from __future__ import annotations

from typing import Protocol

from p2smt.parallelism.placement import Matrix
from p2smt.problems.allocation import AllocationProblem, Counts
from p2smt.problems.claim import Claim
from p2smt.problems.crossing import Coefficients, CrossingProblem, Refutation
from p2smt.problems.placement import PlacementProblem
from p2smt.problems.program import Indices, ProgramProblem
from p2smt.problems.race import RaceAnswer, RaceProblem
from p2smt.problems.redistribution import Moves, RedistributionProblem
from p2smt.problems.schedule import DisseminationProblem, StepSends
from p2smt.problems.sums import AllReduceProblem, SumSchedule
from p2smt.result import Result, SearchLimits


class PlacementEncoding(Protocol):
    """``encodings/placement/``: parallelism matrices."""

    def enumerate_placements(
        self, problem: PlacementProblem, limits: SearchLimits
    ) -> Result[tuple[Matrix, ...]]: ...

    def optimal_placement(
        self, problem: PlacementProblem, limits: SearchLimits
    ) -> Result[Matrix]: ...

    def conflicting_rules(
        self, problem: PlacementProblem, limits: SearchLimits
    ) -> Result[tuple[int, ...]]: ...


class ProgramEncoding(Protocol):
    """``encodings/program/``: reduction programs by instruction indices."""

    def enumerate_programs(
        self, problem: ProgramProblem, limits: SearchLimits
    ) -> Result[tuple[Indices, ...]]: ...

    def optimal_program(self, problem: ProgramProblem, limits: SearchLimits) -> Result[Indices]: ...

    def best_programs(
        self, problem: ProgramProblem, limits: SearchLimits, k: int
    ) -> Result[tuple[Indices, ...]]: ...

    def cost_keys(
        self, problem: ProgramProblem, limits: SearchLimits
    ) -> list[tuple[int, int]] | None: ...


class RaceEncoding(Protocol):
    """``encodings/race/``: orders in which an output chunk is wrong."""

    def wrong_order(self, problem: RaceProblem, limits: SearchLimits) -> Result[RaceAnswer]: ...


class ClaimEncoding(Protocol):
    """``encodings/claim/``: claims about all whole numbers."""

    def prove_claim(self, claim: Claim, limits: SearchLimits) -> Result[bool]: ...


class AllocationEncoding(Protocol):
    """``encodings/allocation/``: cells of a grid in pools of hosts."""

    def optimal_allocation(
        self, problem: AllocationProblem, limits: SearchLimits
    ) -> Result[Counts]: ...


class RedistributionEncoding(Protocol):
    """``encodings/redistribution/``: steps between layouts of an array."""

    def optimal_redistribution(
        self, problem: RedistributionProblem, limits: SearchLimits
    ) -> Result[Moves]: ...


class CrossingEncoding(Protocol):
    """``encodings/crossing/``: where one cost is less than others."""

    def cheaper_somewhere(
        self, problem: CrossingProblem, limits: SearchLimits
    ) -> Result[Coefficients]: ...

    def refuted_everywhere(
        self, problem: CrossingProblem, limits: SearchLimits
    ) -> Result[Refutation]: ...


class DisseminationEncoding(Protocol):
    """``encodings/schedule/dissemination/``: messages of chunks, step by step."""

    def any_schedule(
        self, problem: DisseminationProblem, limits: SearchLimits
    ) -> Result[tuple[StepSends, ...]]: ...


class TreesEncoding(Protocol):
    """``encodings/schedule/trees/``: all-reduces, each chunk over two trees."""

    def any_schedule(
        self, problem: AllReduceProblem, limits: SearchLimits
    ) -> Result[SumSchedule]: ...


class AccumulatorsEncoding(Protocol):
    """``encodings/schedule/accumulators/``: all-reduces, one sum of a chunk on every rank."""

    def any_schedule(
        self, problem: AllReduceProblem, limits: SearchLimits
    ) -> Result[SumSchedule]: ...


class PartialsEncoding(Protocol):
    """``encodings/schedule/partials/``: all-reduces with any partial sums."""

    def any_schedule(
        self, problem: AllReduceProblem, limits: SearchLimits
    ) -> Result[SumSchedule]: ...
