"""The shape of a library file: its keys as pydantic models, and the library they describe.

Times and rates have units; lists of three are for groups on one node, on two, and on more.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from p2smt.cluster.file_model import (
    AlgorithmName,
    Bandwidth,
    CollectiveName,
    Fraction,
    Latency,
)
from p2smt.cluster.topology import Algorithm
from p2smt.cost.library import formula as f
from p2smt.cost.library.model import Ladder, Library, LibraryRun, NodeCount, ProtocolRate, Rung
from p2smt.cost.library.outside import POINT_TO_POINT, LibraryAlgorithm, added_algorithms
from p2smt.errors import InputError
from p2smt.files.validation import StrictModel, did_you_mean
from p2smt.units import parse_bandwidth, parse_bytes, parse_time


def _bytes(text: object) -> object:
    parse_bytes(text, "value")
    return text


SizeText = Annotated[str, BeforeValidator(_bytes)]


def _way(name: object) -> LibraryAlgorithm | None:
    every: tuple[LibraryAlgorithm, ...] = (*Algorithm, *added_algorithms())
    known = {algorithm.value: algorithm for algorithm in every}
    if name == POINT_TO_POINT:
        return None
    if name not in known:
        rule = f"must be one of {', '.join(known)}, {POINT_TO_POINT}"
        raise InputError(f"value {str(name)[:40]!r}", rule, did_you_mean(str(name), known))
    return known[str(name)]


WayName = Annotated[LibraryAlgorithm | None, BeforeValidator(_way)]
WhichNodes = Annotated[NodeCount, Field(strict=False)]
Rates = Annotated[list[Bandwidth], Field(min_length=3, max_length=3)]
ByProtocol = dict[str, Latency]
ByAlgorithm = dict[AlgorithmName, ByProtocol]


class ProtocolModel(StrictModel):
    """What a protocol makes of a link."""

    efficiency: Fraction = 1.0
    caps: dict[str, Bandwidth] = Field(default_factory=dict)


class RunModel(StrictModel):
    """An algorithm for an operation, and when it can run."""

    algorithm: WayName
    protocols: Annotated[list[str], Field(min_length=1)]
    nodes: WhichNodes = NodeCount.ANY
    least_members: int = 2
    one_rank_per_node: bool = False
    in_switch: bool = False
    most_in_node: Annotated[int, Field(ge=0)] = 0


class RungModel(StrictModel):
    """Up to so many bytes; without: any more."""

    algorithm: WayName
    protocol: str
    up_to: SizeText | None = None


class LadderModel(StrictModel):
    """A choice by size."""

    operation: str
    rungs: Annotated[list[RungModel], Field(min_length=1)]
    nodes: WhichNodes = NodeCount.ANY
    members: int = 0
    fabrics: list[str] = Field(default_factory=list)
    per_peer: bool = False


class HardwareModel(StrictModel):
    """What a fabric is taken for."""

    row: str
    generation: str = ""
    known: Fraction = 1.0
    latency: Latency | None = None
    one_order: bool = True


class ScalingModel(StrictModel):
    """One refinement of an algorithm's bus bandwidth."""

    algorithm: AlgorithmName
    protocol: str = ""
    operations: list[str] = Field(default_factory=list)
    nodes: Literal["any", "one", "several", "two", "many"] = "any"
    alone: bool | None = None
    factor: Fraction = 1.0
    cap: str = ""
    per_channel: bool = False


class CorrectionModel(StrictModel):
    """Factors of an algorithm's bandwidth by size, from 64 bytes on."""

    algorithm: AlgorithmName
    protocol: str
    factors: Annotated[list[Fraction], Field(min_length=1)]
    generations: list[str] = Field(default_factory=list)
    several: bool = False


class PlateauModel(StrictModel):
    """More latency of a ring from a size on."""

    factors: dict[str, Fraction]
    bytes_per_rank: SizeText | None = None
    bytes_per_channel_and_rank: SizeText | None = None


class NvlsModel(StrictModel):
    """How the reduction by NVSwitch is estimated."""

    of_bus: bool
    efficiency: dict[str, Fraction] = Field(default_factory=dict)
    ratio: Fraction = 1.0


class SearchModel(StrictModel):
    """Rates per channel that are tried, by generation."""

    inside: dict[str, list[Bandwidth]] = Field(default_factory=dict)
    outside: dict[str, list[Bandwidth]] = Field(default_factory=dict)
    twice_from: Bandwidth | None = None
    not_twice: list[str] = Field(default_factory=list)
    channels: Annotated[int, Field(ge=1)] = 32


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
    scalings: list[ScalingModel] = Field(default_factory=list)
    caps: dict[str, dict[str, Rates]] = Field(default_factory=dict)
    search: SearchModel = Field(default_factory=SearchModel)
    corrections: list[CorrectionModel] = Field(default_factory=list)
    plateau: PlateauModel | None = None
    nvls: NvlsModel | None = None
    overhead: Latency | None = None
    driver_replaces: bool = False
    ll_inside: Fraction = 1.0
    rounds_by_node: bool = False
    alone_as_tree: bool = False
    pat: PatModel | None = None
    most_bus: dict[str, Bandwidth] = Field(default_factory=dict)


