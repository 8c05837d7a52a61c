"""`solve --explain` as data."""

from __future__ import annotations

from typing import Any

from p2smt.plans.explanation import SEARCHED, Explanation, NearestFlip, ProgramClaim
from p2smt.report.explained.words import flip_text


def explanation_data(found: Explanation | None) -> dict[str, Any] | None:
    """The explanation; None: it was not asked for."""
    if found is None:
        return None
    placed = found.placements
    return {
        "why": found.why or None,
        "linear": found.linear,
        "searched": SEARCHED,
        "nearest": _text(found.nearest()),
        "nearest_proved": found.nearest_proved(),
        "nearest_unsettled": found.unsettled(),
        "nearest_by_hardware": _text(found.nearest(hardware=True)),
        "nearest_by_hardware_proved": found.nearest_proved(hardware=True),
        "nearest_by_hardware_unsettled": found.unsettled(hardware=True),
        "flips": [_flip(flip) for flip in found.flips],
        "model": "rings, one protocol",
        "programs": [_program(claim) for claim in found.programs],
        "placements": placed
        and {
            "others": placed.others,
            "never_better": placed.never,
            "rivals": [[list(row) for row in matrix] for matrix in placed.rivals],
            "unsettled": placed.unsettled,
            "axes": list(placed.axes),
            "whole": placed.whole,
        },
    }


def _text(flip: NearestFlip | None) -> str | None:
    return None if flip is None else flip_text(flip)


def _flip(flip: NearestFlip) -> dict[str, Any]:
    number = flip.number
    return {
        "what": number.what,
        "of": number.of,
        "grows": number.grows,
        "request": flip.request,
        "outcome": flip.outcome.value,
        "factor": flip.factor,
        "exact": None if flip.exact is None else str(flip.exact),
        "proved": flip.proved,
        "tried": flip.tried,
        "matrix": flip.matrix and [list(row) for row in flip.matrix],
        "program": flip.program and str(flip.program),
        "why": flip.why or None,
    }


def _program(claim: ProgramClaim) -> dict[str, Any]:
    return {
        "request": claim.request,
        "program": str(claim.program),
        "verdict": claim.verdict.value,
        "among": [str(program) for program in claim.among],
        "why": claim.why or None,
    }
