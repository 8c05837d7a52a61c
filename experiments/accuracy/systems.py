"""Which preset models which published system.

A system without a preset is listed apart, and no figure is computed for it.  A machine of an NVL72
rack is no level of its preset: tables of several racks use so many GPUs of each, those of one run
on the first of its GPUs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from experiments.tables.tables import Published
from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.topology import Algorithm, Topology
from p2smt.cluster.trimmed import trimmed


@dataclass(frozen=True, slots=True)
class Modelled:
    """The preset of a system; ``nodes_per_entity`` machines make one of its outermost entities.

    ``profile``: the preset's profile that was made from the system's own tables, which say
    nothing of the preset itself.
    """

    preset: str
    nodes_per_entity: int = 1
    profile: str = ""


PRESETS = {
    "a100-node": Modelled("dgx-a100"),
    "aws-p4de": Modelled("aws-p4d"),
    "aws-p5": Modelled("aws-p5"),
    "dell-xe9680-h100-8xNDR400": Modelled("dgx-h100"),
    "gcp-a4": Modelled("gcp-a4"),
    "gb200-nvl72": Modelled("gb200-nvl72", 18),
    "gb300-nvl72": Modelled("gb300-nvl72", 18),
    "gcp-a3-high": Modelled("gcp-a3-high"),
    "gcp-a3-mega": Modelled("gcp-a3-mega"),
    "mi300x": Modelled("mi300x"),
    "dgx2": Modelled("dgx2"),
    "h100-nebius": Modelled("dgx-h100"),
    "b200-lambda": Modelled("dgx-b200"),
    "b200-vultr": Modelled("dgx-b200"),
    "gb200-oci": Modelled("gb200-nvl72", 18),
    "gb200-issue1801": Modelled("gb200-nvl72", 18),
    "h100-issue1221": Modelled("dgx-h100"),
    "mi355x": Modelled("mi355x"),
    "mi355x-oci": Modelled("mi355x"),
    "a100-roce": Modelled("dgx-a100"),
    "azure-ndv4-sriov": Modelled("azure-ndv4", profile="sriov"),
    "mi300x-cx7": Modelled("mi300x", profile="cx7"),
    "gcp-a3-mega-gke": Modelled("gcp-a3-mega", profile="gke"),
    "gcp-a4-gke": Modelled("gcp-a4", profile="gke-old"),
}
"""The preset of each system that has one; of those without, nothing is claimed."""


VERSIONS = (((2, 28), "nccl-2.30"), ((2, 17), "nccl-2.20"), ((0, 0), "nccl-2.12"))
"""The version from which each library describes NCCL, newest first."""
_VERSION = re.compile(r"NCCL (\d+)\.(\d+)")
NODES = {
    "8 x A100": ("a100-node", "aws-p4de"),
    "8 x H100": ("aws-p5", "dell-xe9680-h100-8xNDR400", "gcp-a3-mega", "h100-nebius"),
    "8 x B200": ("gcp-a4", "b200-lambda", "b200-vultr"),
}
"""Systems whose nodes are alike inside: a table of one node measures a part of the others' too."""


def is_part(whole: Published, part: Published) -> bool:
    """Whether a table measures the same collective on some of another's GPUs, or on their like."""
    same = whole.collective == part.collective and whole.algorithm == part.algorithm
    if not same or whole.ranks <= part.ranks:
        return False
    alike = any({whole.system, part.system} <= set(names) for names in NODES.values())
    return whole.system == part.system or (part.nodes == 1 and alike)


def has_preset(table: Published) -> bool:
    """Whether p2smt has a preset of the system."""
    return table.system in PRESETS and PRESETS[table.system].preset in preset_names()


def topology_name(table: Published, *, profile: bool = True) -> str:
    """The argument of ``--topology``, such as ``aws-p5:2``; with or without its profile."""
    one = PRESETS[table.system]
    suffix = f"@{one.profile}" if one.profile and profile else ""
    return f"{one.preset}{suffix}:{table.racks or -(-table.nodes // one.nodes_per_entity)}"


def is_fitted(table: Published) -> bool:
    """Whether the constants of presets are fitted to a table: profiles have their own."""
    return has_preset(table) and not has_profile(table)


def has_profile(table: Published) -> bool:
    """Whether a preset has a profile that is made from a table."""
    return table.system in PRESETS and bool(PRESETS[table.system].profile)


def topology_of(table: Published, *, profile: bool = True) -> Topology:
    """The part of the preset on which a table was measured, or a whole rack of it.

    Its library is the preset's, or the one that knows the version that the table names.
    """
    topology = used(load_topology(topology_name(table, profile=profile)), table)
    named = library_of_version(table.library)
    return topology.under(named) if named else topology


def used(topology: Topology, table: Published) -> Topology:
    """The GPUs of each rack that a table of several has, and the algorithm that it names."""
    if table.racks > 1 and table.ranks < topology.devices:
        topology = trimmed(topology, {topology.names[-1]: table.ranks // table.racks})
    return topology.running((Algorithm(table.algorithm),)) if table.algorithm else topology


def library_of_version(text: str) -> str:
    """The library that describes a version such as ``NCCL 2.26.2``; empty: none is named."""
    found = _VERSION.match(text)
    if not found:
        return ""
    version = (int(found[1]), int(found[2]))
    return next(name for least, name in VERSIONS if version >= least)
