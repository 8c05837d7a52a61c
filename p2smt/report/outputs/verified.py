"""``verify --json`` of the journal of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from p2smt.report.outputs.shape import Count, Output, OutputPart, Said

# `verify JOURNAL --json`.


Share = Annotated[str, Said("A whole number or a fraction, as text.")]


class SoughtMember(OutputPart):
    """A member that the search was for."""

    value: Annotated[int, Said("Its cost in ticks.")]
    witness: Annotated[str, Said("The text that it was made again from.")]


class JournalCover(OutputPart):
    """The closed cubes against the whole space."""

    complete: Annotated[bool, Said("Whether they are a partition of it.")]
    cubes: Annotated[Count, Said("Closed cubes, none inside another.")]
    open: Annotated[Count, Said("Cubes without a verdict.")]
    counted_in: Annotated[str, Said("What shares are counts of.")]
    counted: Annotated[Share, Said("What the closed cubes hold together.")]
    whole: Annotated[Share, Said("What the space holds.")]


class GivenUpCube(OutputPart):
    """A cube without a verdict, at which workers died."""

    cube: Annotated[Sequence[str], Said("Its decisions, outermost first.")]
    deaths: Annotated[int, Said("Of workers, after which it was given up.", ge=1)]


class JournalVerdicts(OutputPart):
    """Verdicts that rest on a solver's word."""

    recorded: Annotated[Count, Said("How many there are.")]
    solved_again: Annotated[Count, Said("How many were given to a solver again.")]
    agreed: Annotated[Count, Said("Of these, how many nothing speaks against.")]
    unchecked: Annotated[Count, Said("How many the answer takes at their word.")]
    out_of_time: Annotated[Count, Said("How many got no answer in time.")]
    solver: Annotated[str, Said("Which solver; empty: as the search had it.")]
    another: Annotated[bool, Said("Whether it is another than the search had.")]
    disagreements: Sequence[str]


class VerifyJournalOutput(Output):
    """The verdict on a journal."""

    verdict: Annotated[
        Literal["valid", "unproved", "invalid"],
        Said("unproved: nothing is wrong, but not every cube is closed by a proof."),
    ]
    proved: Annotated[bool, Said("Whether it is valid and no verdict is taken at its word.")]
    violations: Annotated[Sequence[str], Said("What is wrong, without solving.")]
    space: str
    skeleton: Literal["enumerate", "optimise", "decide"]
    top: Annotated[int, Said("How many best members were sought.", ge=1)]
    scale: Annotated[str, Said("What a tick is.")]
    status: Annotated[
        Literal["optimal", "feasible", "infeasible", "unknown", "complete", "truncated"] | None,
        Said("Of the answer made again; null: there is none."),
    ]
    best: Sequence[SoughtMember]
    bound: Annotated[int | None, Said("Ticks that no member costs less than.")]
    count: Annotated[int | None, Said("Of the members that were listed.")]
    digest: Annotated[str | None, Said("Of the members that were listed.")]
    cover: JournalCover
    unsettled: Annotated[Count, Said("Cubes that may hold a better member.")]
    given_up: Annotated[Sequence[GivenUpCube], Said("Of them, after deaths of workers.")]
    by_formula: Annotated[Count, Said("Cubes set aside by a bound computed again.")]
    members: Annotated[Count, Said("Members, each made again from its witness.")]
    verdicts: JournalVerdicts
    records: Annotated[Count, Said("Lines after the header.")]
    repeated: Annotated[Count, Said("Late and duplicate verdicts.")]
    torn_bytes: Annotated[Count, Said("Of a last line that is not whole.")]
    versions: Annotated[Mapping[str, str], Said("That the search began with.")]


# Of files that tell a library which algorithm to run.


class TunerFault(OutputPart):
    """Something that nobody can have meant."""

    name: Annotated[str, Said("Short, such as gap.")]
    line: Annotated[int, Said("From 1; 0: of the whole file.", ge=0)]
    what: str


class TunerRow(OutputPart):
    """What runs for the sizes from first to last, both included."""

    collective: str
    comm: Annotated[str, Said("Nodes x ranks per node.")]
    first: Annotated[Count, Said("Bytes of the whole vector.")]
    last: Annotated[Count, Said("Bytes of the whole vector.")]
    algorithm: Annotated[str | None, Said("null: the library's own choice.")]
    protocol: Annotated[str | None, Said("null: the library's own choice.")]
    settings: Annotated[str, Said("Numbers that go with it, such as channels=1.")]


class VerifyTunerOutput(Output):
    """What a file makes its library do."""

    verdict: Literal["right", "faults"]
    format: str
    faults: Sequence[TunerFault]
    notes: Annotated[Sequence[str], Said("What was not looked at, and what else must be set.")]
    table: Sequence[TunerRow]
