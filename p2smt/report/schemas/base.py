"""What the outputs share: no unknown keys, and numbers with their units."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[float, Field(ge=0, description="Seconds.")]
Bytes = Annotated[float, Field(ge=0, description="Bytes; of a share of a payload, a fraction.")]
PayloadBytes = Annotated[int, Field(ge=0, description="Bytes, whole.")]
Ratio = Annotated[float, Field(ge=0, description="A ratio: 1 is equal.")]
Gap = Annotated[float, Field(ge=0, description="A relative difference: 0.05 is five per cent.")]
Error = Annotated[float, Field(ge=0, description="A relative error: 0.1 is ten per cent.")]
Count = Annotated[int, Field(ge=0, description="How many.")]
Rank = Annotated[int, Field(ge=0, description="A rank; ranks are numbered from 0.")]
Chunk = Annotated[int, Field(ge=0, description="A chunk of a buffer, numbered from 0.")]
Nth = Annotated[int, Field(ge=1, description="Its number; the first is 1.")]
RankMatrix = list[list[Annotated[int, Field(ge=1)]]]
"""A parallelism matrix: a row per axis, an entry per level."""


class OutputPart(BaseModel):
    """A part of an output: every key is there, and no other."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Output(OutputPart):
    """What a command prints with ``--json``: one object."""

    schema_version: Annotated[
        Literal[1], Field(description="Goes up when a field changes its meaning or goes away.")
    ]


class SizedName(OutputPart):
    """A level or an axis."""

    name: str
    size: Annotated[int, Field(ge=1)]


class NamedAlgorithm(OutputPart):
    """The cheapest way that a library has for a collective, where its rule takes another."""

    algorithm: str
    protocol: str
    seconds: Seconds
    settings: Annotated[
        str | None,
        Field(description="Variables that name it, such as NCCL_ALGO=Ring; null: there are none."),
    ]
    chosen_algorithm: Annotated[str, Field(description="What its rule takes.")]
    chosen_protocol: str
    chosen_s: Annotated[Seconds, Field(description="Seconds of one execution by that.")]
