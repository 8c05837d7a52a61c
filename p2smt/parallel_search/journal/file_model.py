"""The keys of a journal's lines: one JSON object a line, told apart by ``record``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, RootModel, model_validator

from p2smt.errors import InputError
from p2smt.files.validation import StrictModel
from p2smt.parallel_search.journal.record import SEEDS
from p2smt.parallel_search.subproblem import SearchKind, SubproblemVerdict

JOURNAL_VERSION = 1

Path = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Field(description="A cube: its decisions, outermost first; none: the whole space."),
]
WallSeconds = Annotated[
    float, Field(ge=0, allow_inf_nan=False, description="Wall seconds since the search began.")
]
Ticks = Annotated[int, Field(description="In ticks, the unit of the search.")]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="64 hexadecimal digits.")]
Versions = dict[str, str]


class WitnessPart(StrictModel):
    """A member of the space."""

    value: Ticks
    tie: Annotated[list[int], Field(description="Its place among those of the same value.")]
    witness: Annotated[str, Field(description="The text from which it is made again.")]


class HeaderLine(StrictModel):
    """The first line: which search it is."""

    record: Literal["header"]
    journal_version: Literal[1]
    space: Annotated[str, Field(min_length=1, description="What kind of space is searched.")]
    skeleton: Annotated[Literal["enumerate", "optimise", "decide"], Field(description="The task.")]
    description: Annotated[dict[str, Any], Field(description="The question; the space knows it.")]
    top: Annotated[int, Field(ge=1, description="How many best members are sought.")]
    scale: Annotated[str, Field(description="What a tick is.")]
    cube_rule: Annotated[str, Field(description="How the space is cut into cubes.")]
    roots: Annotated[list[Path], Field(description="The first cubes.")]
    digest: Annotated[Digest, Field(description="SHA-256 of the question, all keys above.")]
    options: Annotated[dict[str, Any], Field(description="How it is searched.")]
    versions: Annotated[Versions, Field(description="Of Python, p2smt and the solvers.")]

    def kind(self) -> SearchKind:
        """What is asked of the space."""
        return SearchKind(self.skeleton)


class ContinuedLine(StrictModel):
    """The search goes on in another process; times count from here."""

    record: Literal["continued"]
    at_s: WallSeconds
    options: dict[str, Any]
    versions: Versions


class SplitLine(StrictModel):
    """A cube was replaced by all its children."""

    record: Literal["split"]
    at_s: WallSeconds
    cube: Path
    children: list[Path]
    seconds: Annotated[WallSeconds, Field(description="That a worker had the cube before.")] = 0.0
    worker: str = ""


class ClosedLine(StrictModel):
    """A cube was closed."""

    model_config = ConfigDict(
        json_schema_extra={
            "$comment": "Not said here: a solved cube has members, an empty one none, a listed one "
            "count and digest; and no bound is more than the best member costs."
        }
    )

    record: Literal["closed"]
    at_s: WallSeconds
    cube: Path
    verdict: Annotated[
        Literal["empty", "solved", "bounded", "listed", "unknown"],
        Field(description="All but unknown are proofs."),
    ]
    bound: Annotated[Ticks | None, Field(description="No member costs less; null: not known.")]
    best: Annotated[list[WitnessPart], Field(description="Its best members, in order.")]
    by_formula: Annotated[bool, Field(description="Whether the bound needs no solver.")]
    count: Annotated[int | None, Field(ge=0, description="Of the members that were listed.")]
    digest: Annotated[Digest | None, Field(description="Of the members that were listed.")]
    seed: Annotated[int, Field(ge=0, lt=SEEDS, description="Of the solver.")]
    seconds: WallSeconds
    worker: str
    deaths: Annotated[int, Field(ge=0, description="Of workers, for which it was given up.")] = 0

    @model_validator(mode="after")
    def _fits_its_verdict(self) -> ClosedLine:
        values = [one.value for one in self.best]
        shown = f"verdict {self.verdict!r}"
        match SubproblemVerdict(self.verdict):
            case SubproblemVerdict.EMPTY if values or self.count:
                raise InputError(shown, "has members on record", "they contradict each other")
            case SubproblemVerdict.SOLVED if not values:
                raise InputError(shown, "has no member on record", "an empty cube is 'empty'")
            case SubproblemVerdict.LISTED if self.count is None or self.digest is None:
                raise InputError(shown, "has no count or no digest on record", "state both")
        if values and self.bound is not None and self.bound > values[0]:
            rule = f"is more than its best member costs ({values[0]})"
            raise InputError(f"bound {self.bound}", rule, "no member may cost less than the bound")
        return self


class IncumbentLine(StrictModel):
    """A member that was better than all before."""

    record: Literal["incumbent"]
    at_s: WallSeconds
    member: WitnessPart


AnyLine = HeaderLine | ContinuedLine | SplitLine | ClosedLine | IncumbentLine
LINES: dict[str, type[AnyLine]] = {
    "header": HeaderLine,
    "continued": ContinuedLine,
    "split": SplitLine,
    "closed": ClosedLine,
    "incumbent": IncumbentLine,
}
"""The models by the key ``record``."""


class JournalLineModel(RootModel[Annotated[AnyLine, Field(discriminator="record")]]):
    """A line of a journal."""
