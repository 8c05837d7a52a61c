"""What the cubes of a question share in a process: strategies, scenes, prices and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from p2smt.collectives.names import RequestKind
from p2smt.cost.loads.footprint import Digits
from p2smt.cost.scene import Scene
from p2smt.errors import EncodingBug, InputError
from p2smt.parallelism.placement import IntArray, Matrix, Placement
from p2smt.parallelism.request import DEFAULT_LENGTH
from p2smt.programs.program import parse_program
from p2smt.result import SearchLimits, StopWatch
from p2smt.search.program_synthesis import Task, price
from p2smt.training.formulas.stages import MixtureColumns, StrategyColumns
from p2smt.training.pipeline import combine
from p2smt.training.search.bounds_table import BoundsTable, Closed
from p2smt.training.search.candidates import Candidates, field_numbers
from p2smt.training.search.choices import Choices
from p2smt.training.search.copies import placed_rows, request_axes, row_names
from p2smt.training.search.pairs import PairedCandidates
from p2smt.training.search.prices import PlacedCandidates, SceneCache, collective_s
from p2smt.training.search.program_timing import ProgramCache, bound_s
from p2smt.training.search.question import PlanQuestion, Prices
from p2smt.training.search.strategies import space_of
from p2smt.training.strategy import Strategy

ProgramTexts = dict[str, str | None]
"""The programs of a strategy on a placement by the name of the request; None: one fixed step."""


@dataclass(frozen=True, slots=True)
class PlanCache:
    """Everything that does not depend on the cube.

    ``known``: what is known of every strategy before the search.  ``least`` and ``refined``: scenes
    at prices that no program beats, and at those with what was found of programs.  ``blocks``: of
    axis sizes by their text; ``rows``: of members that were met, by theirs.  ``pairs``: of a
    mixture what is known of each side of a pair, for all cubes.
    """

    known: BoundsTable
    singles: SceneCache
    least: SceneCache
    refined: SceneCache
    programs: ProgramCache
    blocks: Mapping[str, int]
    pairs: PairedCandidates | None = None
    rows: dict[str, int] = field(default_factory=dict)
    _seconds: dict[tuple[tuple[Digits, ...], RequestKind, int, str | None], float] = field(
        default_factory=dict
    )

    @staticmethod
    def of(question: PlanQuestion, candidates: Candidates | None = None) -> PlanCache:
        """Nothing priced so far; ``candidates`` are those of the question, if they are there."""
        if candidates is None:
            candidates = Candidates.of(question, space_of(question, Choices.of(question)))
        singles = SceneCache(question.topology)
        least = singles.at(bound_s)
        mixture, watch = question.model.experts, StopWatch.start(SearchLimits())
        return PlanCache(
            BoundsTable.of(candidates),
            singles,
            least,
            least.above(),
            ProgramCache.of(question.topology),
            {
                sizes_text(row_names(question), sizes): at
                for at, sizes in enumerate(candidates.sizes.tolist())
            },
            PairedCandidates.of(candidates, singles, watch) if mixture else None,
        )

    @property
    def candidates(self) -> Candidates:
        """Every strategy."""
        return self.known.candidates

    @property
    def question(self) -> PlanQuestion:
        """What is asked."""
        return self.candidates.question

    def open_rows(self, block: int) -> IntArray:
        """Strategies with the axis sizes of a block that fit into memory."""
        mine = self.candidates.block == block
        return np.flatnonzero(mine & (self.known.closed == Closed.OPEN))

    def row_of(self, strategy: Strategy) -> int:
        """The row of a strategy.

        Raises:
            InputError: it is none of the candidates, or does not fit into memory.
        """
        one = StrategyColumns.of((strategy,))
        one = replace(one, mixture=one.mixture or MixtureColumns.none(1))
        sizes = [int(one.ranks[axis][0]) for axis in request_axes(self.question)]
        block = self.blocks.get(sizes_text(row_names(self.question), sizes))
        rows = np.zeros(0, dtype=np.int64) if block is None else self.open_rows(block)
        columns = self.candidates.columns.take(rows)
        same = np.ones(len(rows), dtype=np.bool_)
        for name in self.question.searched:
            same &= field_numbers(columns, name) == field_numbers(one, name)
        found = np.flatnonzero(same).tolist()
        if len(found) != 1 or columns.strategy(found[0]) != strategy:
            raise InputError("a strategy", "is none of the question, or does not fit")
        return int(rows[found[0]])

    def placed(self, candidates: Candidates, watch: StopWatch) -> PlacedCandidates:
        """Some of the candidates on their placements, at the prices of single collectives."""
        if self.pairs is None:
            return PlacedCandidates.of(candidates, self.singles, watch)
        return self.pairs.part(candidates, watch)

    def seconds(self, row: int, matrix: Matrix, programs: ProgramTexts) -> float:
        """Seconds of an iteration of a strategy on a placement, with programs if these are asked.

        Raises:
            InputError: a request has no program, or one that is none.
        """
        if self.pairs is not None:
            prices = self.pairs.prices_on(row, matrix)
        else:
            own = placed_rows(matrix, self.candidates.copies(row))
            prices = self._prices(row, Placement(own), programs)
        return float(combine(self.candidates.work.take(np.array([row])), prices)[0])

    def _prices(self, row: int, placement: Placement, programs: ProgramTexts) -> dict[str, float]:
        """Seconds of a call of each request of a strategy of a dense model."""
        prices = {}
        for name, (axes, kind, payload_bytes) in self._asked(row).items():
            scene = Scene.of(self.question.topology, placement, axes)
            if self.question.prices is Prices.COLLECTIVES:
                prices[name] = self.singles.seconds_of(scene, kind, payload_bytes)
            elif name in programs:
                prices[name] = self._priced(scene, kind, payload_bytes, programs[name])
            else:
                raise InputError(f"request {name[:40]}", "has no program")
        return prices

    def _asked(self, row: int) -> dict[str, tuple[tuple[int, ...], RequestKind, int]]:
        """The requests that a strategy calls: axes, kind and bytes by name."""
        found = {}
        for one in self.candidates.whole_work.requests:
            column = one.column
            if (column.calls[row] > 0).any():
                sizes = int(column.payload_bytes[row])
                found[column.name] = self.candidates.axis_set(column.axes), column.kind, sizes
        return found

    def _priced(
        self, scene: Scene, kind: RequestKind, payload_bytes: int, text: str | None
    ) -> float:
        """Seconds of one execution with a program, checked; or of the fixed step."""
        key = scene.digits, kind, payload_bytes, text
        if key not in self._seconds:
            self._seconds[key] = _checked_s(scene, kind, payload_bytes, text)
        return self._seconds[key]


def sizes_text(axes: Sequence[str], sizes: Sequence[int]) -> str:
    """Sizes of the axes as a decision: ``pp=1,dp=64,cp=1,tp=8``."""
    return ",".join(f"{axis}={size}" for axis, size in zip(axes, sizes, strict=True))


def _checked_s(scene: Scene, kind: RequestKind, payload_bytes: int, text: str | None) -> float:
    alone = scene.hierarchy.size == 1 or not kind.has_programs
    if alone != (text is None):
        raise InputError(f"a request of kind {kind.value}", "has one fixed step, or a program")
    if text is None:
        return collective_s(scene, kind, payload_bytes)
    task = Task(kind, scene.hierarchy, DEFAULT_LENGTH)
    program = scene.hierarchy.canonical(parse_program(text))
    try:
        return price(task, program, scene, payload_bytes).seconds
    except EncodingBug as error:
        raise InputError(f"program {text[:60]!r}", f"is not valid: {error.args[0]}") from None
