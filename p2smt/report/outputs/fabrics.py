"""``topology fabric --json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from p2smt.fabric.fabric import FabricEdge
from p2smt.report.outputs.shape import FractionText, Noted, Output, OutputPart, Said


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
