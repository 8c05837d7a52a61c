"""The shape of a topology file: its keys as pydantic models, to and from :class:`Topology`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from p2smt.cluster.error_model import (
    AT_LEAST_ONE,
    EFFICIENCIES_SCHEMA,
    HOPS_SCHEMA,
    LIBRARY_SCHEMA,
    LINK_RULES,
    AlgorithmName,
    CollectiveName,
    DeviceModel,
    Fraction,
    Latency,
    LevelErrorModel,
    build_device,
    dump_device,
    dump_error_class,
    error_class,
)
from p2smt.cluster.hosts_file import Bandwidth, HostList, SwitchModel, build_hosts, dump_hosts
from p2smt.cluster.library.file import is_library_file, library_from_data
from p2smt.cluster.library.model import CpuName, Library
from p2smt.cluster.library.registry import check_name, library_of, outside_package
from p2smt.cluster.link import ANY, FABRICS
from p2smt.cluster.topology import (
    ANY_ALGORITHM,
    CALL_NAMES,
    MAX_DEVICES,
    MAX_LEVELS,
    NAME_PATTERN,
    NO_LIBRARY,
    RESERVED,
    Level,
    Link,
    LinkKind,
    Piece,
    Topology,
)
from p2smt.errors import InputError, did_you_mean
from p2smt.files.shapes import file_data
from p2smt.files.validation import StrictModel
from p2smt.units import (
    exact_bandwidth,
    exact_time,
    parse_bandwidth,
    parse_time,
)

SIMPLE = "simple"
"""Name of the one protocol of a link that gives ``bandwidth`` and ``latency`` themselves."""


# What the types of a topology refuse, as JSON Schema says it: their messages say more than
# pydantic's would, so the models leave it to them.
KindName = Annotated[LinkKind, Field(strict=False)]


def _for_any(value: object) -> object:
    """One value for ``any`` may stand without its name."""
    return value if isinstance(value, dict) else {ANY: value}


Efficiencies = Annotated[
    dict[str, Fraction],
    BeforeValidator(_for_any),
    WithJsonSchema(EFFICIENCIES_SCHEMA),
]
Hops = Annotated[
    dict[str, Latency],
    BeforeValidator(_for_any),
    WithJsonSchema(HOPS_SCHEMA),
]


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


class LinkModel(StrictModel):
    """``bandwidth`` and ``latency``, or ``protocols``; the rest has defaults."""

    model_config = ConfigDict(json_schema_extra=LINK_RULES)

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
    fabric: Annotated[str, Field(json_schema_extra={"enum": ["", *FABRICS]})] = ""
    efficiency: Efficiencies = Field(default_factory=dict)
    hops: Hops = Field(default_factory=dict)


Size = Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": MAX_DEVICES})]


class LevelModel(StrictModel):
    """One level: its name, its size and the link of each of its entities.

    ``whole``: how many there are, where only the first ``size`` of them are used.  ``groups``: the
    name of so many of them as one machine has, which ``--use`` makes a level.
    """

    name: Annotated[
        str, Field(json_schema_extra={"pattern": NAME_PATTERN, "not": {"enum": [*RESERVED]}})
    ]
    size: Size
    whole: Size | None = None
    groups: Annotated[dict[str, Size], Field(min_length=1, max_length=1)] | None = None
    link: LinkModel


def _library(value: object) -> Library | str | None:
    """A name, or the library itself, which was read from a file or stands there."""
    if value is None or (isinstance(value, str) and not is_library_file(value)):
        return value
    if isinstance(value, str):
        rule = "names a file, and only a topology file has a folder that it can be in"
        raise InputError(f"value {value[:60]!r}", rule, "write the library itself in its place")
    if isinstance(value, dict):
        value = library_from_data(value, str(value.get("name"))[:60])
    if not isinstance(value, Library):
        rule = "must be the name of a library, its file or all of it"
        raise InputError(f"value {str(value)[:60]!r}", rule, "write it like nccl-2.20, or none")
    check_name(value)
    return value


LibraryName = Annotated[
    Library | str | None, PlainValidator(_library), WithJsonSchema(LIBRARY_SCHEMA)
]


class ProfileLevelModel(StrictModel):
    """What a profile measured of a level's link."""

    efficiency: Efficiencies = Field(default_factory=dict)
    hops: Hops = Field(default_factory=dict)


