"""What a status may say beside a time and its bound, wherever an output has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

TICKS = 1e-6
"""As a part of a time: so far it is rounded when a solver proves that it is the least."""
_GAP = re.compile(r"proved bound \S+ \S+ \(gap ([^)]*)\)")


def contradictions(value: object, where: str = "") -> list[str]:
    """Where the parts of an output contradict each other."""
    if isinstance(value, list):
        return [
            text for i, one in enumerate(value) for text in contradictions(one, f"{where}[{i}]")
        ]
    if not isinstance(value, dict):
        return []
    deeper = (contradictions(one, f"{where}.{key}") for key, one in value.items())
    own = (*_of_times(value), *_of_rates(value))
    return [*(f"{where}: {text}" for text in own), *(text for some in deeper for text in some)]


def _of_times(part: dict[str, Any]) -> Iterator[str]:
    time, bound, status = (part.get(key) for key in ("objective_s", "bound_s", "status"))
    if status == "optimal" and time is not None and "bound_s" in part and bound is None:
        yield f"optimal at {time}, without a bound"
    if time is None or bound is None:  # both, where bandwidths are not stated
        return
    if bound > time * (1 + TICKS):
        yield f"a bound of {bound} above {time}"
    if status == "optimal" and bound < time * (1 - TICKS):
        yield f"optimal at {time}, with a bound of {bound}"
    if part.get("gap") is not None and abs(part["gap"] * time - (time - bound)) > TICKS * time:
        yield f"a gap of {part['gap']} between {bound} and {time}"


def _of_rates(part: dict[str, Any]) -> Iterator[str]:
    """Of schedules: ``bound`` is of the rate R/C; a point's ``best`` is the least one found."""
    if not isinstance(part.get("bound"), str):
        return
    bound = Fraction(part["bound"])
    found = part.get("status") == "schedule"
    if found and part["optimal"] != (Fraction(part["rate"]) == bound):
        yield f"optimal {part['optimal']} at {part['rate']}, with a bound of {bound}"
    if part.get("best") is None:
        return
    best = Fraction(part["best"])
    if part["proved"] != (best == bound):
        yield f"proved {part['proved']} at {best}, with a bound of {bound}"
    if Fraction(part["gap"]) != (best - bound) / best:
        yield f"a gap of {part['gap']} between {bound} and {best}"


def told_gaps(text: str) -> list[str]:
    """The gaps to proved bounds in what is shown to people."""
    return _GAP.findall(text)


def gap_in_words(output: dict[str, Any]) -> str:
    """The gap between the time and the bound of an output."""
    time, bound = output["objective_s"], output["bound_s"]
    if bound >= time * (1 - 1e-8):
        return "0 %"
    percent = 100 * (time - bound) / time
    return f"{percent:.3g} %" if percent >= 0.001 else "under 0.001 %"
