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


class FormPart(OutputPart):
    """A cost of which each step runs in one way: c calls + sum of A alpha + n sum of maxima."""

    calls: Annotated[Count, Field(description="The factor of c, the cost of a call.")]
    latency: Annotated[PerLevel, Field(description="A: the factors of the levels' alpha.")]
    maxima: Annotated[
        list[PerLevel], Field(description="Factors of beta: n times the largest of each is added.")
    ]


class SymbolicWayPart(OutputPart):
    """One algorithm with one protocol for a step."""

    algorithm: str
    protocol: str
    latency: Annotated[PerLevel, Field(description="The factors of the levels' alpha.")]
    loads: Annotated[PerLevel, Field(description="The factors of beta: the largest counts.")]


class SymbolicStepPart(OutputPart):
    """A step; of its ways the fastest runs, and without any it costs nothing."""

    instruction: str
    ways: list[SymbolicWayPart]


class SymbolicRequest(OutputPart):
    """A request with a program, and its cost."""

    kind: RequestKind
    axes: list[str]
    program: Annotated[str | None, Field(description="null: one fixed step, or nothing to do.")]
    steps: list[SymbolicStepPart]
    form: Annotated[FormPart | None, Field(description="null: a step may run in several ways.")]
    text: str
    latex: str


class SymbolicOutput(Output):
    """Costs before any number is known: several programs of one request, or several requests."""

    levels: Annotated[list[str], Field(description="Levels, outermost first.")]
    requests: list[SymbolicRequest]