class LibraryModel(StrictModel):
    """A library file."""

    name: str
    vendor: Annotated[str, Field(min_length=1)]
    description: str
    sources: Annotated[list[str], Field(min_length=1)]
    joins_nodes: bool
    calls: dict[str, Latency]
    calls_across: dict[str, Latency] = Field(default_factory=dict)
    protocols: Annotated[dict[str, ProtocolModel], Field(min_length=1)]
    hops: dict[str, dict[str, ByProtocol]] = Field(default_factory=dict)
    runs: dict[str, Annotated[list[RunModel], Field(min_length=1)]]
    ladders: list[LadderModel] = Field(default_factory=list)
    formula: FormulaModel | None = None
    sent_as: dict[CollectiveName, CollectiveName] = Field(default_factory=dict)
    peers_at_once: Annotated[int, Field(ge=0)] = 0


def build_library(model: LibraryModel, source: str) -> Library:
    """The library that a file describes.

    Raises:
        InputError: a rule of the types is broken; names ``source``.
    """
    try:
        return Library(
            model.name,
            model.vendor,
            model.description,
            tuple(model.sources),
            model.joins_nodes,
            _times(model.calls),
            _times(model.calls_across),
            tuple(
                ProtocolRate(name, one.efficiency, _rates(one.caps))
                for name, one in model.protocols.items()
            ),
            tuple(
                ((fabric, family, protocol), parse_time(text))
                for fabric, families in model.hops.items()
                for family, found in families.items()
                for protocol, text in found.items()
            ),
            tuple((name, tuple(map(_run, runs))) for name, runs in model.runs.items()),
            tuple(map(_ladder, model.ladders)),
            None if model.formula is None else _formula(model.formula),
            tuple(model.sent_as.items()),
            model.peers_at_once,
        )
    except InputError as error:
        raise InputError(f"{source}: {error.given}", error.rule, error.remedy) from None


def _times(found: dict[str, str]) -> tuple[tuple[str, float], ...]:
    return tuple((name, parse_time(text)) for name, text in found.items())


def _rates(found: dict[str, str]) -> tuple[tuple[str, float], ...]:
    return tuple((name, parse_bandwidth(text)) for name, text in found.items())


def _run(model: RunModel) -> LibraryRun:
    return LibraryRun(
        model.algorithm,
        tuple(model.protocols),
        model.nodes,
        model.least_members,
        model.one_rank_per_node,
        model.in_switch,
        model.most_in_node,
    )


def _ladder(model: LadderModel) -> Ladder:
    return Ladder(
        model.operation,
        tuple(
            Rung(
                math.inf if rung.up_to is None else parse_bytes(rung.up_to),
                rung.algorithm,
                rung.protocol,
            )
            for rung in model.rungs
        ),
        model.nodes,
        model.members,
        tuple(model.fabrics),
        model.per_peer,
    )


def _formula(model: FormulaModel) -> f.Formula:
    flat, nvls, pat = model.plateau, model.nvls, model.pat
    return f.Formula(
        tuple((name, _hardware(one)) for name, one in model.hardware.items()),
        model.inside,
        model.outside,
        tuple(
            ((algorithm, protocol), parse_time(text))
            for algorithm, found in model.base.items()
            for protocol, text in found.items()
        ),
        tuple(
            ((row, algorithm, protocol), parse_time(text))
            for row, algorithms in model.hops.items()
            for algorithm, found in algorithms.items()
            for protocol, text in found.items()
        ),
        tuple(map(_scaling, model.scalings)),
        tuple((name, _triples(table)) for name, table in model.caps.items()),
        _search(model.search),
        tuple(
            f.Correction(
                one.algorithm,
                one.protocol,
                tuple(one.factors),
                tuple(one.generations),
                one.several,
            )
            for one in model.corrections
        ),
        None if flat is None else _plateau(flat),
        None if nvls is None else f.Nvls(nvls.of_bus, tuple(nvls.efficiency.items()), nvls.ratio),
        0.0 if model.overhead is None else parse_time(model.overhead),
        model.ll_inside,
        model.rounds_by_node,
        model.alone_as_tree,
        0.0 if pat is None else parse_time(pat.per_rank),
        0.0 if pat is None else pat.hop_part,
        _rates(model.most_bus),
        model.driver_replaces,
    )


def _hardware(model: HardwareModel) -> f.Hardware:
    latency = 0.0 if model.latency is None else parse_time(model.latency)
    return f.Hardware(model.row, model.generation, model.known, latency, model.one_order)


def _scaling(model: ScalingModel) -> f.Scaling:
    return f.Scaling(
        model.algorithm,
        model.protocol,
        tuple(model.operations),
        model.nodes,
        model.alone,
        model.factor,
        model.cap,
        model.per_channel,
    )


def _triples(table: dict[str, list[str]]) -> tuple[tuple[str, f.Triple], ...]:
    found = []
    for generation, texts in table.items():
        one, two, more = map(parse_bandwidth, texts)
        found.append((generation, (one, two, more)))
    return tuple(found)


def _search(model: SearchModel) -> f.Search:
    return f.Search(
        tuple((g, tuple(map(parse_bandwidth, texts))) for g, texts in model.inside.items()),
        tuple((g, tuple(map(parse_bandwidth, texts))) for g, texts in model.outside.items()),
        math.inf if model.twice_from is None else parse_bandwidth(model.twice_from),
        tuple(model.not_twice),
        model.channels,
    )


def _plateau(model: PlateauModel) -> f.Plateau:
    def size(text: str | None) -> float:
        return 0.0 if text is None else float(parse_bytes(text))

    return f.Plateau(
        tuple(model.factors.items()),
        size(model.bytes_per_rank),
        size(model.bytes_per_channel_and_rank),
    )
