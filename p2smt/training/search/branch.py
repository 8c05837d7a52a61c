"""Branch and bound over strategies: by their bounds, until none can be among the best or near.

The first bound is that of free communication; others follow for what it leaves open.  A strategy
whose bound is above the cutoff is closed; the cutoff only falls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isclose
from typing import Protocol

import numpy as np

from p2smt.errors import EncodingBug, OutOfTimeError
from p2smt.parallelism.folded import FoldedPlacement, in_rank_order
from p2smt.parallelism.placement import IntArray, Matrix, Placement
from p2smt.plans.solution import RequestAnswer
from p2smt.result import SAME, Status, StopWatch
from p2smt.search.placements import obeys
from p2smt.training.efficiency import TrainingRun
from p2smt.training.iteration import predict, predict_with
from p2smt.training.pipeline import default_placement
from p2smt.training.prediction import Prediction
from p2smt.training.search.bounds_table import BoundsTable, Closed
from p2smt.training.search.candidates import Seconds
from p2smt.training.search.copies import MANY, divides
from p2smt.training.search.plan_answer import PlannedStrategy
from p2smt.training.search.prices import PlacedCandidates
from p2smt.training.search.question import PlanQuestion
from p2smt.training.strategy import AXES, Strategy

_FIRST, _CHUNK = 64, 256
"""Rows that are looked at before any time is known, and those that are bounded together."""
Bound = Callable[[IntArray], Seconds]
"""A bound on the seconds of an iteration of each row."""


class StrategyTiming(Protocol):
    """How strategies are timed on their placements."""

    @property
    def pricing(self) -> PlacedCandidates:
        """The candidates on their placements."""
        ...

    @property
    def bounds(self) -> Sequence[Bound]:
        """Bounds, the cheapest to come by first."""
        ...

    @property
    def together(self) -> int:
        """How many rows are best timed together."""
        ...

    @property
    def sampled(self) -> bool:
        """Whether timing is cheap: then the best of the rows bounded so far are timed at once."""
        ...

    def settle(
        self, bounds_table: BoundsTable, rows: IntArray, cutoff_s: float, watch: StopWatch
    ) -> None:
        """Find the best placement of each row, or that it is above the cutoff.

        Raises:
            OutOfTimeError: the watch expired.
        """
        ...

    def learn(self, row: int, place: int, limit_s: float, watch: StopWatch) -> None:
        """Find what a row takes on a class of placements, unless that is above a limit.

        Raises:
            OutOfTimeError: the watch expired.
        """
        ...

    def known_s(self, row: int, place: int) -> float | None:
        """Seconds of an iteration of a row on a class of placements, if they are known."""
        ...

    def answers(self, row: int, place: int) -> dict[str, RequestAnswer]:
        """The programs of a row on a class of placements by the name of the request."""
        ...


def close(
    bounds_table: BoundsTable, timing: StrategyTiming, within: float, top: int, watch: StopWatch
) -> None:
    """Close every strategy that could be among the ``top`` best, or near the best one.

    Raises:
        OutOfTimeError: the watch expired; the ledger says what is open.
    """
    while True:
        cutoff_s = bounds_table.cutoff_s(within, top)
        rows = bounds_table.open_rows(cutoff_s)
        if not len(rows):
            return
        best_s = bounds_table.least_s()
        known_s = None if np.isinf(best_s) else best_s
        watch.tell(f"{len(rows):,} strategies open", known_s, float(bounds_table.low_s[rows[0]]))
        if not np.isfinite(cutoff_s):
            rows = rows[:_FIRST]
        for level, bound in enumerate(timing.bounds):
            loose = rows[bounds_table.level[rows] == level]
            for at in range(0, len(loose), _CHUNK):
                part = loose[at : at + _CHUNK]
                part = part[bounds_table.low_s[part] <= bounds_table.cutoff_s(within, top)]
                _tighten(bounds_table, part, level, bound, watch)
                if timing.sampled:
                    first = next(
                        _slices(bounds_table, part, timing.together, within, top), part[:0]
                    )
                    _time(bounds_table, timing, first, bounds_table.cutoff_s(within, top), watch)
        rows = rows[bounds_table.closed[rows] == Closed.OPEN]
        for part in _slices(bounds_table, rows, timing.together, within, top):
            _time(bounds_table, timing, part, bounds_table.cutoff_s(within, top), watch)


def _tighten(
    bounds_table: BoundsTable, rows: IntArray, level: int, bound: Bound, watch: StopWatch
) -> None:
    """Put a bound of the next level to rows."""
    if watch.expired():
        raise OutOfTimeError
    if len(rows):
        bounds_table.low_s[rows] = np.maximum(bounds_table.low_s[rows], bound(rows))
        bounds_table.level[rows] = level + 1


def _time(
    bounds_table: BoundsTable,
    timing: StrategyTiming,
    rows: IntArray,
    cutoff_s: float,
    watch: StopWatch,
) -> None:
    """Time those of the rows that the launcher in use can run."""
    able = runnable(bounds_table, rows)
    if len(able):
        timing.settle(bounds_table, able, cutoff_s, watch)


def _slices(
    bounds_table: BoundsTable, rows: IntArray, together: int, within: float, top: int
) -> Iterator[IntArray]:
    """Rows by their bounds, a few at a time, as long as they are below the cutoff."""
    order = rows[np.argsort(bounds_table.low_s[rows], kind="stable")]
    for at in range(0, len(order), together):
        part = order[at : at + together]
        part = part[bounds_table.low_s[part] <= bounds_table.cutoff_s(within, top)]
        if not len(part):
            return
        yield part


def runnable(bounds_table: BoundsTable, rows: IntArray) -> IntArray:
    """Those that the launcher in use can run; the others are closed."""
    question = bounds_table.candidates.question
    if question.lacks is None:
        return rows
    columns, able = bounds_table.candidates.columns, []
    for row in rows.tolist():
        lacking = question.lacks(columns.strategy(row), question.model)
        able.append(not lacking)
    can = np.array(able, dtype=bool)
    bounds_table.closed[rows[~can]] = Closed.LACKING
    return np.asarray(rows[can])


# Strategies timed with a single collective for each request.


@dataclass(frozen=True, slots=True)
class CollectiveTiming:
    """Each request is a single collective: all placements of a row are timed at once."""

    pricing: PlacedCandidates
    together: int = 64
    sampled: bool = True

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Each request on the placement that is best for it alone."""
        return (self.pricing.least_s,)

    def settle(self, bounds_table: BoundsTable, rows: IntArray, _: float, watch: StopWatch) -> None:
        """As :class:`~p2smt.training.search.branch.StrategyTiming` has it; all rows are timed."""
        if watch.expired():
            raise OutOfTimeError
        seconds, bounds_table.place[rows] = self.pricing.best(rows)
        bounds_table.low_s[rows] = bounds_table.time_s[rows] = seconds
        bounds_table.closed[rows] = Closed.EVALUATED

    def learn(self, _: int, __: int, ___: float, ____: StopWatch) -> None:
        """Nothing is left to be known."""

    def known_s(self, row: int, place: int) -> float | None:
        """Seconds of an iteration of a row on a class of placements."""
        return self.pricing.seconds_at(row, place)

    def answers(self, _: int, __: int) -> dict[str, RequestAnswer]:
        """No programs, whatever the row and the class."""
        return {}


