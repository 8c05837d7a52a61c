"""The clusters of the study: every preset, and files derived from presets.

    python -m experiments.gains.clusters

writes the derived ones into ``build/gains``, where the printed commands look for them.  None is a
measured system: rates, efficiencies and latencies are the preset's, what is added is said in the
description of each.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from experiments.testbed.script import ended
from p2smt.api.files import write_topology
from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.link import Link
from p2smt.cluster.topology import Level, Topology
from p2smt.errors import InputError

FOLDER = "build/gains"
NODES, LARGE_NODES = (2, 4, 16), (2, 4, 8)
"""How many of a preset's outermost entities; those of at least 64 devices have fewer."""
LEAVES, UNDER, RATIO = (2, 4), 4, 4
"""Numbers of leaf switches, nodes under each, and how far their uplinks are oversubscribed."""
POD, POD_USED, POD_RATIO = 3072, 2048, 7
"""GPUs of a pod, those that a job uses in it (assumed), and the ratio at which pods are joined
(arXiv 2407.21783, section 3.3.1)."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A topology and the text that names it after ``-t``; ``leaves``: 0 without leaf switches."""

    preset: str
    spec: str
    topology: Topology
    nodes: int
    leaves: int = 0

    @property
    def node_devices(self) -> int:
        """Devices in a node."""
        return self.topology.devices // self.nodes


def clusters(preset: str) -> Iterator[Cluster]:
    """A preset with some numbers of nodes, and with leaf switches over its nodes."""
    base = load_topology(preset)
    for nodes in NODES if base.devices_under(0) < 64 else LARGE_NODES:
        yield Cluster(preset, f"{preset}:{nodes}", base.with_outermost(nodes), nodes)
    for leaves in LEAVES if has_leaves(base) else ():
        yield leafy(preset, leaves)


def has_leaves(base: Topology) -> bool:
    """Whether leaf switches are put over a preset: four levels would take too long."""
    return len(base.levels) == 2


def every_cluster() -> Iterator[Cluster]:
    """The clusters of every preset."""
    for preset in preset_names():
        yield from clusters(preset)


def leafy(preset: str, leaves: int) -> Cluster:
    """A preset's nodes under so many leaf switches."""
    name = f"{preset}-leaves"
    topology = derived(name).with_outermost(leaves)
    return Cluster(preset, f"{FOLDER}/{name}.yaml:{leaves}", topology, leaves * UNDER, leaves)


def with_leaves(base: Topology) -> Topology:
    """Nodes under leaf switches whose uplinks carry a part of what the nodes can send."""
    node = base.levels[0]
    ports = node.link.ports * UNDER // RATIO
    outer = Level("leaf", min(LEAVES), replace(node.link, ports=ports))
    text = (
        f"{UNDER} nodes of the preset {base.name} under each leaf switch, oversubscribed "
        f"{RATIO}:1: a leaf has {ports} uplinks like those of the nodes."
    )
    return _made(base, f"{base.name}-leaves", text, (outer, replace(node, size=UNDER)))


def jean_zay() -> Topology:
    """Nodes of 8 A100 with four 100 Gb/s ports, as those that trained BLOOM."""
    base = load_topology("dgx-a100:48")
    node = base.levels[0]
    slower = _slower(replace(node.link, ports=4), 0.5)
    text = (
        "48 nodes of 8 A100 as in the preset dgx-a100, with four Omni-Path links of 100 Gb/s each "
        "(arXiv 2211.05100)."
    )
    return _made(base, "jean-zay", text, (replace(node, link=slower),))


def pods() -> Topology:
    """Nodes of 8 H100 in pods whose uplinks are oversubscribed, as those that trained Llama 3."""
    base = load_topology("dgx-h100")
    node = base.levels[0]
    share = POD / POD_USED / POD_RATIO
    under = POD_USED // base.devices_under(0)
    link = replace(node.link, fabric="roce")
    outer = Level("pod", 4, _slower(replace(link, ports=POD_USED), share))
    text = (
        f"Nodes as in the preset dgx-h100 on 400 Gb/s RoCE, {POD_USED} GPUs used in each pod of "
        f"{POD} (assumed), pods joined {POD_RATIO}:1 oversubscribed (arXiv 2407.21783)."
    )
    return _made(base, "llama3-pods", text, (outer, replace(node, size=under, link=link)))


def _slower(link: Link, factor: float) -> Link:
    pieces = tuple(
        replace(p, bandwidth_bytes_per_s=p.bandwidth_bytes_per_s * factor) for p in link.pieces
    )
    return replace(link, pieces=pieces)


def _made(base: Topology, name: str, text: str, outer: tuple[Level, ...]) -> Topology:
    """The preset with other levels instead of its outermost one."""
    sources = (f"preset {base.name} (with its sources)",)
    levels = (*outer, *base.levels[1:])
    return replace(base, name=name, description=text, sources=sources, levels=levels)


@lru_cache(maxsize=64)
def derived(name: str) -> Topology:
    """A derived cluster by the name of its file."""
    return _derived()[name]


@lru_cache(maxsize=1)
def _derived() -> Mapping[str, Topology]:
    bases = filter(has_leaves, map(load_topology, preset_names()))
    leaves = [with_leaves(base) for base in bases]
    return {topology.name: topology for topology in (*leaves, jean_zay(), pods())}


def named(spec: str) -> Topology:
    """What a printed ``-t`` names; derived clusters are made, not read."""
    if not spec.startswith(f"{FOLDER}/"):
        return load_topology(spec)
    name, _, count = spec.removeprefix(f"{FOLDER}/").partition(".yaml")
    topology = derived(name)
    return topology.with_outermost(int(count[1:])) if count else topology


def main(arguments: Sequence[str]) -> None:
    """Write every derived cluster.

    Raises:
        InputError: there are arguments.
    """
    if arguments:
        raise InputError(f"{len(arguments)} arguments", "none is expected")
    folder = Path(os.curdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, topology in _derived().items():
        write_topology(topology, folder / f"{name}.yaml")


if __name__ == "__main__":
    sys.exit(ended(main, sys.argv[1:]))
