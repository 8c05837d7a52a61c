"""What lists: topologies, fabrics, classics, schemas, placements and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from p2smt.fabric.fabric import FabricEdge
from p2smt.report.outputs.shape import (
    Count,
    FractionText,
    Noted,
    Output,
    OutputPart,
    RankMatrix,
    Said,
    ScheduleData,
    TopologyData,
)
from p2smt.result import Status

# JSON of `topology list | show | check | fabric | import`, of `models`, `classics` and `schema`.


Devices = Annotated[int, Said("How many devices it has.", ge=1)]
ParameterValue = bool | int | Sequence[int] | None


class TopologyListOutput(Output):
    """The presets: level hierarchies, and fabrics."""

    presets: Sequence[str]
    profiles: Annotated[
        Sequence[str], Said("Presets as one system was measured that differs, such as mi300x@cx7.")
    ]
    fabrics: Sequence[str]


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


class TopologyShowOutput(Output):
    """One topology."""

    topology: TopologyData
    devices: Devices


class TopologyCheckOutput(Output):
    """A topology file that is well formed; of another there is an error instead."""

    verdict: Literal["valid"]
    name: str
    devices: Devices


class ImportedLevel(OutputPart):
    """A level of an imported topology."""

    name: str
    size: Annotated[int, Said(ge=1)]
    ports: Annotated[int, Said("Uplinks of an entity.", ge=1)]
    bandwidth_bytes_per_s: Annotated[float, Said("Of a port, in one direction.")]
    assumed: Annotated[bool, Said("Nobody stated the bandwidth: taken as that of all its nodes.")]


class TopologyImportOutput(Output):
    """What was made of files of a cluster."""

    levels: Annotated[Sequence[ImportedLevel], Said("Outermost first.")]
    hosts: Annotated[Sequence[str], Said("In the order of the devices; empty: unnamed.")]
    left_out: Annotated[Sequence[str], Said("Hosts that are in no one certain place.")]
    lost: Annotated[Sequence[str], Said("What was left out or filled in, in sentences.")]
    devices: Annotated[int, Said("How many there are on the hosts.", ge=1)]
    topology: TopologyData


class ListedModel(OutputPart):
    """A model that is known by its name."""

    name: str
    names: Annotated[Sequence[str], Said("Others of models with the same sizes.")]
    parameters: Annotated[Count, Said("Elements of all matrices.")]
    active: Annotated[Count, Said("Of these, elements of those that a token meets.")]
    layers: Count
    layers_text: Annotated[str, Said("How many of which kind, in words.")]


class ModelsOutput(Output):
    """The models that are known by name."""

    models: Sequence[ListedModel]


class ListedClassic(OutputPart):
    """A classic algorithm."""

    name: str
    collective: str
    ranks: Annotated[str, Said("Which numbers of ranks it takes, in words.")]
    parameters: Annotated[Mapping[str, ParameterValue], Said("With their defaults.")]
    summary: str


class ClassicsOutput(Output):
    """The classic algorithms."""

    classics: Sequence[ListedClassic]


class ClassicOutput(Output):
    """A classic algorithm that was made (``classics NAME``)."""

    name: str
    ranks: Annotated[int, Said(ge=1)]
    steps: Count
    output: Annotated[str | None, Said("The file that it was written to.")]
    schedule: Annotated[
        ScheduleData | None, Said("The schedule file as data; null: it was written.")
    ]


class ListedSchema(OutputPart):
    """A schema that `schema NAME` prints."""

    name: str
    of: Annotated[str, Said("What it is the schema of.")]


class SchemaOutput(Output):
    """The schemas (`schema` without a name)."""

    schemas: Sequence[ListedSchema]


# `placements --json` and `programs --json`.


class SizedName(OutputPart):
    """A level or an axis."""

    name: str
    size: Annotated[int, Said(ge=1)]


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
