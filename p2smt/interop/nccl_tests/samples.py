"""What a table of nccl-tests measures on a topology, and the topology that tables tell."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.calibration.samples import Sample
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.read import RankedTable
from p2smt.programs.program import Grouping

HOSTS = ("node", "host", "machine", "server")
"""Names of levels whose entities are hosts; without such a level, hosts do not count."""
_PARTED = (LinkKind.SWITCH, LinkKind.FULL_MESH)  # some siblings are as many in a smaller one


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the ranks of a run were: ``outermost`` and ``members`` as a sample has them."""

    grouping: Grouping
    outermost: int | None = None
    members: int | None = None


def samples_of(measured: RankedTable, topology: Topology, file: str = "") -> list[Sample]:
    """The samples of a table on a topology; ``file`` names its rows, else the name of the file.

    Raises:
        InputError: so many ranks are neither in one entity, nor whole outermost entities, nor one
            rank on each host; or the topology has fewer.
    """
    place = _place(measured, topology)
    name = file or os.path.basename(measured.table.source)
    return [
        Sample(
            measured.operation,
            place.grouping,
            timing.size_bytes,
            timing.seconds,
            outermost=place.outermost,
            source=f"{name}:{timing.line}",
            members=place.members,
        )
        for timing in measured.table.timings
    ]


def _place(measured: RankedTable, topology: Topology) -> _Place:
    sizes, ranks, inside = topology.sizes, measured.ranks, topology.devices_under(0)
    wholes = {math.prod(sizes[j:]): j for j in reversed(range(1, len(sizes) + 1))}
    _check_hosts(measured, topology)
    if _one_per_host(measured, topology):
        return _fitting(_Place(Grouping(0, 1, master=True), ranks), measured, topology)
    if wholes.get(ranks, 0) > 0 and ranks > 1:
        outer = sum(size > 1 for size in sizes[: wholes[ranks]])
        return _Place(Grouping(outer, sum(size > 1 for size in sizes)))
    if ranks % inside == 0:
        count = ranks // inside
        grouping = Grouping(0, sum(size > 1 for size in (count, *sizes[1:])))
        return _fitting(_Place(grouping, count), measured, topology)
    if ranks < sizes[-1] and topology.levels[-1].link.kind in _PARTED:
        return _Place(Grouping(0, 1), members=ranks)
    raise _misplaced(measured, topology)


def _host_level(topology: Topology) -> int | None:
    return next((j for j, level in enumerate(topology.levels) if level.name in HOSTS), None)


def _one_per_host(measured: RankedTable, topology: Topology) -> bool:
    return (
        measured.per_host == 1
        and _host_level(topology) == 0
        and len(topology.sizes) == 2
        and topology.devices_under(0) > 1
    )


def _check_hosts(measured: RankedTable, topology: Topology) -> None:
    """Refuse a run whose hosts are not those of the topology."""
    level, each = _host_level(topology), measured.per_host
    if level is None or each is None or _one_per_host(measured, topology):
        return
    under = topology.devices_under(level)
    if each > under or (each < under and measured.hosts != 1):
        raise _misplaced(measured, topology)


def _fitting(place: _Place, measured: RankedTable, topology: Topology) -> _Place:
    """The place, if the topology has so many outermost entities."""
    first, count = topology.levels[0], place.outermost or 1
    if count <= first.size:
        return place
    name = topology.name.split(":")[0]
    raise InputError(
        f"{measured.table.where}: {measured.ranks} ranks are {count} of level {first.name}",
        f"{topology.name} has {first.size}",
        f"name the topology that was measured, such as {name}:{count}",
    )


def _misplaced(measured: RankedTable, topology: Topology) -> InputError:
    hosts = "" if measured.per_host is None else f" on {_counted(measured.hosts or 1, 'host')}"
    return InputError(
        f"{measured.table.where}: {measured.ranks} ranks{hosts}",
        f"{topology.name} has levels {', '.join(f'{lv.name} {lv.size}' for lv in topology.levels)}",
        "measure whole nodes, or name the topology that was measured",
    )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


def derived_topology(tables: Sequence[RankedTable]) -> Topology:
    """The two levels, node and gpu, that the tables' device lists tell; their links to be fitted.

    With runs on one host only, or with one rank per host only, there is one level.  A node has a
    port per device: how many network cards it has the tables do not tell, and no device has all.

    Raises:
        InputError: a table does not tell its hosts, hosts have different numbers of ranks, or
            the inside of a node was not measured.
    """
    for measured in tables:
        if measured.per_host is None:
            rule = "does not tell on which hosts its ranks ran"
            raise InputError(measured.table.where, rule, "name the cluster with --topology")
    gpus = max(measured.per_host or 1 for measured in tables)
    nodes = max(measured.hosts or 1 for measured in tables)
    levels = [_level("node", nodes, gpus)] if nodes > 1 else []
    levels += [_level("gpu", gpus)] if gpus > 1 else []
    if len(levels) > 1 and all(measured.hosts != 1 for measured in tables):
        raise InputError(
            f"{len(tables)} tables of {nodes} nodes",
            "the links inside a node were not measured",
            "add a file of one node, or name the inside with --topology",
        )
    ports = "; a node has as many ports as devices, whatever cards it has" if nodes > 1 else ""
    text = f"Levels as the device lists of the measurements tell{ports}."
    return Topology("measured", tuple(levels), description=text)


def _level(name: str, size: int, ports: int = 1) -> Level:
    """A level whose link is to be fitted."""
    return Level(name, size, Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1e17),), ports))