# A strategy of the search as an answer: its placement, and its time predicted anew.


def exact(bounds_table: BoundsTable, row: int) -> bool:
    """Whether no placement of a strategy is faster than the time that was found."""
    return bool(bounds_table.low_s[row] >= bounds_table.time_s[row] * (1 - SAME))


def planned(bounds_table: BoundsTable, timing: StrategyTiming, row: int) -> PlannedStrategy:
    """The strategy of a row that was timed, on its best placement.

    Where Megatron's order is as good as any, it is the placement.

    Raises:
        EncodingBug: the prediction says another time.
    """
    question = bounds_table.candidates.question
    run = TrainingRun(question.model, question.batch, bounds_table.candidates.columns.strategy(row))
    place, rows = _placed(bounds_table, timing, row)
    matrix, experts = sides_of(rows)
    where = Placement(matrix), None if experts is None else Placement(experts)
    prediction = predict(run, question.topology, question.efficiency, *where)
    claimed_s, found = _claimed(bounds_table, timing, row, place)
    with_programs = prediction
    if found:
        prices = {name: answer.seconds for name, answer in found.items()}
        device = question.topology.known_device
        with_programs = predict_with(run, device, question.efficiency, prices)
    _check(run, rows, claimed_s, with_programs.time.iteration_s)
    status = Status.OPTIMAL if exact(bounds_table, row) else Status.FEASIBLE
    return PlannedStrategy(
        run.strategy,
        matrix,
        with_programs.time.iteration_s,
        prediction,
        status,
        tuple(_programs(prediction, found)),
        with_programs if found else None,
        expert_matrix=experts,
    )


