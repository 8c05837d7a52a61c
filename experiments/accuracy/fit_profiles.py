"""Fits the profiles of presets, each to the tables of its own system, and writes them.

    python -m experiments.accuracy.fit_profiles

A profile is what ``p2smt calibrate`` finds from the preset on, after ``fit_presets``; and how the
tables differ from what the preset says.  A table of large payloads alone does not tell inside from
outside of the nodes that it spans: there the network takes the difference.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from experiments.accuracy.cells import MIB, Cell, cells_of
from experiments.accuracy.fitting.constants_text import ROOT
from experiments.accuracy.hold_out import calibrated, samples_of
from experiments.accuracy.systems import PRESETS, topology_of
from experiments.tables.tables import Published, tables
from experiments.testbed.script import ended
from p2smt.cluster.topology import Topology
from p2smt.cost.accuracy import SIZE_CLASSES, size_class
from p2smt.errors import InputError
from p2smt.report.progress import counted

WHAT = {
    "mi300x@cx7": "ConnectX-7 cards, AMD's containers of training on several nodes",
    "gcp-a3-mega@gke": "A3 Mega on GKE",
    "gcp-a4@gke-old": "A4 on GKE, an older image",
    "azure-ndv4@sriov": "virtual functions of InfiniBand under Kubernetes",
}
"""What is known of the systems whose tables differ."""


def profile_tables() -> dict[str, Published]:
    """The table of each profile, by the profile's name."""
    named = {f"{one.preset}@{one.profile}": system for system, one in PRESETS.items()}
    by_system = {table.system: table for table in tables().values()}
    return {name: by_system[named[name]] for name in WHAT}


def profiled(table: Published) -> Topology:
    """The preset, calibrated on a table of a system that differs."""
    start = topology_of(table, profile=False)
    if table.rows[0][0] >= MIB:
        share = statistics.median(cell.ratio for cell in cells_of(table, start))
        return _with_slower_network(start, share)
    return calibrated(start, samples_of(table, start))


def _with_slower_network(topology: Topology, share: float) -> Topology:
    level = topology.levels[topology.node_level]
    efficiency = tuple((name, share * part) for name, part in level.link.efficiency)
    slower = replace(level, link=replace(level.link, efficiency=efficiency))
    levels = [slower if one is level else one for one in topology.levels]
    return replace(topology, levels=tuple(levels))


def differs(table: Published, cells: Sequence[Cell]) -> str:
    """How many times as long as the preset says a system's collective takes, by size."""
    found = []
    for name, _ in SIZE_CLASSES:
        here = [1 / cell.ratio for cell in cells if size_class(cell.size_bytes) == name]
        if here:
            found.append(f"{statistics.median(here):.2g} ({_words(name)})")
    return f"{table.collective} over {table.nodes} nodes takes {', '.join(found)} times as long"


def _words(name: str) -> str:
    return "above 64 MiB" if name == "above" else name


def block(name: str, table: Published) -> Iterator[str]:
    """The lines of a preset's profile."""
    start = topology_of(table, profile=False)
    found = profiled(table)
    yield f"  {name.partition('@')[2]}:  # by experiments/accuracy/fit_profiles.py"
    yield f"    what: {WHAT[name]}"
    yield f'    source: "table {table.name} of experiments/tables: {table.source}"'
    yield f"    differs: {differs(table, cells_of(table, start))}"
    if calls := [(op, s) for op, s in found.calls if (op, s) not in start.calls]:
        yield f"    calls: {{{', '.join(f'{op}: {s * 1e6:.3g} us' for op, s in calls)}}}"
    yield "    levels:"
    for level, before in zip(found.levels, start.levels, strict=True):
        parts = []
        if level.link.efficiency != before.link.efficiency:
            shown = ", ".join(f"{key}: {part:.3g}" for key, part in level.link.efficiency)
            parts.append(f"efficiency: {{{shown}}}")
        if level.link.hops != before.link.hops:
            shown = ", ".join(f"{key}: {s * 1e6:.3g} us" for key, s in level.link.hops)
            parts.append(f"hops: {{{shown}}}")
        if parts:
            yield f"      {level.name}: {{{', '.join(parts)}}}"


def main(arguments: Sequence[str]) -> None:
    """Write every profile anew.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"argument {arguments[0]}", "none is expected", "leave it out")
    for name, table in counted(profile_tables().items(), "profiles"):
        path = ROOT / "topologies" / f"{name.partition('@')[0]}.yaml"
        before = path.read_text(encoding="utf-8").partition("\nprofiles:\n")[0].rstrip("\n")
        lines = [before, "profiles:", *block(name, table)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
