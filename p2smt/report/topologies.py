"""Topologies and fabrics as tables, and what an import of one says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from p2smt.cluster.file import dump_topology, load_topology, preset_names
from p2smt.cluster.link import ANY
from p2smt.cluster.topology import Topology
from p2smt.fabric.fabric import Fabric
from p2smt.fabric.fabric_file import FAMILIES, fabric_names, preset_wiring
from p2smt.fabric.wiring import WiredNodes
from p2smt.report.outputs.lists import (
    FabricCapacity,
    ImportedLevel,
    TopologyFabricOutput,
    TopologyImportOutput,
)
from p2smt.report.screen import composed
from p2smt.report.tables import table
from p2smt.report.text import printable
from p2smt.units import (
    counted,
    exact_bandwidth,
    format_bandwidth,
    format_bytes,
    format_flops,
    format_time,
    plain,
)

if TYPE_CHECKING:
    from p2smt.cluster.link import Device
    from p2smt.cluster.topology import Level, Topology


# Topologies for people.


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


def profile_table(profiles: Sequence[tuple[str, str, str]]) -> Group:
    """Profiles of presets: what was measured that differs, and by how much."""
    rows = [[name, printable(what), printable(differs)] for name, what, differs in profiles]
    return table("profiles: presets as a system was measured", ["name", "what", "differs"], rows)


def list_tables(differing: Sequence[tuple[str, str, str]]) -> list[RenderableType]:
    """Every preset, what profiles change of them, and the fabrics."""
    presets = preset_table([load_topology(name) for name in preset_names()])
    wirings = wiring_table([preset_wiring(name) for name in fabric_names()], FAMILIES)
    return [presets, "", profile_table(differing), "", wirings]


def topology_tables(topology: Topology) -> RenderableType:
    """A topology: its levels and links, the algorithms it runs, and where its numbers are from."""
    sources = [f"source: {printable(source)}" for source in topology.sources]
    return Group(_head(topology), "", _levels(topology), "", *_about(topology), *sources)


def topology_screen(topology: Topology) -> list[str]:
    """The same but the sources, which are counted."""
    below = [*_about(topology), _sources_left(topology.sources)]
    return composed([_head(topology)], _levels(topology), below)


def _sources_left(sources: Sequence[str]) -> str:
    return f"numbers are from {counted(len(sources), 'source')}: --details"


def _head(topology: Topology) -> str:
    devices = counted(topology.installed, "device")
    return printable(f"{topology.name}: {devices}; {topology.description}".rstrip("; "))


def _levels(topology: Topology) -> Group:
    rows = [
        row
        for j, level in enumerate(topology.levels)
        for row in level_rows(level, topology.devices_under(j))
    ]
    columns = ["level", ">size", "link", "ports", "protocol", ">bandwidth/port", ">latency"]
    return table("levels, outermost first", columns, rows)


def _about(topology: Topology) -> list[str]:
    device = [_device(topology.device)] if topology.device else []
    fabrics = map(_fabric, topology.levels)
    return [*fabrics, *_hosts(topology), *device, f"runs: {_runs(topology)}"]


def extent(topology: Topology) -> str:
    """How large a topology is, in a few words; levels need not be full where hosts are named."""
    levels = ", ".join(f"{level.name} {level.size}" for level in topology.levels)
    if topology.hosts is None:
        return f"{counted(topology.devices, 'device')} ({levels})"
    most = "at most " if topology.installed < topology.devices else ""
    hosts = counted(len(topology.hosts.names), "host")
    return f"{hosts}, {counted(topology.installed, 'device')} ({most}{levels})"


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
        chosen = f"{by} library {topology.library_name}{only}"
    always = ", ".join(f"{c.value} always {algorithm.value}" for c, algorithm in topology.overrides)
    return f"{chosen}; {always}" if always else chosen


def level_rows(level: Level, under: int) -> list[list[str]]:
    """A row for each protocol of a level; what they share stands in the first one."""
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
        plain(part) if name == ANY else f"{name} {plain(part)}"
        for name, part in level.link.efficiency
    ]
    reached = f"; reached of its bandwidth: {', '.join(parts)}" if parts else ""
    return f"{level.name}: {level.link.fabric or 'fabric not said'}{reached}"


# Fabrics for people, and as data.


def wiring_table(wirings: Sequence[WiredNodes], families: Sequence[str]) -> Group:
    """Fabrics that come with the package, and how the regular ones are written."""
    rows = [
        [one.name, str(one.ranks), printable(one.description.split(". ")[0].rstrip("."))]
        for one in wirings
    ]
    rows += [[form, "", "regular: links both ways, bandwidth 1"] for form in families]
    return table("fabrics", ["name", ">ranks", "what"], rows)


def fabric_tables(fabric: Fabric) -> RenderableType:
    """A fabric: its size, unit, its capacities by their bandwidth, symmetries and sources."""
    sources = [f"source: {printable(source)}" for source in fabric.sources]
    named = [f"symmetry: {_cycles(image)}" for image in fabric.symmetries]
    return Group(*_fabric_head(fabric), "", _capacities(fabric), *named, *sources)


def fabric_screen(fabric: Fabric) -> list[str]:
    """The same, symmetries and sources counted."""
    told = [f"{counted(len(fabric.symmetries), 'named symmetry', 'named symmetries')}: --details"]
    below = told * bool(fabric.symmetries) + [_sources_left(fabric.sources)] * bool(fabric.sources)
    return composed(_fabric_head(fabric), _capacities(fabric), below)


def _fabric_head(fabric: Fabric) -> list[str]:
    size = f"{counted(fabric.ranks, 'rank')}, {counted(len(fabric.edges), 'edge')}"
    unit = "none" if fabric.unit is None else format_bandwidth(float(fabric.unit))
    about = [printable(fabric.description)] if fabric.description else []
    return [printable(f"{fabric.name}: {size}"), *about, f"unit: {unit}"]


def _capacities(fabric: Fabric) -> Group:
    edges = Counter(n for edge in fabric.edges for n in edge.loads)
    kinds = Counter((c.bandwidth, edges[n]) for n, c in enumerate(fabric.capacities))
    rows = [
        [str(count), str(rate), _rate(fabric.unit, rate), str(loads)]
        for (rate, loads), count in sorted(kinds.items())
    ]
    columns = [">capacities", ">units", ">bandwidth", ">edges that load it"]
    return table("capacities, in chunks a round", columns, rows)


def fabric_data(fabric: Fabric) -> TopologyFabricOutput:
    """A fabric as JSON: bandwidths are exact, as fractions in text."""
    return TopologyFabricOutput(
        name=fabric.name,
        ranks=fabric.ranks,
        unit=None if fabric.unit is None else exact_bandwidth(float(fabric.unit)),
        capacities=[
            FabricCapacity(name=c.name, bandwidth=str(c.bandwidth)) for c in fabric.capacities
        ],
        edges=fabric.edges,
        symmetries=fabric.symmetries,
    )


def _cycles(image: Sequence[int]) -> str:
    """A permutation in cycles, such as (0 1)(2 3); what stays is left out."""
    seen: set[int] = set()
    cycles = []
    for start in range(len(image)):
        cycle, at = list[int](), start
        while at not in seen:
            seen.add(at)
            cycle.append(at)
            at = image[at]
        if len(cycle) > 1:
            cycles.append("(" + " ".join(map(str, cycle)) + ")")
    return "".join(cycles) or "none moves"


def _rate(unit: Fraction | None, units: Fraction) -> str:
    return "" if unit is None else format_bandwidth(float(unit * units))


# Imported topologies as data.


def import_data(topology: Topology, lost: Sequence[str]) -> TopologyImportOutput:
    """A topology, and what was left out or filled in, as JSON data."""
    hosts = topology.hosts
    assumed = hosts.assumed if hosts else ()
    levels = [
        ImportedLevel(
            name=level.name,
            size=level.size,
            ports=level.link.ports,
            bandwidth_bytes_per_s=level.link.nominal_bytes_per_s,
            assumed=level.name in assumed,
        )
        for level in topology.levels
    ]
    return TopologyImportOutput(
        levels=levels,
        hosts=hosts.names if hosts else (),
        left_out=hosts.left_out if hosts else (),
        lost=lost,
        devices=topology.installed,
        topology=dump_topology(topology),
    )