def learn_usual(
    bounds_table: BoundsTable, timing: StrategyTiming, rows: Sequence[int], watch: StopWatch
) -> None:
    """Find what rows take in Megatron's order where that may be as good as their best placement.

    So whether it is does not depend on which programs happen to be known.  Nothing is raised: where
    no time is left, it is not as good for all that is known.
    """
    try:
        for row in rows:
            usual = _usual(bounds_table, timing, row)
            if usual is not None:
                timing.learn(row, usual[0], bounds_table.time_s[row] * (1 + SAME), watch)
    except OutOfTimeError:
        pass


def _placed(bounds_table: BoundsTable, timing: StrategyTiming, row: int) -> tuple[int, Matrix]:
    """The class of the best placement and a matrix of it: Megatron's order, if that is as good."""
    usual = _usual(bounds_table, timing, row)
    if usual is not None:
        seconds = timing.known_s(row, usual[0])
        if seconds is not None and seconds <= bounds_table.time_s[row] * (1 + SAME):
            return usual
    place = int(bounds_table.place[row])
    placed = timing.pricing.placed(int(bounds_table.candidates.block[row]))
    return place, placed.matrix(place)


def _usual(
    bounds_table: BoundsTable, timing: StrategyTiming, row: int
) -> tuple[int, Matrix] | None:
    """The class of Megatron's order and its matrix, where that obeys the rules."""
    question = bounds_table.candidates.question
    rows = usual_rows(question, bounds_table.candidates.columns.strategy(row))
    if rows is None or not obeys(rows, question.rules):
        return None
    placed = timing.pricing.placed(int(bounds_table.candidates.block[row]))
    return placed.class_of(rows), rows


def usual_rows(question: PlanQuestion, strategy: Strategy) -> Matrix | None:
    """The rows of Megatron's order, of a mixture those of both matrices; None: no matrix has it, or
    none that is divided into shards and their copies.
    """
    if question.model.experts:
        levels = question.topology.sizes
        pair = in_rank_order(levels, strategy.sizes, strategy.expert_sizes)
        rows = None if pair is None else pair.rows
    else:
        usual = default_placement(question.topology, strategy)
        rows = None if usual is None else usual.matrix
    if rows is None or not all(divides(row, strategy.dp_replicate) for row in rows[1 :: MANY - 1]):
        return None
    return rows


def sides_of(rows: Matrix) -> tuple[Matrix, Matrix | None]:
    """The matrix that rows are, or those of attention and of experts that they are."""
    if len(rows) == len(AXES):
        return rows, None
    pair = FoldedPlacement.of_rows(rows)
    return pair.attention.matrix, pair.experts.matrix


def _claimed(
    bounds_table: BoundsTable, timing: StrategyTiming, row: int, place: int
) -> tuple[float, dict[str, RequestAnswer]]:
    """What the search says of a row on a class of placements: seconds, and the programs for it.

    Programs that a limit cut short may take longer than the single collectives that the time on
    the ledger was found with: then there are none.
    """
    timed_s, known_s = float(bounds_table.time_s[row]), timing.known_s(row, place)
    found = timing.answers(row, place)
    mine = place == bounds_table.place[row]
    if known_s is None or (mine and (not found or known_s > timed_s * (1 + SAME))):
        return timed_s, {}
    return known_s, found


def _programs(prediction: Prediction, found: dict[str, RequestAnswer]) -> list[RequestAnswer]:
    """The programs of the requests of a prediction, each with its axes and calls."""
    requests = [one.request for one in prediction.requests if one.request.name in found]
    return [replace(found[one.name], request=one.as_request) for one in requests]


def _check(run: TrainingRun, matrix: Matrix, claimed_s: float, predicted_s: float) -> None:
    if not isclose(claimed_s, predicted_s, rel_tol=SAME):
        text = f"the search claims {claimed_s} s, the prediction says {predicted_s} s"
        raise EncodingBug(text, str(run), matrix)
