"""JSON of `topology list | show | check | fabric | import`, of `classics` and of `schema`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from p2smt.cluster.file_model import TopologyModel
from p2smt.report.schemas.base import Count, Output, OutputPart
from p2smt.schedules.language.file_model import FileModel

Devices = Annotated[int, Field(ge=1, description="How many devices it has.")]
ParameterValue = bool | int | list[int] | None


class TopologyListOutput(Output):
    """The presets: level hierarchies, and fabrics."""

    presets: list[str]
    fabrics: list[str]


FractionText = Annotated[str, Field(pattern=r"^[0-9]+(/[0-9]+)?$", description="A fraction.")]


class FabricCapacity(OutputPart):
    """What edges share."""

    name: str
    bandwidth: Annotated[FractionText, Field(description="Chunks in a round, in units.")]


class FabricWay(OutputPart):
    """An edge from one rank to another."""

    source: Annotated[int, Field(ge=0)]
    target: Annotated[int, Field(ge=0)]
    loads: Annotated[list[int], Field(min_length=1, description="Numbers of capacities.")]


class TopologyFabricOutput(Output):
    """One fabric."""

    name: str
    ranks: Annotated[int, Field(ge=1)]
    unit: Annotated[str | None, Field(description="Of bandwidth; null: they have none.")]
    capacities: list[FabricCapacity]
    edges: Annotated[list[FabricWay], Field(description="Sorted.")]
    symmetries: Annotated[
        list[list[int]], Field(description="Those the file names: where each rank goes.")
    ]


class TopologyShowOutput(Output):
    """One topology."""

    topology: TopologyModel
    devices: Devices


class TopologyCheckOutput(Output):
    """A topology file that is well formed; of another there is an error instead."""

    verdict: Literal["valid"]
    name: str
    devices: Devices


class ImportedLevel(OutputPart):
    """A level of an imported topology."""

    name: str
    size: Annotated[int, Field(ge=1)]
    ports: Annotated[int, Field(ge=1, description="Uplinks of an entity.")]
    bandwidth_bytes_per_s: Annotated[float, Field(description="Of a port, in one direction.")]
    assumed: Annotated[
        bool, Field(description="Nobody stated the bandwidth: taken as that of all its nodes.")
    ]


class TopologyImportOutput(Output):
    """What was made of files of a cluster."""

    levels: Annotated[list[ImportedLevel], Field(description="Outermost first.")]
    hosts: Annotated[list[str], Field(description="In the order of the devices; empty: unnamed.")]
    left_out: Annotated[list[str], Field(description="Hosts that are in no one certain place.")]
    lost: Annotated[list[str], Field(description="What was left out or filled in, in sentences.")]
    devices: Annotated[int, Field(ge=1, description="How many there are on the hosts.")]
    topology: TopologyModel


class ListedClassic(OutputPart):
    """A classic algorithm."""

    name: str
    collective: str
    ranks: Annotated[str, Field(description="Which numbers of ranks it takes, in words.")]
    parameters: Annotated[dict[str, ParameterValue], Field(description="With their defaults.")]
    summary: str


class ClassicsOutput(Output):
    """The classic algorithms."""

    classics: list[ListedClassic]


class ClassicOutput(Output):
    """A classic algorithm that was made (``classics NAME``)."""

    name: str
    ranks: Annotated[int, Field(ge=1)]
    steps: Count
    output: Annotated[str | None, Field(description="The file that it was written to.")]
    schedule: Annotated[
        FileModel | None, Field(description="The schedule file as data; null: it was written.")
    ]


class ListedSchema(OutputPart):
    """A schema that `schema NAME` prints."""

    name: str
    of: Annotated[str, Field(description="What it is the schema of.")]


class SchemaOutput(Output):
    """The schemas (`schema` without a name)."""

    schemas: list[ListedSchema]
