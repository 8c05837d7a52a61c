"""`verify JOURNAL --json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.report.schemas.base import Count, Output, OutputPart

Share = Annotated[str, Field(description="A whole number or a fraction, as text.")]


class SoughtMember(OutputPart):
    """A member that the search was for."""

    value: Annotated[int, Field(description="Its cost in ticks.")]
    witness: Annotated[str, Field(description="The text that it was made again from.")]


class JournalCover(OutputPart):
    """The closed cubes against the whole space."""

    complete: Annotated[bool, Field(description="Whether they are a partition of it.")]
    cubes: Annotated[Count, Field(description="Closed cubes, none inside another.")]
    open: Annotated[Count, Field(description="Cubes without a verdict.")]
    counted_in: Annotated[str, Field(description="What shares are counts of.")]
    counted: Annotated[Share, Field(description="What the closed cubes hold together.")]
    whole: Annotated[Share, Field(description="What the space holds.")]


class GivenUpCube(OutputPart):
    """A cube without a verdict, at which workers died."""

    cube: Annotated[list[str], Field(description="Its decisions, outermost first.")]
    deaths: Annotated[int, Field(ge=1, description="Of workers, after which it was given up.")]


class JournalVerdicts(OutputPart):
    """Verdicts that rest on a solver's word."""

    recorded: Annotated[Count, Field(description="How many there are.")]
    solved_again: Annotated[Count, Field(description="How many were given to a solver again.")]
    agreed: Annotated[Count, Field(description="Of these, how many nothing speaks against.")]
    unchecked: Annotated[Count, Field(description="How many the answer takes at their word.")]
    out_of_time: Annotated[Count, Field(description="How many got no answer in time.")]
    solver: Annotated[str, Field(description="Which solver; empty: as the search had it.")]
    another: Annotated[bool, Field(description="Whether it is another than the search had.")]
    disagreements: list[str]


class VerifyJournalOutput(Output):
    """The verdict on a journal."""

    verdict: Annotated[
        Literal["valid", "unproved", "invalid"],
        Field(description="unproved: nothing is wrong, but not every cube is closed by a proof."),
    ]
    proved: Annotated[
        bool, Field(description="Whether it is valid and no verdict is taken at its word.")
    ]
    violations: Annotated[list[str], Field(description="What is wrong, without solving.")]
    space: str
    skeleton: Literal["enumerate", "optimise", "decide"]
    top: Annotated[int, Field(ge=1, description="How many best members were sought.")]
    scale: Annotated[str, Field(description="What a tick is.")]
    status: Annotated[
        Literal["optimal", "feasible", "infeasible", "unknown", "complete", "truncated"] | None,
        Field(description="Of the answer made again; null: there is none."),
    ]
    best: list[SoughtMember]
    bound: Annotated[int | None, Field(description="Ticks that no member costs less than.")]
    count: Annotated[int | None, Field(description="Of the members that were listed.")]
    digest: Annotated[str | None, Field(description="Of the members that were listed.")]
    cover: JournalCover
    unsettled: Annotated[Count, Field(description="Cubes that may hold a better member.")]
    given_up: Annotated[list[GivenUpCube], Field(description="Of them, after deaths of workers.")]
    by_formula: Annotated[Count, Field(description="Cubes set aside by a bound computed again.")]
    members: Annotated[Count, Field(description="Members, each made again from its witness.")]
    verdicts: JournalVerdicts
    records: Annotated[Count, Field(description="Lines after the header.")]
    repeated: Annotated[Count, Field(description="Late and duplicate verdicts.")]
    torn_bytes: Annotated[Count, Field(description="Of a last line that is not whole.")]
    versions: Annotated[dict[str, str], Field(description="That the search began with.")]
