"""The parts of an iteration's time by name: what shows, and what hides behind work."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from p2smt.workload.prediction import Prediction
from p2smt.workload.requests import AxisRequest

COMPUTE, BUBBLE, OPTIMIZER = "compute", "bubble", "optimizer"


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of an iteration; ``hidden_s`` runs beside other parts and adds nothing."""

    name: str
    seconds: float
    hidden_s: float = 0.0


def time_parts(prediction: Prediction) -> tuple[TimePart, ...]:
    """The parts, whose ``seconds`` sum to the iteration: work, each axis, optimizer."""
    time, hidden = prediction.time, _hidden(prediction)
    axes = [
        TimePart(axis, seconds, hidden[axis])
        for axis, seconds in time.communication_s
        if seconds > 0 or hidden[axis] > 0
    ]
    return (
        TimePart(COMPUTE, time.compute_s),
        TimePart(BUBBLE, time.bubble_s),
        *axes,
        TimePart(OPTIMIZER, time.optimizer_s),
    )


def _hidden(prediction: Prediction) -> dict[str, float]:
    """Seconds that each axis communicates unseen, by the names that the visible ones have."""
    known = [axis for axis, _ in prediction.time.communication_s]
    found: dict[str, float] = defaultdict(float)
    for priced in prediction.requests:
        found[_name(priced.request, known)] += priced.hidden_s
    return found


def _name(request: AxisRequest, known: list[str]) -> str:
    """The axis that a request is named after: what dp and cp share is dp's."""
    first = request.name.partition(" ")[0]
    return first if first in known else "+".join(request.axes)
