"""A strategy of the search as an answer: its placement, and its time predicted anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isclose

import numpy as np

from p2smt.errors import EncodingBug, OutOfTimeError
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.request import Request
from p2smt.plans.solution import SAME, RequestAnswer
from p2smt.result import Status, StopWatch
from p2smt.search.placements import obeys
from p2smt.workload.iteration import predict, predict_with
from p2smt.workload.prediction import Prediction
from p2smt.workload.run import TrainingRun
from p2smt.workload.search.answer import PlannedStrategy
from p2smt.workload.search.branch import StrategyTiming
from p2smt.workload.search.ledger import Ledger
from p2smt.workload.search.pricing.prices import as_matrix
from p2smt.workload.timing.prices import default_placement

_TIGHT = 1e-9
"""Relative: times that differ by less are one time, summed in another order."""


def exact(ledger: Ledger, row: int) -> bool:
    """Whether no placement of a strategy is faster than the time that was found."""
    return bool(ledger.low_s[row] >= ledger.time_s[row] * (1 - _TIGHT))


def planned(ledger: Ledger, timing: StrategyTiming, row: int) -> PlannedStrategy:
    """The strategy of a row that was timed, on its best placement.

    Where Megatron's order is as good as any, it is the placement.

    Raises:
        EncodingBug: the prediction says another time.
    """
    question = ledger.candidates.question
    run = TrainingRun(question.model, question.batch, ledger.candidates.columns.strategy(row))
    place, matrix = _placed(ledger, timing, row)
    prediction = predict(run, question.topology, question.efficiency, Placement(matrix))
    claimed_s, found = _claimed(ledger, timing, row, place)
    with_programs = prediction
    if found:
        prices = {name: answer.seconds for name, answer in found.items()}
        device = question.topology.known_device
        with_programs = predict_with(run, device, question.efficiency, prices)
    _check(run, matrix, claimed_s, with_programs.time.iteration_s)
    status = Status.OPTIMAL if exact(ledger, row) else Status.FEASIBLE
    return PlannedStrategy(
        run.strategy,
        matrix,
        with_programs.time.iteration_s,
        prediction,
        status,
        tuple(_programs(prediction, found)),
        with_programs if found else None,
    )


def learn_usual(
    ledger: Ledger, timing: StrategyTiming, rows: Sequence[int], watch: StopWatch
) -> None:
    """Find what rows take in Megatron's order where that may be as good as their best placement.

    So whether it is does not depend on which programs happen to be known.  Nothing is raised: where
    no time is left, it is not as good for all that is known.
    """
    try:
        for row in rows:
            usual = _usual(ledger, timing, row)
            if usual is not None:
                timing.learn(row, usual[0], ledger.time_s[row] * (1 + SAME), watch)
    except OutOfTimeError:
        pass


def _placed(ledger: Ledger, timing: StrategyTiming, row: int) -> tuple[int, Matrix]:
    """The class of the best placement and a matrix of it: Megatron's order, if that is as good."""
    usual = _usual(ledger, timing, row)
    if usual is not None:
        seconds = timing.known_s(row, usual[0])
        if seconds is not None and seconds <= ledger.time_s[row] * (1 + SAME):
            return usual
    place = int(ledger.place[row])
    placed = timing.pricing.placed(int(ledger.candidates.block[row]))
    return place, as_matrix(placed.matrices[place])


def _usual(ledger: Ledger, timing: StrategyTiming, row: int) -> tuple[int, Matrix] | None:
    """The class of Megatron's order and its matrix, where that obeys the rules."""
    question = ledger.candidates.question
    usual = default_placement(question.topology, ledger.candidates.columns.strategy(row))
    if usual is None or not obeys(usual.matrix, question.rules):
        return None
    placed = timing.pricing.placed(int(ledger.candidates.block[row]))
    return placed.class_of(np.array(usual.matrix, dtype=np.int64)), usual.matrix


def _claimed(
    ledger: Ledger, timing: StrategyTiming, row: int, place: int
) -> tuple[float, dict[str, RequestAnswer]]:
    """What the search says of a row on a class of placements: seconds, and the programs for it.

    Programs that a limit cut short may take longer than the single collectives that the time on
    the ledger was found with: then there are none.
    """
    timed_s, known_s = float(ledger.time_s[row]), timing.known_s(row, place)
    found = timing.answers(row, place)
    mine = place == ledger.place[row]
    if known_s is None or (mine and (not found or known_s > timed_s * (1 + SAME))):
        return timed_s, {}
    return known_s, found


def _programs(prediction: Prediction, found: dict[str, RequestAnswer]) -> list[RequestAnswer]:
    """The programs of the requests of a prediction, each with its axes and calls."""
    asked = [one.request for one in prediction.requests if one.request.name in found]
    return [
        replace(
            found[one.name],
            request=Request(one.kind, one.axes, one.payload_bytes, one.calls),
        )
        for one in asked
    ]


def _check(run: TrainingRun, matrix: Matrix, claimed_s: float, predicted_s: float) -> None:
    if not isclose(claimed_s, predicted_s, rel_tol=_TIGHT):
        text = f"the search claims {claimed_s} s, the prediction says {predicted_s} s"
        raise EncodingBug(text, str(run), matrix)
