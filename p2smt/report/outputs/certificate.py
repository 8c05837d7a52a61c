"""The file of a schedule bound's certificate.

The file is read by :mod:`p2smt.synthesis.certificate.plain`, which needs no library; this is its
shape for others.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from p2smt.synthesis.certificate.certificate import BoundedCollective, BoundKind

Exact = Annotated[
    str,
    Field(
        pattern=r"^(0|[1-9][0-9]*)(/[1-9][0-9]*)?$", description="A fraction of 0 or more: 7/24."
    ),
]
Numbered = Annotated[int, Field(ge=0)]
OpenStep = Annotated[int | None, Field(ge=0, description="From 0; null: of any number of steps.")]


class CertificatePart(BaseModel):
    """A part of the file: every key is there, and no other."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CertifiedFabricModel(CertificatePart):
    """The fabric: capacities and their bandwidths in units, edges between ranks."""

    name: str
    ranks: Annotated[int, Field(ge=1, le=1024)]
    capacities: list[Exact]
    edges: Annotated[
        list[tuple[Numbered, Numbered, list[Numbered]]],
        Field(description="From, to, and the capacities that a message loads."),
    ]


class CertifiedMapModel(CertificatePart):
    """A generator of symmetries."""

    ranks: Annotated[list[Numbered], Field(description="Where it takes rank 0, 1, ..")]
    edges: Annotated[list[Numbered], Field(description="Where it takes edge 0, 1, ..")]


class CutPriceModel(CertificatePart):
    """The price of a chunk's message into some ranks."""

    ranks: list[Numbered]
    price: Exact


class PartitionPriceModel(CertificatePart):
    """The price of a chunk's message between parts of the ranks."""

    parts: list[list[Numbered]]
    price: Exact


class BoundPricesModel(CertificatePart):
    """What proves the bound; each price is also that of what generators make of the named."""

    pair: Annotated[list[Numbered] | None, Field(description="By distance: from where to where.")]
    capacities: Annotated[
        list[tuple[Numbered, OpenStep, Exact]],
        Field(description="Capacity, step, price of a round."),
    ]
    shares: Annotated[
        list[tuple[Numbered, Numbered, Numbered, OpenStep, Exact]],
        Field(description="From, to, edge, step: what this pair pays of the edge's price."),
    ]
    cuts: list[CutPriceModel]
    partitions: list[PartitionPriceModel]


class ScheduleCertificateModel(CertificatePart):
    """A bound that every schedule meets, with what proves it by exact arithmetic."""

    schema_version: Literal[1]
    kind: Literal["schedule-certificate"]
    bound_kind: BoundKind
    collective: BoundedCollective
    root: Annotated[int | None, Field(ge=0, description="A rank.")]
    steps: Annotated[
        int | None, Field(ge=1, description="Of schedules of so many steps; null: of any number.")
    ]
    bound: Annotated[
        Exact,
        Field(description="Rounds a chunk at least; of bound_kind distance, steps at least."),
    ]
    fabric: CertifiedFabricModel
    generators: list[CertifiedMapModel]
    prices: BoundPricesModel


# The file of what `synthesize --size` proves.


class SteppedBoundModel(CertificatePart):
    """The bound on schedules of so many steps."""

    steps: Annotated[int | None, Field(ge=1, description="null: of any number.")]
    certificate: ScheduleCertificateModel


class SizeCornerModel(CertificatePart):
    """A payload at which a line of either envelope ends."""

    bytes: Annotated[Exact, Field(description="The payload.")]
    time_s: Annotated[Exact, Field(description="The least time of the schedules.")]
    bound_s: Annotated[Exact, Field(description="What no schedule is below.")]


class SizeCertificateModel(CertificatePart):
    """How far schedules are from the least time of every payload in a range, in fractions."""

    schema_version: Literal[1]
    kind: Literal["size-certificate"]
    alpha_s: Annotated[Exact, Field(description="Seconds of a step.")]
    beta_s: Annotated[Exact, Field(description="Seconds of a byte where R/C is 1; not 0.")]
    from_bytes: Annotated[int, Field(ge=1, description="The first payload.")]
    to_bytes: Annotated[int, Field(ge=1, description="The last one.")]
    schedules: Annotated[
        list[tuple[Numbered, Numbered, Numbered]],
        Field(min_length=1, description="Steps, rounds and chunks of each."),
    ]
    least_steps: Annotated[
        ScheduleCertificateModel,
        Field(description="How many steps every schedule has: of bound_kind distance."),
    ]
    bounds: Annotated[
        list[SteppedBoundModel],
        Field(min_length=1, description="From these steps on, that of any number last."),
    ]
    corners: Annotated[list[SizeCornerModel], Field(description="In ascending order.")]
    ratio: Annotated[Exact, Field(description="The largest of time and bound at the corners.")]


# The file of a forest.


class TreeNetworkModel(CertificatePart):
    """Ranks and switches; arcs between them."""

    name: str
    ranks: Annotated[int, Field(ge=0, description="The first so many vertices are ranks.")]
    measured: Annotated[bool, Field(description="Arcs carry bytes a second; else chunks a round.")]
    without: Annotated[list[str], Field(description="What has failed, such as card 3.")]
    vertices: Annotated[list[str], Field(description="Their names.")]
    arcs: Annotated[
        list[tuple[Numbered, Numbered, Exact | None]],
        Field(description="From, to, bandwidth; null: as much as comes."),
    ]


class WeightedTreeModel(CertificatePart):
    """A tree, which stands for all that symmetries make of it."""

    root: Numbered
    weight: Annotated[Exact, Field(description="Its part of the root's data.")]
    ways: Annotated[
        list[list[Numbered]],
        Field(description="For each other rank the arcs that lead to it from the rank before it."),
    ]


class ForestModel(CertificatePart):
    """Trees that carry a collective in a time, and parts of the vertices that prove a bound."""

    schema_version: Literal[1]
    kind: Literal["forest"]
    collective: BoundedCollective
    root: Annotated[int | None, Field(ge=0, description="A rank.")]
    time: Annotated[Exact, Field(description="Seconds for a byte of each root, or rounds.")]
    bound: Annotated[Exact, Field(description="What no forest is below.")]
    network: TreeNetworkModel
    symmetries: Annotated[
        list[list[tuple[Numbered, Numbered]]],
        Field(description="Generators: from and to of every vertex that is moved."),
    ]
    parts: Annotated[
        list[list[Numbered]],
        Field(description="Vertices that all data outside has to enter; of an all-reduce several."),
    ]
    copying: Annotated[list[WeightedTreeModel], Field(description="From their roots outwards.")]
    adding: Annotated[
        list[WeightedTreeModel],
        Field(description="Towards their roots: the same in the network turned round."),
    ]