Calls = Annotated[
    dict[str, Latency], Field(json_schema_extra={"propertyNames": {"enum": [*CALL_NAMES]}})
]


class ProfileModel(StrictModel):
    """What tables of one system measured that differ from what the topology says.

    ``differs`` says from it by how much; ``levels`` and ``calls`` replace what it has of the same
    names.
    """

    what: Annotated[str, Field(min_length=1)]
    source: Annotated[str, Field(min_length=1)]
    differs: Annotated[str, Field(min_length=1)]
    levels: dict[str, ProfileLevelModel] = Field(default_factory=dict)
    calls: Calls = Field(default_factory=dict)


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
    library: LibraryName = None
    overrides: dict[CollectiveName, AlgorithmName] = Field(default_factory=dict)
    best: bool = False
    restricted: bool = False
    calls: Calls = Field(default_factory=dict)
    calibrated: bool = False
    errors: list[LevelErrorModel] = Field(default_factory=list)
    device: DeviceModel | None = None
    cpu: CpuName | None = None
    levels: Annotated[
        list[LevelModel], Field(json_schema_extra={"minItems": 1, "maxItems": MAX_LEVELS})
    ]
    profiles: dict[
        Annotated[str, Field(json_schema_extra={"pattern": NAME_PATTERN})], ProfileModel
    ] = Field(default_factory=dict)
    hosts: HostList | None = None
    switches: list[SwitchModel] = Field(default_factory=list)
    assumed: list[str] = Field(default_factory=list)
    left_out: HostList | None = None

    @model_validator(mode="before")
    @classmethod
    def _overrides_of_old_files(cls, data: Any) -> Any:
        """A mapping under ``library`` that names no library holds overrides, as in older files.

        Such a file says by itself what runs: it has no library.
        """
        if not isinstance(data, dict) or not isinstance(data.get("library"), dict):
            return data
        if "name" in data["library"]:
            return data
        if "overrides" in data:
            rule = "a mapping under library is what overrides holds today"
            raise InputError("library and overrides", rule, "keep overrides, and name a library")
        rest = {key: value for key, value in data.items() if key != "library"}
        return rest | {"library": NO_LIBRARY, "overrides": data["library"]}


def with_profile(model: TopologyModel, name: str, source: str) -> TopologyModel:
    """What a file describes, with what one of its profiles measured instead; its sources say so.

    Raises:
        InputError: there is no such profile, or it names a level that there is not.
    """
    found = model.profiles.get(name)
    if found is None:
        known = ", ".join(f"@{one}" for one in model.profiles)
        remedy = did_you_mean(name, tuple(model.profiles)) or (known or "leave it out")
        raise InputError(f"{source}: profile {name[:40]!r}", "is none of its profiles", remedy)
    names = [level.name for level in model.levels]
    if unknown := set(found.levels) - set(names):
        given = f"{source}: profile {name}: level {min(unknown)[:40]!r}"
        raise InputError(given, f"is none of the levels {', '.join(names)}")
    return model.model_copy(
        update={
            "name": f"{model.name}@{name}",
            "description": f"{model.description} Profile {name}: {found.what}.".strip(),
            "sources": [*model.sources, f"profile {name}: {found.source}"],
            "calls": {**model.calls, **found.calls},
            "levels": [_profiled(one, found.levels.get(one.name)) for one in model.levels],
        }
    )


def _profiled(level: LevelModel, measured: ProfileLevelModel | None) -> LevelModel:
    if measured is None:
        return level
    efficiency = measured.efficiency or level.link.efficiency
    changed = {"efficiency": efficiency, "hops": {**level.link.hops, **measured.hops}}
    return level.model_copy(update={"link": level.link.model_copy(update=changed)})


def profiles_note(model: TopologyModel) -> str:
    """That measured systems differ from what a file says, and by how much; empty: it names none."""
    told = [f"@{name} ({one.what}): {one.differs}" for name, one in model.profiles.items()]
    return f"{model.name} has profiles that differ: {'; '.join(told)}" if told else ""


