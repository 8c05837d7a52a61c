"""`cost --symbolic --json`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p2smt.collectives.names import RequestKind
from p2smt.report.schemas.base import Count, Output, OutputPart

Rational = Annotated[
    str, Field(pattern=r"^[0-9]+(/[0-9]+)?$", description="An exact number such as 31/16.")
]
PerLevel = Annotated[list[Rational], Field(description="A number for each level.")]


class NumbersPart(OutputPart):
    """What the symbols are on a topology: numbers that give its times in seconds."""

    c: Annotated[Rational, Field(description="Seconds of a call.")]
    alpha: Annotated[list[Rational], Field(description="Seconds of a message, for each level.")]
    beta: Annotated[
        list[Rational], Field(description="Seconds per byte of payload n, for each level.")
    ]


class FillPart(OutputPart):
    """Filling a pipeline: min(sqrt(factor n W S), most S).

    W is the largest of the loads' beta, S the sum over rows of the largest of their alpha.
    """

    factor: Rational
    loads: PerLevel
    stages: list[PerLevel]
    most: Annotated[Rational | None, Field(description="null: the root alone.")]


class FormPart(OutputPart):
    """A cost of which each step runs in one way: c calls + sum of A alpha + n sum of maxima."""

    calls: Annotated[Count, Field(description="The factor of c, the cost of a call.")]
    latency: Annotated[PerLevel, Field(description="A: the factors of the levels' alpha.")]
    maxima: Annotated[
        list[PerLevel], Field(description="Factors of beta: n times the largest of each is added.")
    ]


class AnyFormPart(OutputPart):
    """The same with parts of calls, and with fills, which are added."""

    calls: Annotated[Count | Rational, Field(description="The factor of c, the cost of a call.")]
    latency: Annotated[PerLevel, Field(description="A: the factors of the levels' alpha.")]
    maxima: Annotated[
        list[PerLevel], Field(description="Factors of beta: n times the largest of each is added.")
    ]
    fills: Annotated[list[FillPart], Field(description="Of steps that are pipelined.")]


class SymbolicWayPart(OutputPart):
    """One algorithm with one protocol for a step."""

    algorithm: str
    protocol: str
    calls: Annotated[Rational, Field(description="What its call costs, in units of c.")]
    latency: Annotated[PerLevel, Field(description="The factors of the levels' alpha.")]
    loads: Annotated[PerLevel, Field(description="The factors of beta: the largest counts.")]
    fill: Annotated[FillPart | None, Field(description="null: it is not pipelined.")]


class ChoicePart(OutputPart):
    """From ``low`` to ``high`` bytes of n a library takes one way."""

    low: Rational
    high: Annotated[Rational | None, Field(description="null: without end.")]
    below: Annotated[bool, Field(description="At high itself the next one holds.")]
    way: Annotated[Count, Field(description="Its place in ways.")]


class SymbolicStepPart(OutputPart):
    """A step; of its ways the fastest runs, and without any it costs nothing."""

    instruction: str
    ways: list[SymbolicWayPart]
    choice: Annotated[
        list[ChoicePart], Field(description="Which way a library takes; empty: the fastest.")
    ]


class FormCellPart(OutputPart):
    """From ``low`` to ``high`` bytes a program has one form, by a library's choice."""

    low: Rational
    high: Annotated[Rational | None, Field(description="null: without end.")]
    below: Annotated[bool, Field(description="At high itself the next one holds.")]
    form: AnyFormPart
    ways: Annotated[list[str], Field(description="Algorithm and protocol of each step.")]
    text: str
    latex: str


class SymbolicRequest(OutputPart):
    """A request with a program, and its cost."""

    kind: RequestKind
    axes: list[str]
    program: Annotated[str | None, Field(description="null: one fixed step, or nothing to do.")]
    steps: list[SymbolicStepPart]
    form: Annotated[AnyFormPart | None, Field(description="null: a step may run in several ways.")]
    cells: Annotated[
        list[FormCellPart], Field(description="By n, where a library chooses; else empty.")
    ]
    text: str
    latex: str


class SymbolicOutput(Output):
    """Costs before any number is known: several programs of one request, or several requests."""

    levels: Annotated[list[str], Field(description="Levels, outermost first.")]
    numbers: Annotated[
        NumbersPart | None, Field(description="What the symbols are there; null: no request.")
    ]
    requests: list[SymbolicRequest]
