"""The shape of a schedule file: its keys as pydantic models.  docs/schedule-file.md explains it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic.config import JsonDict

from p2smt.collectives.names import COLLECTIVES
from p2smt.files.validation import StrictModel


def _as_text(given: object) -> object:
    return str(given) if type(given) is int else given


def _kind_of(item: object) -> str:
    return "group" if isinstance(item, dict | StrictModel) else "text"


Number = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["integer", "string"]})]
"""A whole number or an expression, as text."""


class GroupModel(StrictModel):
    """Lines that are repeated, or that are there only ``when`` a condition holds.

    repeat: ranges by name, as in ``t: 0..n-2``; the last name changes fastest.
    holds: what memory holds before every turn: the invariant of a proof for all sizes.
    """

    repeat: dict[str, Number] = Field(default_factory=dict)
    when: Number | None = None
    holds: list[str] = Field(default_factory=list)
    do: list[Item]


Item = Annotated[
    Annotated[str, Tag("text")] | Annotated[GroupModel, Tag("group")], Discriminator(_kind_of)
]
"""A line of text or a group of lines."""


_ABSENT: JsonDict = {"type": "null"}
_NAMED_OR_TOLD: JsonDict = {
    "$comment": "Not said here: numbers are whole, or expressions of parameters; lines are as "
    "docs/schedule-file.md says; what they name exists and fits.",
    "anyOf": [
        {"properties": {"goals": {"not": _ABSENT}}, "required": ["goals"]},
        {
            "properties": {
                "kind": {"enum": [*COLLECTIVES]},
                "chunks": {"not": _ABSENT},
                "goals": _ABSENT,
                "starts": _ABSENT,
                "shift": _ABSENT,
            },
            "required": ["chunks"],
        },
    ],
}


class CollectiveModel(StrictModel):
    """What the schedule must do; with ``goals`` given, ``kind`` is only a name.

    chunks: of the smaller buffer (docs/schedule-file.md).
    starts: per rank, what its input chunks hold, as in ``i[0..1]@0, nothing``.
    goals: output chunks and their sums, as in ``o[0]@1 = i[0]@0 + i[0]@1``.
    shift: per rank, in place: where the input lies in the output, or minus the reverse.
    """

    model_config = ConfigDict(json_schema_extra=_NAMED_OR_TOLD)

    kind: str
    chunks: Number | None = None
    in_place: bool = False
    root: Number = "0"
    starts: list[str] | None = None
    goals: list[Item] | None = None
    shift: list[Number] | None = None


class BuffersModel(StrictModel):
    """Chunks in the buffers of a rank; what is absent follows from the collective."""

    input: Number | None = None
    output: Number | None = None
    scratch: Number = "0"


class BlockModel(StrictModel):
    """A thread block.  ``rank: each`` (the default): one on every rank."""

    repeat: dict[str, Number] = Field(default_factory=dict)
    rank: Number = "each"
    block: Number = "0"
    when: Number | None = None
    steps: list[Item]


class ParameterModel(StrictModel):
    """The values that a parameter may have."""

    at_least: Annotated[int, Field(ge=0, lt=2**31)] = 1
    at_most: Annotated[int, Field(ge=0, lt=2**31)] | None = None


class SymmetryModel(StrictModel):
    """A symmetry: where it takes ranks, chunks of a part, and chunks of scratch.

    Each is ``shift N``, ``shift N in M`` (in every run of M), cycles such as ``(0 1)(2 3)``, or an
    expression of the number that is taken, ``rank`` or ``chunk``.
    """

    ranks: Number
    chunks: Number = "shift 0"
    scratch: Number = "shift 0"


class FileModel(StrictModel):
    """A schedule file.

    parameters: free ones with their range, and those that follow from them (``n: 2^k``).
    buffers: for all ranks (expressions may name ``rank``), or one entry per rank.
    initial: counters that do not start at 0, as in ``ready[0] = 1``.
    symmetry: symmetries that make the programs of all ranks of those in ``blocks``.
    """

    p2smt_schedule: Literal[1]
    name: str = ""
    form: str = "yaml"
    protocol: str = "Simple"
    parameters: dict[str, ParameterModel | Number] = Field(default_factory=dict)
    collective: CollectiveModel
    ranks: Number
    buffers: BuffersModel | list[BuffersModel] = BuffersModel()
    initial: list[Item] = Field(default_factory=list)
    symmetry: list[SymmetryModel] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    blocks: list[BlockModel]
