"""What a table of nccl-tests measures on a topology, and the topology that tables tell."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from p2smt.calibration.samples import Sample
from p2smt.cluster.topology import Level, Link, LinkKind, Piece, Topology
from p2smt.errors import InputError
from p2smt.interop.nccl_tests.read import Measured
from p2smt.programs.program import Grouping


def samples_of(measured: Measured, topology: Topology) -> list[Sample]:
    """The samples of a table on a topology.

    Raises:
        InputError: so many ranks are neither the inside of an entity, nor whole outermost
            entities, nor one rank on each host.
    """
    grouping, outermost = _place(measured, topology)
    return [
        Sample(
            measured.collective,
            grouping,
            timing.size_bytes,
            timing.seconds,
            outermost=outermost,
            source=f"{os.path.basename(measured.table.where.split(', line ')[0])}:{timing.line}",
        )
        for timing in measured.table.timings
    ]


def _place(measured: Measured, topology: Topology) -> tuple[Grouping, int | None]:
    """The groups of a run, and the outermost entities that took part (None: all)."""
    sizes, ranks, inside = topology.sizes, measured.ranks, topology.devices_under(0)
    wholes = {math.prod(sizes[j:]): j for j in reversed(range(len(sizes) + 1))}
    if measured.per_host == 1 and inside > 1:
        if len(sizes) == 2:
            return Grouping(0, 1, master=True), ranks
    elif measured.per_host in (None, *wholes):
        if wholes.get(ranks, 0) > 0:
            outer = sum(size > 1 for size in sizes[: wholes[ranks]])
            return Grouping(outer, sum(size > 1 for size in sizes)), None
        if ranks % inside == 0:
            count = ranks // inside
            return Grouping(0, sum(size > 1 for size in (count, *sizes[1:]))), count
    hosts = "" if measured.per_host is None else f" on {measured.hosts} hosts"
    raise InputError(
        f"{measured.table.where}: {ranks} ranks{hosts}",
        f"{topology.name} has levels {', '.join(f'{lv.name} {lv.size}' for lv in topology.levels)}",
        "measure whole nodes, or name the topology that was measured",
    )


def derived_topology(tables: Sequence[Measured]) -> Topology:
    """The two levels, node and gpu, that the tables' device lists tell; their links to be fitted.

    With runs on one host only, or with one rank per host only, there is one level.

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
    levels = [_level("node", nodes)] if nodes > 1 else []
    levels += [_level("gpu", gpus)] if gpus > 1 else []
    if len(levels) > 1 and all(measured.hosts != 1 for measured in tables):
        raise InputError(
            f"{len(tables)} tables of {nodes} nodes",
            "the links inside a node were not measured",
            "add a file of one node, or name the inside with --topology",
        )
    ports = "; one port per node stands for all its network cards" if nodes > 1 else ""
    text = f"Levels as the device lists of the measurements tell{ports}."
    return Topology("measured", tuple(levels), description=text)


def _level(name: str, size: int) -> Level:
    """A level whose link is to be fitted."""
    return Level(name, size, Link(LinkKind.SWITCH, (Piece("simple", 0.0, 1e17),)))
