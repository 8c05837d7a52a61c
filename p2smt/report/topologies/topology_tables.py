"""Topologies for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from p2smt.cluster.link import ANY
from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.units import format_bandwidth, format_bytes, format_flops, format_time

if TYPE_CHECKING:
    from p2smt.cluster.device import Device
    from p2smt.cluster.topology import Level, Topology


def preset_table(presets: Sequence[Topology]) -> Group:
    """Presets with their levels and the first sentence of what they describe."""
    rows = [
        [
            preset.name,
            ", ".join(f"{level.name} {level.size}" for level in preset.levels),
            printable(preset.description.split(". ")[0].rstrip(".")),
        ]
        for preset in presets
    ]
    return table("presets", ["name", "levels", "what"], rows)


def topology_tables(topology: Topology) -> RenderableType:
    """A topology: its levels and links, the algorithms it runs, and where its numbers are from."""
    rows = [
        row
        for j, level in enumerate(topology.levels)
        for row in _level_rows(level, topology.devices_under(j))
    ]
    columns = ["level", ">size", "link", "ports", "protocol", ">bandwidth/port", ">latency"]
    head = f"{topology.name}: {topology.installed} devices; {topology.description}".rstrip("; ")
    runs = f"runs: {_runs(topology)}"
    sources = [f"source: {printable(source)}" for source in topology.sources]
    levels = table("levels, outermost first", columns, rows)
    fabrics = map(_fabric, topology.levels)
    about = [*_hosts(topology), *([_device(topology.device)] if topology.device else []), runs]
    return Group(printable(head), "", levels, "", *fabrics, *about, *sources)


def extent(topology: Topology) -> str:
    """How large a topology is, in a few words; levels need not be full where hosts are named."""
    levels = ", ".join(f"{level.name} {level.size}" for level in topology.levels)
    if topology.hosts is None:
        return f"{topology.devices} devices ({levels})"
    most = "at most " if topology.installed < topology.devices else ""
    count = len(topology.hosts.names)
    return f"{count} hosts, {topology.installed} devices ({most}{levels})"


def _hosts(topology: Topology) -> list[str]:
    """Lines on the hosts that a topology names."""
    hosts = topology.hosts
    if hosts is None:
        return []
    shown = ", ".join(hosts.names[:3]) + (", .." if len(hosts.names) > 3 else "")
    lines = [f"hosts: {len(hosts.names)} ({shown})"]
    if hosts.assumed:
        lines.append(f"bandwidth that nobody stated: of {', '.join(hosts.assumed)}")
    if hosts.left_out:
        lines.append(f"hosts in no certain place: {len(hosts.left_out)}")
    return [printable(line) for line in lines]


def _device(device: Device) -> str:
    """What a device can do: ``device: h100, bf16 989 TFLOP/s, memory 80 GiB at 3.35 TB/s``."""
    peaks = ", ".join(f"{dtype} {format_flops(flops)}" for dtype, flops in device.peaks)
    rate = format_bandwidth(device.memory_bandwidth_bytes_per_s)
    memory = f"memory {format_bytes(device.memory_bytes)} at {rate}"
    return printable(f"device: {device.name}, {peaks}, {memory}")


def _runs(topology: Topology) -> str:
    chosen = ", ".join(algorithm.value for algorithm in topology.algorithms)
    if topology.library:
        by = "the cheapest way of" if topology.best else "as chosen by"
        only = f", restricted to {chosen}" if topology.restricted else ""
        chosen = f"{by} library {topology.library}{only}"
    always = ", ".join(f"{c.value} always {algorithm.value}" for c, algorithm in topology.overrides)
    return f"{chosen}; {always}" if always else chosen


def _level_rows(level: Level, under: int) -> list[list[str]]:
    """A row per protocol; what they share stands in the first one."""
    link = level.link
    dims = " " + "x".join(map(str, link.torus)) if link.torus else ""
    ports = f"{link.ports} per " + ("device" if under == 1 else f"{under} devices")
    shared = [level.name, str(level.size), link.kind.value + dims, ports]
    return [
        [
            *(shared if n == 0 else [""] * len(shared)),
            printable(piece.name),
            format_bandwidth(piece.bandwidth_bytes_per_s),
            format_time(piece.latency_s),
        ]
        for n, piece in enumerate(link.pieces)
    ]


def _fabric(level: Level) -> str:
    """What joins the level: ``node: efa; reached of its bandwidth: 0.8, ring 0.92``."""
    parts = [
        f"{part:.3g}" if name == ANY else f"{name} {part:.3g}"
        for name, part in level.link.efficiency
    ]
    reached = f"; reached of its bandwidth: {', '.join(parts)}" if parts else ""
    return f"{level.name}: {level.link.fabric or 'fabric not said'}{reached}"
