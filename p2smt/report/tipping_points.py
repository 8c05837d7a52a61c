"""Where another answer wins first, in words: what changes, how far, and what is best from there."""

from __future__ import annotations

from p2smt.parallelism.request import Problem
from p2smt.plans.explanation import SEARCHED, ChangedNumber, NearestTippingPoint
from p2smt.units import plain

_WAYS = {
    ("bandwidth", False): "slower",
    ("bandwidth", True): "faster",
    ("latency", False): "shorter",
    ("latency", True): "longer",
    ("call", False): "cheaper",
    ("call", True): "dearer",
    ("payload", False): "smaller",
    ("payload", True): "larger",
}


def changed_thing(number: ChangedNumber) -> str:
    """What changes, such as ``node links``."""
    match number.what:
        case "bandwidth":
            return f"{number.of} links"
        case "latency":
            return f"{number.of} latencies"
        case "call":
            return "calls"
        case _:
            return f"{number.of}"


def way(number: ChangedNumber) -> str:
    """In which direction, such as ``slower``."""
    return _WAYS[number.what, number.grows]


def times(factor: float) -> str:
    """A factor from 1 on; one that rounds to 1 is shown with what it has beyond it."""
    if factor == 1:
        return "1x"
    text = plain(factor)
    return f"{plain(factor, 6)}x" if text == "1" else f"{text}x"


def winner(flip: NearestTippingPoint) -> str:
    """What wins beyond a flip."""
    if flip.request is not None:
        return f"{flip.request}: {flip.program}"
    return f"placement {matrix_text(flip.matrix or ())}"


def programs_text(problem: Problem, *, many: bool = False) -> str:
    """The programs that a problem allows: whatever is said of all is said of these."""
    kind, length = "programs" if many else "program", problem.max_length
    allowed = (
        " that the restrictions allow" if problem.forbidden_forms or problem.step_limits else ""
    )
    return f"{kind} of at most {length} instruction{'s' if length > 1 else ''}{allowed}"


def matrix_text(matrix: tuple[tuple[int, ...], ...]) -> str:
    """A matrix as everywhere."""
    return "[" + ",".join("[" + ",".join(map(str, row)) + "]" for row in matrix) + "]"


def tipping_point_text(flip: NearestTippingPoint) -> str:
    """A flip as one sentence."""
    number = flip.number
    if flip.factor is None:
        return f"{changed_thing(number)} {way(number)}: none up to {SEARCHED}x"
    if flip.factor == 1:
        return f"with {changed_thing(number)} ever so little {way(number)}, {winner(flip)} wins"
    return f"with {changed_thing(number)} {times(flip.factor)} {way(number)}, {winner(flip)} wins"
