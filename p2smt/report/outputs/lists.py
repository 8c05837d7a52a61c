"""What lists: topologies, fabrics, classics, schemas, placements and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from p2smt.collectives.names import RequestKind
from p2smt.fabric.fabric import FabricEdge
from p2smt.programs.basis import ProofBasis
from p2smt.report.outputs.orders import NamedAlgorithm, SizedName
from p2smt.report.outputs.shape import (
    Count,
    Noted,
    Output,
    OutputPart,
    RankMatrix,
    Said,
    ScheduleData,
    Seconds,
    TopologyData,
)
from p2smt.result import Status

# JSON of `topology list | show | check | fabric | import`, of `classics` and of `schema`.


Devices = Annotated[int, Said("How many devices it has.", ge=1)]
ParameterValue = bool | int | Sequence[int] | None


@dataclass(frozen=True, kw_only=True)
class TopologyListOutput(Output):
    """The presets: level hierarchies, and fabrics."""

    presets: Sequence[str]
    fabrics: Sequence[str]


FractionText = Annotated[str, Said(pattern=r"^[0-9]+(/[0-9]+)?$", description="A fraction.")]


@dataclass(frozen=True, kw_only=True)
class FabricCapacity(OutputPart):
    """What edges share."""

    name: str
    bandwidth: Annotated[FractionText, Said("Chunks in a round, in units.")]


FabricWay = Annotated[
    FabricEdge,
    Noted(
        source=Said(ge=0),
        target=Said(ge=0),
        loads=Said("Numbers of capacities.", min_length=1),
    ),
    Said("An edge from one rank to another."),
]


@dataclass(frozen=True, kw_only=True)
class TopologyFabricOutput(Output):
    """One fabric."""

    name: str
    ranks: Annotated[int, Said(ge=1)]
    unit: Annotated[str | None, Said("Of bandwidth; null: they have none.")]
    capacities: Sequence[FabricCapacity]
    edges: Annotated[Sequence[FabricWay], Said("Sorted.")]
    symmetries: Annotated[
        Sequence[Sequence[int]], Said("Those the file names: where each rank goes.")
    ]


@dataclass(frozen=True, kw_only=True)
class TopologyShowOutput(Output):
    """One topology."""

    topology: TopologyData
    devices: Devices


@dataclass(frozen=True, kw_only=True)
class TopologyCheckOutput(Output):
    """A topology file that is well formed; of another there is an error instead."""

    verdict: Literal["valid"]
    name: str
    devices: Devices


@dataclass(frozen=True, kw_only=True)
class ImportedLevel(OutputPart):
    """A level of an imported topology."""

    name: str
    size: Annotated[int, Said(ge=1)]
    ports: Annotated[int, Said("Uplinks of an entity.", ge=1)]
    bandwidth_bytes_per_s: Annotated[float, Said("Of a port, in one direction.")]
    assumed: Annotated[bool, Said("Nobody stated the bandwidth: taken as that of all its nodes.")]


@dataclass(frozen=True, kw_only=True)
class TopologyImportOutput(Output):
    """What was made of files of a cluster."""

    levels: Annotated[Sequence[ImportedLevel], Said("Outermost first.")]
    hosts: Annotated[Sequence[str], Said("In the order of the devices; empty: unnamed.")]
    left_out: Annotated[Sequence[str], Said("Hosts that are in no one certain place.")]
    lost: Annotated[Sequence[str], Said("What was left out or filled in, in sentences.")]
    devices: Annotated[int, Said("How many there are on the hosts.", ge=1)]
    topology: TopologyData


@dataclass(frozen=True, kw_only=True)
class ListedClassic(OutputPart):
    """A classic algorithm."""

    name: str
    collective: str
    ranks: Annotated[str, Said("Which numbers of ranks it takes, in words.")]
    parameters: Annotated[Mapping[str, ParameterValue], Said("With their defaults.")]
    summary: str


@dataclass(frozen=True, kw_only=True)
class ClassicsOutput(Output):
    """The classic algorithms."""

    classics: Sequence[ListedClassic]


@dataclass(frozen=True, kw_only=True)
class ClassicOutput(Output):
    """A classic algorithm that was made (``classics NAME``)."""

    name: str
    ranks: Annotated[int, Said(ge=1)]
    steps: Count
    output: Annotated[str | None, Said("The file that it was written to.")]
    schedule: Annotated[
        ScheduleData | None, Said("The schedule file as data; null: it was written.")
    ]


@dataclass(frozen=True, kw_only=True)
class ListedSchema(OutputPart):
    """A schema that `schema NAME` prints."""

    name: str
    of: Annotated[str, Said("What it is the schema of.")]


@dataclass(frozen=True, kw_only=True)
class SchemaOutput(Output):
    """The schemas (`schema` without a name)."""

    schemas: Sequence[ListedSchema]


# `placements --json` and `programs --json`.


@dataclass(frozen=True, kw_only=True)
class PlacementsOutput(Output):
    """Every parallelism matrix of a cluster and its axes, each once."""

    status: Status
    count: Count
    levels: Annotated[Sequence[SizedName], Said("Outermost first.")]
    axes: Sequence[SizedName]
    placements: Annotated[Sequence[RankMatrix], Said("A row per axis, an entry per level.")]
    conflict: Annotated[
        Sequence[str], Said("Restrictions that leave no answer; of an infeasible one.")
    ]
    notes: Annotated[Sequence[str], Said("What else is to be known, in words.")]


@dataclass(frozen=True, kw_only=True)
class ProgramEntry(OutputPart):
    """A program of a list of all."""

    text: str
    instructions: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class TimedProgramEntry(ProgramEntry):
    """A program of a list of the best."""

    seconds: Annotated[Seconds | None, Said("Seconds; null: no size was given.")]
    checked: Annotated[str, Said("What it was simulated on.")]


@dataclass(frozen=True, kw_only=True)
class CountedPrograms(OutputPart):
    status: Status
    basis: Annotated[Sequence[ProofBasis], Said("Why no program is missed; empty: some may be.")]
    count: Count
    count_by_length: Annotated[
        Sequence[Count], Said("How many have one instruction, two, and so on.")
    ]


@dataclass(frozen=True, kw_only=True)
class EveryProgram(CountedPrograms):
    """Every valid program."""

    checked: Annotated[str, Said("What the programs were simulated on.")]
    programs: Sequence[ProgramEntry]


@dataclass(frozen=True, kw_only=True)
class BestPrograms(CountedPrograms):
    """The best programs: by time, or without a size by length.

    By time they stand beside the single collective of the request.
    """

    single_collective_s: Annotated[
        Seconds | None, Said("Seconds, as the library chooses it; null: not priced.")
    ]
    program_gain: Annotated[
        float | None,
        Said("That over the best program's time, less one; null: no gain.", ge=0),
    ]
    gain_by_choice: Annotated[
        float | None,
        Said(
            ge=0,
            description="The same of naming an algorithm without a program; null: no gain.",
        ),
    ]
    named_algorithm: Annotated[
        NamedAlgorithm | None, Said("That one; null: the library chooses it anyway.")
    ]
    programs: Sequence[TimedProgramEntry]


@dataclass(frozen=True, kw_only=True)
class _WithRequest(OutputPart):
    kind: RequestKind
    axes: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class EveryProgramOfRequest(EveryProgram, _WithRequest):
    """Every valid program of one of several requests."""


@dataclass(frozen=True, kw_only=True)
class BestProgramsOfRequest(BestPrograms, _WithRequest):
    """The best programs of one of several requests."""


@dataclass(frozen=True, kw_only=True)
class EveryProgramOutput(EveryProgram, Output):
    """Of one request, or of factors."""


@dataclass(frozen=True, kw_only=True)
class BestProgramsOutput(BestPrograms, Output):
    """The same with --top."""


@dataclass(frozen=True, kw_only=True)
class RequestProgramsOutput(Output):
    """Of several requests."""

    status: Annotated[Status, Said("complete: every list is.")]
    requests: Sequence[EveryProgramOfRequest] | Sequence[BestProgramsOfRequest]


ProgramsOutput = EveryProgramOutput | BestProgramsOutput | RequestProgramsOutput
"""Every valid program, or the best ones: which of these it is follows from the options."""
