"""The part ``answer`` of a plan file: what the search that found it said beside the plan."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.files.validation import StrictModel

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Bytes = Annotated[int, Field(ge=0, lt=2**62)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Word = Annotated[str, Field(min_length=1, max_length=4096)]
MAX_POINTS = 1000
"""The most strategies near the best that a file lists."""


class PointBlock(StrictModel):
    """A strategy near the best; ``parts``: of its seconds, by name."""

    strategy: Word
    iteration_s: Seconds
    memory_bytes: Bytes
    parts: dict[str, Seconds]


class LinkLoadBlock(StrictModel):
    """How long the busiest link of a level is occupied in an iteration, all and by request.

    Each request has a busiest link of its own: together they occupy no link longer.
    """

    level: Word
    busy_s: Seconds
    requests: dict[str, Seconds]


class BesideBlock(StrictModel):
    """Another order of ranks with its time, one collective for each request."""

    name: Word
    seconds: Seconds


class AnswerBlock(StrictModel):
    """What a search said; null: not known, or not asked for.

    ``proof`` and ``gap`` are of all that was searched, not of the plan's requests alone; the gap is
    how much faster another may be at most.  ``outside``: how it lies outside of what was measured.
    ``reserve_bytes``: kept free on a device.  ``idle``: hosts of the job without ranks.
    """

    command: Word | None = None
    status: Literal["optimal", "feasible", "infeasible", "unknown", "complete", "truncated"]
    proof: str = ""
    gap: Rate | None = None
    outside: list[str] = Field(default_factory=list)
    reserve_bytes: Bytes | None = None
    tokens_per_s: Rate | None = None
    mfu: Rate | None = None
    within: Rate | None = None
    points: list[PointBlock] = Field(default_factory=list, max_length=MAX_POINTS)
    links: list[LinkLoadBlock] = Field(default_factory=list)
    beside: list[BesideBlock] = Field(default_factory=list)
    idle: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
