"""The shape of a topology file: its keys as pydantic models, to and from :class:`Topology`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict

from p2smt.cluster.topology import (
    ANY_ALGORITHM,
    MAX_DEVICES,
    MAX_LEVELS,
    NAME_PATTERN,
    RESERVED,
    Algorithm,
    Level,
    Link,
    LinkKind,
    Piece,
    Topology,
)
from p2smt.collectives.names import Collective
from p2smt.errors import InputError
from p2smt.files.validation import StrictModel
from p2smt.units import (
    BANDWIDTH_PATTERN,
    MAX_TEXT,
    TIME_PATTERN,
    exact_bandwidth,
    exact_time,
    parse_bandwidth,
    parse_time,
)

SIMPLE = "simple"
"""Name of the one protocol of a link that gives ``bandwidth`` and ``latency`` themselves."""


def _bandwidth(text: object) -> object:
    parse_bandwidth(text, "value")
    return text


def _latency(text: object) -> object:
    parse_time(text, "value")
    return text


# What the types of a topology refuse, as JSON Schema says it: their messages say more than
# pydantic's would, so the models leave it to them.
Bandwidth = Annotated[
    str,
    BeforeValidator(_bandwidth),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": BANDWIDTH_PATTERN,
            "maxLength": MAX_TEXT,
            "description": "Such as 200 Gb/s or 25 GB/s, per port and direction.",
        }
    ),
]
Latency = Annotated[
    str,
    BeforeValidator(_latency),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": TIME_PATTERN,
            "maxLength": MAX_TEXT,
            "description": "Such as 14 us.",
        }
    ),
]
KindName = Annotated[LinkKind, Field(strict=False)]
AlgorithmName = Annotated[Algorithm, Field(strict=False)]
CollectiveName = Annotated[Collective, Field(strict=False)]


class PieceModel(StrictModel):
    """One protocol, or one piece of a measured fit: a latency and a bandwidth with units."""

    name: str
    latency: Latency
    bandwidth: Bandwidth


class InSwitchModel(StrictModel):
    """Reduction by the switch, for groups of at least ``min_members``."""

    min_members: Annotated[
        int, WithJsonSchema({"type": "integer", "anyOf": [{"const": 0}, {"minimum": 2}]})
    ]


_GIVEN: JsonDict = {"not": {"type": "null"}}
_ABSENT: JsonDict = {"type": "null"}
_LINK_RULES: JsonDict = {
    "$comment": "Not said here: names of protocols differ; a torus's dims multiply to the level's "
    "size; ports spread evenly over the devices; a bandwidth is from 1 to 1e18 B/s, a latency "
    "below 1e6 s.",
    "allOf": [
        {
            "if": {"properties": {"kind": {"const": "torus"}}},
            "then": {"properties": {"dims": {"minItems": 1}}, "required": ["dims"]},
            "else": {"properties": {"dims": {"maxItems": 0}}},
        },
        {
            "if": {"properties": {"kind": {"const": "switch"}}},
            "else": {
                "properties": {
                    "ports": {"const": 1},
                    "in_switch_reduction": {
                        "anyOf": [_ABSENT, {"properties": {"min_members": {"const": 0}}}]
                    },
                }
            },
        },
        {
            "anyOf": [
                {
                    "properties": {"protocols": _GIVEN, "bandwidth": _ABSENT, "latency": _ABSENT},
                    "required": ["protocols"],
                },
                {
                    "properties": {"protocols": _ABSENT, "bandwidth": _GIVEN, "latency": _GIVEN},
                    "required": ["bandwidth", "latency"],
                },
            ]
        },
    ],
}
AT_LEAST_ONE: JsonDict = {"minItems": 1}


class LinkModel(StrictModel):
    """``bandwidth`` and ``latency``, or ``protocols``; the rest has defaults."""

    model_config = ConfigDict(json_schema_extra=_LINK_RULES)

    kind: KindName
    ports: Annotated[int, Field(json_schema_extra={"minimum": 1})] = 1
    bandwidth: Bandwidth | None = None
    latency: Latency | None = None
    protocols: Annotated[list[PieceModel], Field(json_schema_extra=AT_LEAST_ONE)] | None = None
    device_bandwidth: Bandwidth | None = None
    dims: list[Annotated[int, Field(json_schema_extra={"minimum": 1})]] = Field(
        default_factory=list
    )
    in_switch_reduction: InSwitchModel | None = None
    measured: dict[
        CollectiveName, Annotated[list[PieceModel], Field(json_schema_extra=AT_LEAST_ONE)]
    ] = Field(default_factory=dict)


class LevelModel(StrictModel):
    """One level: its name, its size and the link of each of its entities."""

    name: Annotated[
        str, Field(json_schema_extra={"pattern": NAME_PATTERN, "not": {"enum": [*RESERVED]}})
    ]
    size: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_DEVICES})]
    link: LinkModel


class TopologyModel(StrictModel):
    """A topology file; levels outermost first."""

    model_config = ConfigDict(
        json_schema_extra={
            "$comment": f"Not said here: level names differ; at most {MAX_DEVICES} devices."
        }
    )

    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    sources: list[str] = Field(default_factory=list)
    algorithms: list[AlgorithmName] = Field(
        default_factory=lambda: list(ANY_ALGORITHM),
        json_schema_extra={"minItems": 1, "uniqueItems": True},
    )
    library: dict[CollectiveName, AlgorithmName] = Field(default_factory=dict)
    levels: Annotated[
        list[LevelModel], Field(json_schema_extra={"minItems": 1, "maxItems": MAX_LEVELS})
    ]


def build_topology(model: TopologyModel, source: str) -> Topology:
    """The topology that a file describes.

    Raises:
        InputError: a rule of the topology types is broken; names ``source`` and the key.
    """
    levels = tuple(_level(lv, f"{source}: levels[{i}]") for i, lv in enumerate(model.levels))
    with _located(source):
        return Topology(
            model.name,
            levels,
            algorithms=tuple(model.algorithms),
            description=model.description,
            sources=tuple(model.sources),
            library=tuple(model.library.items()),
        )


@contextmanager
def _located(where: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error.given}", error.rule, error.remedy) from None


def _level(model: LevelModel, where: str) -> Level:
    link = _link(model.link, f"{where}.link")
    with _located(where):
        return Level(model.name, model.size, link)


def _link(model: LinkModel, where: str) -> Link:
    draw, reduction = model.device_bandwidth, model.in_switch_reduction
    with _located(where):
        return Link(
            model.kind,
            _pieces(model),
            ports=model.ports,
            device_bandwidth_bytes_per_s=None if draw is None else parse_bandwidth(draw),
            torus=tuple(model.dims),
            in_switch_members=reduction.min_members if reduction else 0,
            measured=tuple((c, _protocols(pieces)) for c, pieces in model.measured.items()),
        )


def _pieces(model: LinkModel) -> tuple[Piece, ...]:
    own = [key for key in ("bandwidth", "latency") if getattr(model, key) is not None]
    if model.protocols is not None:
        if own:
            rule = "protocols replaces bandwidth and latency"
            raise InputError(f"{' and '.join(own)} beside protocols", rule, "keep one of the two")
        return _protocols(model.protocols)
    if model.bandwidth is None or model.latency is None:
        rule = "a link needs both bandwidth and latency, or protocols"
        raise InputError(
            f"a link with {own[0] if own else 'neither bandwidth nor protocols'}",
            rule,
            "add a line like latency: 14 us" if own == ["bandwidth"] else "add them with units",
        )
    return (Piece(SIMPLE, parse_time(model.latency), parse_bandwidth(model.bandwidth)),)


def _protocols(models: list[PieceModel]) -> tuple[Piece, ...]:
    return tuple(Piece(m.name, parse_time(m.latency), parse_bandwidth(m.bandwidth)) for m in models)


def dump_topology(topology: Topology) -> dict[str, object]:
    """A topology as plain data for JSON or YAML; reading it back gives an equal topology."""
    found: dict[str, object] = {"name": topology.name}
    if topology.description:
        found["description"] = topology.description
    if topology.sources:
        found["sources"] = list(topology.sources)
    found["algorithms"] = [algorithm.value for algorithm in topology.algorithms]
    if topology.library:
        found["library"] = {c.value: algorithm.value for c, algorithm in topology.library}
    found["levels"] = [
        {"name": level.name, "size": level.size, "link": _dump_link(level.link)}
        for level in topology.levels
    ]
    return found


def _dump_link(link: Link) -> dict[str, object]:
    found: dict[str, object] = {"kind": link.kind.value}
    if link.ports != 1:
        found["ports"] = link.ports
    if [piece.name for piece in link.pieces] == [SIMPLE]:
        found |= {key: text for key, text in _dump_piece(link.pieces[0]).items() if key != "name"}
    else:
        found["protocols"] = [_dump_piece(piece) for piece in link.pieces]
    if link.device_bandwidth_bytes_per_s is not None:
        found["device_bandwidth"] = exact_bandwidth(link.device_bandwidth_bytes_per_s)
    if link.torus:
        found["dims"] = list(link.torus)
    if link.in_switch_members:
        found["in_switch_reduction"] = {"min_members": link.in_switch_members}
    if link.measured:
        found["measured"] = {c.value: [_dump_piece(p) for p in ps] for c, ps in link.measured}
    return found


def _dump_piece(piece: Piece) -> dict[str, str]:
    return {
        "name": piece.name,
        "latency": exact_time(piece.latency_s),
        "bandwidth": exact_bandwidth(piece.bandwidth_bytes_per_s),
    }
