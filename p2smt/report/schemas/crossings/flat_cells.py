"""Cells by themselves: what is best, and from where to where each number goes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.report.schemas.base import Count, OutputPart
from p2smt.report.schemas.crossings.symbolic import Rational

EqualCosts = Annotated[Count, Field(description="How many other costs are equal there.")]


class NumberRange(OutputPart):
    """From where to where a number goes."""

    from_: Annotated[Rational, Field(alias="from")]
    to: Annotated[Rational | None, Field(description="null: without end.")]


class FlatCell(OutputPart):
    """A cell by itself: its best program, and from where to where each number goes.

    Ratios are of the outermost level to the innermost, the payload is x = n beta / alpha of the
    innermost; ``inner_`` ratios are those of the levels between.
    """

    program: str
    payload: NumberRange
    bandwidth_ratio: NumberRange
    latency_ratio: NumberRange
    cost_per_call: NumberRange
    inner_bandwidth_ratios: list[Rational]
    inner_latency_ratios: list[Rational]
    equal: EqualCosts