def build_topology(
    model: TopologyModel, source: str, known: Callable[[str], Library] = library_of
) -> Topology:
    """The topology that a file describes, with its library by what is ``known`` of that name.

    Raises:
        InputError: a rule of the topology types is broken, with ``source`` and the key; or as
            ``known``.
    """
    levels = tuple(_level(lv, f"{source}: levels[{i}]") for i, lv in enumerate(model.levels))
    library = None if model.library == NO_LIBRARY else model.library
    name = library if isinstance(library, str) else ""
    with _located(source):
        found = Topology(
            model.name,
            levels,
            algorithms=tuple(model.algorithms),
            description=model.description,
            sources=tuple(model.sources),
            overrides=tuple(model.overrides.items()),
            library=Library.only_named(library) if isinstance(library, str) else library,
            best=model.best,
            restricted=model.restricted,
            calls=tuple((name, parse_time(text)) for name, text in model.calls.items()),
            calibrated=model.calibrated,
            errors=tuple((one.level, error_class(one)) for one in model.errors),
            device=None if model.device is None else build_device(model.device),
            cpu=model.cpu or "",
        )
        outer = [(level.name, level.size) for level in levels[: found.node_level + 1]]
        found = replace(found, hosts=build_hosts(model, outer))
    return replace(found, library=known(name)) if name else found


@contextmanager
def _located(where: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error.given}", error.rule, error.remedy) from None


def _level(model: LevelModel, where: str) -> Level:
    link = _link(model.link, f"{where}.link")
    with _located(where):
        groups = next(iter(model.groups.items())) if model.groups else None
        return Level(model.name, model.size, link, model.whole or 0, groups)


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
            fabric=model.fabric,
            efficiency=tuple(model.efficiency.items()),
            hops=tuple((name, parse_time(text)) for name, text in model.hops.items()),
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
    found["library"] = _dump_library(topology.library)
    if topology.overrides:
        found["overrides"] = {c.value: algorithm.value for c, algorithm in topology.overrides}
    if topology.best:
        found["best"] = True
    if topology.restricted:
        found["restricted"] = True
    if topology.calls:
        found["calls"] = {name: exact_time(seconds) for name, seconds in topology.calls}
    if topology.calibrated:
        found["calibrated"] = True
    if topology.errors:
        found["errors"] = [{"level": x, **dump_error_class(one)} for x, one in topology.errors]
    if topology.device is not None:
        found["device"] = dump_device(topology.device)
    if topology.cpu:
        found["cpu"] = topology.cpu
    found["levels"] = [_dump_level(level) for level in topology.levels]
    if topology.hosts is not None:
        found |= dump_hosts(topology.hosts, topology.sizes[: topology.node_level + 1])
    return found


def _dump_library(library: Library | None) -> object:
    """Its name, where every process knows it by that, or the library itself."""
    if library is None:
        return NO_LIBRARY
    own = outside_package(library)
    return library.name if own is None or not own.runs else file_data(own)


def _dump_level(level: Level) -> dict[str, object]:
    parts: dict[str, object] = {"whole": level.whole} if level.whole else {}
    if level.groups is not None:
        parts["groups"] = dict([level.groups])
    return {"name": level.name, "size": level.size, **parts, "link": _dump_link(level.link)}


def _dump_link(link: Link) -> dict[str, object]:
    found: dict[str, object] = {"kind": link.kind.value}
    if link.fabric:
        found["fabric"] = link.fabric
    if link.ports != 1:
        found["ports"] = link.ports
    if [piece.name for piece in link.pieces] == [SIMPLE]:
        found |= _dump_rates(link.pieces[0])
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
    return found | _dump_costs(link)


def _dump_costs(link: Link) -> dict[str, object]:
    """What was measured for use under a library; a single entry for all stands by itself."""
    found: dict[str, dict[str, object]] = {}
    if link.efficiency:
        found["efficiency"] = dict(link.efficiency)
    if link.hops:
        found["hops"] = {name: exact_time(seconds) for name, seconds in link.hops}
    return {key: value[ANY] if list(value) == [ANY] else value for key, value in found.items()}


def _dump_piece(piece: Piece) -> dict[str, str]:
    return {"name": piece.name, **_dump_rates(piece)}


def _dump_rates(piece: Piece) -> dict[str, str]:
    bandwidth = exact_bandwidth(piece.bandwidth_bytes_per_s)
    return {"latency": exact_time(piece.latency_s), "bandwidth": bandwidth}
