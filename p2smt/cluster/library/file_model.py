"""The shape of a library file: its keys as pydantic models, by which files are checked.

Times and rates have units; lists of three are for groups on one node, on two, and on more.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from p2smt.cluster.error_model import (
    AlgorithmName,
    CollectiveName,
    CpuName,
    Fraction,
    Latency,
)
from p2smt.cluster.hosts_file import Bandwidth
from p2smt.cluster.library.model import LibraryAlgorithm, NodeCount, named_algorithm
from p2smt.files.validation import StrictModel
from p2smt.units import parse_bytes

LEFT_OUT: Any = None
"""A key that may be left out; the types of a library say what it stands for then."""


def _bytes(text: object) -> object:
    parse_bytes(text, "value")
    return text


SizeText = Annotated[str, BeforeValidator(_bytes)]
WayName = Annotated[LibraryAlgorithm | None, BeforeValidator(named_algorithm)]
WhichNodes = Annotated[NodeCount, Field(strict=False)]
Rates = Annotated[list[Bandwidth], Field(min_length=3, max_length=3)]
ByProtocol = dict[str, Latency]
ByAlgorithm = dict[AlgorithmName, ByProtocol]


class ProtocolModel(StrictModel):
    """What a protocol makes of a link."""

    efficiency: Fraction = LEFT_OUT
    two_children: Fraction = LEFT_OUT
    caps: dict[str, Bandwidth] = LEFT_OUT


class RunModel(StrictModel):
    """An algorithm for an operation, and when it can run."""

    algorithm: WayName
    protocols: Annotated[list[str], Field(min_length=1)]
    nodes: WhichNodes = LEFT_OUT
    least_members: int = LEFT_OUT
    one_rank_per_node: bool = LEFT_OUT
    in_switch: bool = LEFT_OUT
    most_in_node: Annotated[int, Field(ge=0)] = LEFT_OUT
    least_in_node: Annotated[int, Field(ge=0)] = LEFT_OUT


class SizeThresholdModel(StrictModel):
    """Up to so many bytes; without: any more."""

    algorithm: WayName
    protocol: str
    up_to: SizeText | None = LEFT_OUT


class SizeThresholdsModel(StrictModel):
    """A choice by size."""

    operation: str
    rungs: Annotated[list[SizeThresholdModel], Field(min_length=1)]
    nodes: WhichNodes = LEFT_OUT
    members: int = LEFT_OUT
    fabrics: list[str] = LEFT_OUT
    per_peer: bool = LEFT_OUT


class HardwareModel(StrictModel):
    """What a fabric is taken for."""

    row: str
    generation: str = LEFT_OUT
    known: Fraction = LEFT_OUT
    latency: Latency | None = LEFT_OUT
    one_order: bool = LEFT_OUT
    direct: bool = LEFT_OUT


class ScalingModel(StrictModel):
    """One refinement of an algorithm's bus bandwidth."""

    algorithm: AlgorithmName
    protocol: str = LEFT_OUT
    operations: list[str] = LEFT_OUT
    nodes: Literal["any", "one", "several", "two", "many"] = LEFT_OUT
    alone: bool | None = LEFT_OUT
    plain: bool = LEFT_OUT
    factor: Fraction = LEFT_OUT
    cap: str = LEFT_OUT
    per_channel: bool = LEFT_OUT


class CorrectionModel(StrictModel):
    """Factors of an algorithm's bandwidth by size, from 64 bytes on."""

    algorithm: AlgorithmName
    protocol: str
    factors: Annotated[list[Fraction], Field(min_length=1)]
    generations: list[str] = LEFT_OUT
    several: bool = LEFT_OUT
    unless_cpus: list[CpuName] = LEFT_OUT


class PlateauModel(StrictModel):
    """More latency of a ring from a size on."""

    factors: dict[str, Fraction]
    bytes_per_rank: SizeText | None = LEFT_OUT
    bytes_per_channel_and_rank: SizeText | None = LEFT_OUT


class NvlsModel(StrictModel):
    """How the reduction by NVSwitch is estimated."""

    of_bus: bool
    efficiency: dict[str, Fraction] = LEFT_OUT
    ratio: Fraction = LEFT_OUT


class SearchModel(StrictModel):
    """Rates per channel that are tried, by generation."""

    inside: dict[str, list[Bandwidth]] = LEFT_OUT
    outside: dict[str, list[Bandwidth]] = LEFT_OUT
    twice_from: Bandwidth | None = LEFT_OUT
    not_twice: list[str] = LEFT_OUT
    plain_tree: list[str] = LEFT_OUT
    relayed_ll128: list[str] = LEFT_OUT
    paired: list[str] = LEFT_OUT
    turned: list[str] = LEFT_OUT
    served_twice: list[str] = LEFT_OUT
    channels: Annotated[int, Field(ge=1)] = LEFT_OUT


class PatModel(StrictModel):
    """PAT's latency: per rank, and the part of a hop that each doubling costs."""

    per_rank: Latency
    hop_part: Fraction


class FormulaModel(StrictModel):
    """The constants by which the library estimates times."""

    hardware: Annotated[dict[str, HardwareModel], Field(min_length=1)]
    inside: str
    outside: str
    base: ByAlgorithm
    hops: dict[str, ByAlgorithm]
    scalings: list[ScalingModel] = LEFT_OUT
    caps: dict[str, dict[str, Rates]] = LEFT_OUT
    search: SearchModel = LEFT_OUT
    corrections: list[CorrectionModel] = LEFT_OUT
    plateau: PlateauModel | None = LEFT_OUT
    nvls: NvlsModel | None = LEFT_OUT
    overhead: Latency | None = LEFT_OUT
    overhead_on: dict[CpuName, Latency] = LEFT_OUT
    driver_replaces: bool = LEFT_OUT
    ll_inside: Fraction = LEFT_OUT
    rounds_by_node: bool = LEFT_OUT
    alone_as_tree: bool = LEFT_OUT
    pat: PatModel | None = LEFT_OUT
    most_bus: dict[str, Bandwidth] = LEFT_OUT


class LibraryModel(StrictModel):
    """A library file."""

    name: str
    vendor: Annotated[str, Field(min_length=1)]
    description: str
    sources: Annotated[list[str], Field(min_length=1)]
    joins_nodes: bool
    calls: dict[str, Latency]
    calls_across: dict[str, Latency] = LEFT_OUT
    calls_on: dict[str, Latency] = LEFT_OUT
    protocols: Annotated[dict[str, ProtocolModel], Field(min_length=1)]
    hops: dict[str, dict[str, ByProtocol]] = LEFT_OUT
    runs: dict[str, Annotated[list[RunModel], Field(min_length=1)]]
    ladders: list[SizeThresholdsModel] = LEFT_OUT
    formula: FormulaModel | None = LEFT_OUT
    sent_as: dict[CollectiveName, CollectiveName] = LEFT_OUT
    in_flight: Annotated[int, Field(ge=1)] = LEFT_OUT
    ring_pace: Fraction = LEFT_OUT
    peers_at_once: Annotated[int, Field(ge=0)] = LEFT_OUT
    exchange_rate: Bandwidth = LEFT_OUT
    handover_rate: Bandwidth = LEFT_OUT
    switch_member: Latency = LEFT_OUT
