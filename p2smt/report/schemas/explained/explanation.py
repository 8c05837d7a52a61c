"""`explanation` in `solve --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.plans.explanation import FlipOutcome, NumberKind, ProgramVerdict
from p2smt.report.schemas.base import Count, OutputPart, RankMatrix


class NumberFlip(OutputPart):
    """By how much a number has to change before another answer wins, all others staying."""

    what: NumberKind
    of: Annotated[str | None, Field(description="Its level or request; null: the cost of calls.")]
    grows: Annotated[bool, Field(description="Multiplied by the factor; else divided by it.")]
    request: Annotated[
        str | None, Field(description="Whose program changes; null: the placement does.")
    ]
    outcome: Annotated[
        FlipOutcome,
        Field(
            description="flip: confirmed on both sides by solving again; none: none up to "
            "`searched`; open: not settled."
        ),
    ]
    factor: Annotated[float | None, Field(ge=1, description="null: no flip was found.")]
    exact: Annotated[
        str | None, Field(description="The factor as a fraction; null: costs are not linear.")
    ]
    proved: Annotated[
        bool, Field(description="None is nearer, or there is none; else by the factors tried.")
    ]
    tried: Annotated[Count, Field(description="Factors that were looked at.")]
    matrix: Annotated[RankMatrix | None, Field(description="The placement that wins beyond it.")]
    program: Annotated[str | None, Field(description="The program that wins beyond it.")]
    why: Annotated[str | None, Field(description="Why it is open; null: it is not.")]


class EverywhereProgram(OutputPart):
    """What holds of a request's program for every latency, bandwidth, payload and cost of calls.

    It is held against the programs up to the longest asked for that the restrictions allow.
    """

    request: str
    program: str
    verdict: Annotated[
        ProgramVerdict,
        Field(
            description="best: none is ever cheaper on this placement; sufficient: one of those in "
            "`among`; other: none of those; open: not settled."
        ),
    ]
    among: Annotated[
        list[str], Field(description="Fewest programs of which one is always a best one.")
    ]
    why: Annotated[str | None, Field(description="Why it is open; null: it is not.")]


class EverywherePlacements(OutputPart):
    """Which placements can win for some bandwidths, payloads, costs of calls and latencies.

    Of latencies none is shorter than that of a level further in.
    """

    others: Annotated[Count, Field(description="Placements beside the answer's, looked at.")]
    never_better: Annotated[Count, Field(description="Of these, proved never to be better.")]
    rivals: Annotated[list[RankMatrix], Field(description="The rest.")]
    unsettled: Annotated[Count, Field(description="Rivals for want of time, or of a linear cost.")]
    axes: Annotated[
        list[str], Field(description="Axes that lie alike in the answer and in every rival.")
    ]
    whole: Annotated[bool, Field(description="These are all placements.")]


class ExplainedAnswer(OutputPart):
    """What the answer rests on."""

    why: Annotated[str | None, Field(description="Why it is not explained; null: it is.")]
    linear: Annotated[bool, Field(description="Costs are linear: factors are exact.")]
    searched: Annotated[Count, Field(description="Factors from 1 to this.")]
    nearest: Annotated[
        str | None,
        Field(description="The nearest flip of the placement found, in words; null: none."),
    ]
    nearest_proved: Annotated[
        bool, Field(description="No flip of the placement is nearer; without one there is none.")
    ]
    nearest_unsettled: Annotated[
        Count, Field(description="Flips of the placement that are open: one may be nearer.")
    ]
    nearest_by_hardware: Annotated[
        str | None, Field(description="The nearest one that no payload makes; null: none.")
    ]
    nearest_by_hardware_proved: Annotated[bool, Field(description="The same of these.")]
    nearest_by_hardware_unsettled: Annotated[Count, Field(description="The same of these.")]
    flips: list[NumberFlip]
    model: Annotated[
        Literal["rings, one protocol"], Field(description="In which what follows holds.")
    ]
    programs: list[EverywhereProgram]
    placements: EverywherePlacements | None
