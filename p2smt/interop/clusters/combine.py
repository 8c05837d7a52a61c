"""What several sources tell, as one topology.

At most one tells of the network outside the nodes, and one (or a preset) of a node inside; a list
of hosts beside switches says which of them are taken.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from p2smt.cluster.file import FILLED_IN, IMPORTED, default_library, load_topology, preset_names
from p2smt.cluster.hostlist import format_hostlist
from p2smt.cluster.topology import Level, Link, Topology
from p2smt.cluster.trimmed import trimmed
from p2smt.errors import InputError
from p2smt.interop.clusters.facts import BLOCK_TIERS, Facts, InsideFacts, OutsideFacts
from p2smt.interop.clusters.levels import UplinkRates, check_count, cluster_of, node_link, part_of
from p2smt.interop.clusters.nodes.node_facts import Told
from p2smt.interop.clusters.nodes.reduce import NOTHING_TOLD
from p2smt.interop.clusters.switch_tree import HostTree, blocks_of, doubts, tree_of
from p2smt.units import format_bandwidth

_NO_RATES = UplinkRates()
_SLICE = "slice"
"""The level of presets whose entities are tori of many hosts."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What is said beside the files.

    node: a preset or a topology file whose nodes those of the cluster are.
    rates: of uplinks.
    labels: of Kubernetes nodes, a preset of keys or keys with commas between them.
    topology_name: which of the topologies of a topology.yaml.
    only: these hosts alone.
    name: of the topology.
    told: of nodes, what their files may leave open.
    """

    node: str | None = None
    rates: UplinkRates = _NO_RATES
    labels: str | None = None
    topology_name: str | None = None
    only: Sequence[str] | None = None
    name: str = ""
    told: Told = NOTHING_TOLD


def combined(facts: Sequence[Facts], options: ImportOptions) -> tuple[Topology, tuple[str, ...]]:
    """The topology that several sources tell of together; as :func:`read_clusters`."""
    lost = [sentence for found in facts for sentence in found.lost]
    whole = [found for found in facts if found.whole]
    if whole:
        return _whole(facts, whole[0], options), tuple(lost)
    outside, options, chosen = _outside(facts, options)
    lost += chosen
    inside, base = _inside(facts, options)
    lost += [note for note in [likeness_note(inside)] if note and options.node is None]
    if outside is None or outside.outside is None:
        if options.only is not None:
            raise InputError("--hosts", "the files name no hosts", "drop it, or add such a file")
        base, more = _one_node(base, inside, options)
        return _described(base, base, facts, options), (*lost, *more)
    if inside.levels[0].name == RACK:
        _check_trays(outside, base)
        found, more = racks_of(outside.outside, outside.source, base, options.rates, options.only)
        return _described(found, base, facts, options), (*lost, *more)
    _check_devices(outside, inside)
    if options.only is None:
        check_count(outside.outside, inside)
    tree, filled = tree_of(outside.outside, outside.source)
    if _alone(tree, inside, options):
        base, more = _one_node(base, inside, options)
        name = f"{outside.source}: it is one host, whose name the topology does not hold"
        return _described(base, base, facts, options), (*lost, name, *more)
    found, more = cluster_of(tree, inside, options.rates, base, options.only)
    filled += _other_cards(outside.outside, outside.source, found)
    found = _described(found, base, facts, options)
    found = replace(found, description=found.description + doubts(tree.left_out))
    return found, (*lost, *filled, *more)


def _one(found: Sequence[Facts], what: str) -> Facts | None:
    """The only one of these; None without any.

    Raises:
        InputError: there are several.
    """
    if len(found) > 1:
        rule = f"both tell of {what}"
        given = f"{found[0].source} and {found[1].source}"
        raise InputError(given, rule, "give one of them")
    return found[0] if found else None


def _outside(
    facts: Sequence[Facts], options: ImportOptions
) -> tuple[Facts | None, ImportOptions, tuple[str, ...]]:
    """What tells of the network; a list of hosts beside it says which of them are taken.

    Raises:
        InputError: several tell of the network, or several are lists.
    """
    told = [found for found in facts if found.outside is not None]
    trees = [found for found in told if found.outside and found.outside.holders]
    lists = [found for found in told if found not in trees]
    listed = _one(lists, "hosts")
    outside = _one(trees, "hosts and switches") or listed
    if outside is listed or listed is None or listed.outside is None or options.only is not None:
        return outside, options, ()
    said = f"{listed.source}: only its {len(listed.outside.loose)} hosts are taken"
    return outside, replace(options, only=listed.outside.loose), (said,)


def _inside(facts: Sequence[Facts], options: ImportOptions) -> tuple[InsideFacts, Topology]:
    """What a node is, and the topology that says what runs on it."""
    both = [found for found in facts if found.inside is not None]
    surely = [found for found in both if found.inside and not found.inside.assumed]
    told = _one(surely or ([] if options.node else both), "the inside of a node")
    if options.node is not None:
        if told is not None:
            given = f"--node {options.node[:60]} beside {told.source}"
            raise InputError(given, "both tell of the inside of a node", "give one of them")
        if options.told != NOTHING_TOLD:
            given = f"--gpu, --nic or --nic-fabric beside --node {options.node[:60]}"
            raise InputError(given, "that node is known", "drop them")
        return _of_topology(options.node)
    if told is None or told.inside is None:
        sources = ", ".join(found.source for found in facts)
        rule = "tells nothing of the inside of a node"
        raise InputError(sources, rule, "give --node dgx-h100, or a file of a node beside it")
    inside, measured = measured_like(told.inside)
    found = Topology("node", inside.levels, device=inside.device, sources=measured, cpu=inside.cpu)
    library = inside.library or default_library(found)[0]
    return inside, found.under(library)


def _alone(tree: HostTree, inside: InsideFacts, options: ImportOptions) -> bool:
    """Whether there is one host, of which nothing needs to tell what leaves it."""
    if inside.link_known or options.rates.any:
        return False
    return len(tree.hosts if options.only is None else part_of(tree, options.only).hosts) == 1


def _one_node(
    base: Topology, inside: InsideFacts, options: ImportOptions
) -> tuple[Topology, tuple[str, ...]]:
    """A node alone: with its network cards where they are told, else what is inside.

    Raises:
        InputError: it has one device, and nothing tells its network cards.
    """
    node, *inner = base.levels
    options.rates.check((), node.name)
    if inside.link_known or options.rates.states(node.name):
        return replace(
            base, levels=(replace(node, link=node_link(node, options.rates)), *inner)
        ), ()
    if not inner:
        rule = "has one device, and nothing tells what leaves it"
        raise InputError("the node", rule, f"give --nic 400Gb/s, or --uplink {node.name}=50GB/s")
    left = f"the level {node.name} is left out, as what leaves a node is not told"
    return replace(base, levels=tuple(inner)), (left,)


def _of_topology(spec: str) -> tuple[InsideFacts, Topology]:
    """The nodes of a preset or a topology file.

    Raises:
        InputError: it has no nodes, or what it calls so is a torus of many hosts.
    """
    base = load_topology(spec)
    given = f"--node {spec[:80]}"
    if base.node_level < 0:
        raise InputError(given, "no link of it joins nodes", "name a topology of nodes")
    node, *inner = base.levels[base.node_level :]
    if node.name == _SLICE:
        rule = f"its level {node.name} of {base.devices_under(base.node_level)} devices is no host"
        remedy = f"hosts are parts of a torus: name it {base.name}:N instead, N being the slices"
        raise InputError(given, rule, remedy)
    names = {node.name, *(level.name for level in inner)}
    errors = tuple((name, error) for name, error in base.errors if name in names)
    levels = (replace(node, size=1), *inner)
    return InsideFacts(levels), replace(base, levels=levels, errors=errors, hosts=None)


def _check_devices(outside: Facts, inside: InsideFacts) -> None:
    """Whether hosts have as many devices as the nodes that they are to be."""
    each = math.prod(level.size for level in inside.levels)
    if outside.devices is not None and outside.devices != each:
        given = f"{outside.source}: hosts of {outside.devices} devices"
        raise InputError(given, f"the node given has {each}", "give a node that is like them")


def _other_cards(facts: OutsideFacts, source: str, found: Topology) -> tuple[str, ...]:
    """What is said where a network tells of other cards than those of the node."""
    link = found.levels[found.node_level].link
    mine, theirs = link.ports * link.nominal_bytes_per_s, facts.node_bytes_per_s
    if theirs is None or _close(mine, theirs):
        return ()
    both = f"{format_bandwidth(theirs)} in the file, and {format_bandwidth(mine)} in the node given"
    return (f"{source}: the cards of a host have {both}: uplinks are those of the file's part",)


def _check_trays(outside: Facts, base: Topology) -> None:
    """Whether hosts have as many devices as a tray of a rack."""
    if outside.devices not in (None, TRAY):
        given = f"{outside.source}: hosts of {outside.devices} devices"
        rule = f"a tray of {base.name[:40]} has {TRAY}"
        raise InputError(given, rule, "give a node that is like them")


def _whole(facts: Sequence[Facts], found: Facts, options: ImportOptions) -> Topology:
    """The cluster of a file that tells all its levels, and no names.

    Its links have latencies of their own, so no library runs on it.
    """
    if len(facts) > 1:
        rule = "tells of a whole cluster, without names of hosts"
        raise InputError(f"{found.source} beside other files", rule, "give it alone")
    beside = options.node is not None or options.only is not None or options.rates.any
    if beside or options.told != NOTHING_TOLD:
        rule = "tells of a whole cluster, without names of hosts"
        raise InputError(found.source, rule, "drop --node, --hosts, --uplink, --gpu and the like")
    return Topology(
        options.name or _stem(found.source),
        found.whole,
        description=f"Imported from {found.source}.",
        sources=(found.source,),
    )


def _described(
    found: Topology, base: Topology, facts: Sequence[Facts], options: ImportOptions
) -> Topology:
    """The topology with what it was made of."""
    sources = [one.source for one in facts]
    description = f"Imported from {' and '.join(sources)}."
    if options.node is not None:
        description += f" Nodes are those of {base.name}."
        known = base.name in preset_names()
        sources.append(f"{IMPORTED}{base.name}" if known else options.node)
    elif any(one.inside for one in facts):
        sources.append(FILLED_IN)
    if found.hosts is not None and found.hosts.assumed:
        names = ", ".join(found.hosts.assumed)
        description += (
            f" Nobody stated the bandwidth of {names}: it is taken as that of all nodes together,"
            " as if the network did not block."
        )
    return replace(
        found,
        name=options.name or _stem(facts[0].source),
        description=description,
        sources=(*sources, *base.sources),
    )


def _stem(path: str) -> str:
    """A name for what a file describes."""
    return os.path.basename(path).partition(".")[0] or "cluster"


# Presets whose node is what was read: named, never put in its place.


_NEAR = 0.01
_EFFECTIVE = "paper-"  # presets of effective, not nominal rates


def measured_like(inside: InsideFacts) -> tuple[InsideFacts, tuple[str, ...]]:
    """The node with what presets of such a node measured of its links, and the source of that.

    Presets have the same inside, for what leaves a node also its fabric; a link has what all of
    them agree on: its efficiencies, and reduction by its switches.
    """
    levels, told = list(inside.levels), []
    like = _same_inside(inside)
    for j in range(0 if inside.link_known else 1, len(levels)):
        mine = [(name, one.levels[one.node_level + j].link) for name, one in like]
        names = [name for name, link in mine if link.fabric == levels[j].link.fabric]
        known = {_measured(link) for name, link in mine if name in names}
        if len(known) == 1 and not levels[j].link.efficiency:
            ((efficiency, members),) = known
            link = replace(levels[j].link, efficiency=efficiency, in_switch_members=members)
            levels[j] = replace(levels[j], link=link)
            told.append(f"{levels[j].name}: measured efficiencies of {', '.join(names)}")
    return replace(inside, levels=tuple(levels)), tuple(told)


_Presets = Sequence[tuple[str, Topology]]


def _same_inside(inside: InsideFacts) -> _Presets:
    """The presets whose nodes have such an inside, whatever leaves them, sorted by name."""
    names = (name for name in preset_names() if not name.startswith(_EFFECTIVE))
    presets = [(name, load_topology(name)) for name in names]
    return [(name, one) for name, one in presets if _is_inside(inside.levels[1:], one)]


def _with_network(inside: InsideFacts, presets: _Presets) -> tuple[str, ...]:
    """Those whose nodes also have such a network, as far as it is told."""
    return tuple(n for n, one in presets if not inside.link_known or _leaves(inside, one))


def _measured(link: Link) -> tuple[tuple[tuple[str, float], ...], int]:
    return link.efficiency, link.in_switch_members


def likeness_note(inside: InsideFacts) -> str:
    """One line that names presets with such a node, or its inside, whose measured constants it has;
    empty if there is none."""
    presets = _same_inside(inside)
    names, within = _with_network(inside, presets), [name for name, _ in presets]
    shown = " or ".join(names or within)
    if names and inside.link_known:
        return f"looks like {shown}, and has its measured efficiencies"
    if not within:
        return ""
    said = f"the inside of a node looks like that of {shown}, and has its measured efficiencies"
    if inside.link_known:
        return said
    return f"{said}: --node {names[0] if len(names) == 1 else 'NAME'} also has its network cards"


def _is_inside(own: Sequence[Level], preset: Topology) -> bool:
    node = preset.node_level
    return node >= 0 and _same(own, preset.levels[node + 1 :])


def _leaves(inside: InsideFacts, preset: Topology) -> bool:
    mine, theirs = inside.levels[0].link, preset.levels[preset.node_level].link
    total = mine.ports * mine.nominal_bytes_per_s
    same = mine.fabric == theirs.fabric and mine.ports == theirs.ports
    return same and _close(total, theirs.ports * theirs.nominal_bytes_per_s)


def _same(own: Sequence[Level], other: Sequence[Level]) -> bool:
    return len(own) == len(other) and all(
        a.size == b.size
        and (a.link.kind, a.link.ports, a.link.fabric) == (b.link.kind, b.link.ports, b.link.fabric)
        and _close(a.link.nominal_bytes_per_s, b.link.nominal_bytes_per_s)
        for a, b in zip(own, other, strict=True)
    )


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= _NEAR * other


# Slurm's blocks, or labels of NVLink domains, as racks of NVL72, whose hosts are trays of 4 GPUs.
# A rack is one NVLink domain, so a node of the model, and every tray of it is as near as any other.
# The model's nodes are alike: where a job got 18 trays of one rack and 16 of another, 16 of each
# are taken (``sbatch --segment=16`` asks for such), and the others are named as idle.  A regular
# cluster comes of it, without names: which of its racks a group crosses matters, which trays it has
# in them does not.  (Slurm's block topology is for such racks: topology.conf(5), BlockName.)


RACK = "rack"
"""The level of presets whose entities are racks of trays."""
TRAY = 4
"""GPUs of a tray of GB200 and GB300 NVL72: 72 in 18 trays, as their presets have it."""
_SHOWN = 1000


def racks_of(
    facts: OutsideFacts,
    source: str,
    base: Topology,
    rates: UplinkRates,
    only: Sequence[str] | None = None,
) -> tuple[Topology, tuple[str, ...]]:
    """The racks that a file tells, or its blocks; what was left out, and how a plan is exported.

    base: its first level is that of racks, of size 1.  ``only``: these hosts alone.

    Raises:
        InputError: the file tells no racks, one has more hosts than trays, the tree lacks a host
            of ``only``, a rate names another level, or no part of a rack is that large.
    """
    if facts.tiers != BLOCK_TIERS and not facts.racks:
        rule = "does not tell which hosts are in one rack"
        slurm = "give Slurm's blocks, one for each rack: BlockName=b0 Nodes=n[01-18]"
        raise InputError(f"{source} with racks of trays", rule, facts.racks_by or slurm)
    rates.check((), RACK)
    what = "blocks are racks"
    if facts.racks:
        what = f"racks are by {facts.racks_by}, what is over them is left out"
        hosts = [host for holder in facts.holders for host in holder.hosts]
        loose = (*hosts, *facts.loose)
        facts = OutsideFacts(facts.racks, loose=loose, tiers=BLOCK_TIERS)
    tree, lost = blocks_of(facts, source)
    tree = tree if only is None else part_of(tree, only)
    racks: dict[str, list[str]] = {}
    for host, (block,) in zip(tree.hosts, tree.paths, strict=True):
        racks.setdefault(block, []).append(host)
    _check(racks, source, base)
    each = min(map(len, racks.values()))
    found = _regular(base, len(racks), each, rates)
    return found, (*lost, *_notes(racks, each, source, what))


def _check(racks: Mapping[str, Sequence[str]], source: str, base: Topology) -> None:
    most = base.devices // TRAY
    for block, hosts in racks.items():
        if len(hosts) > most:
            rule = f"a rack of {base.name[:40]} has {most}, of {TRAY} GPUs each"
            given = f"{source}: block {block[:80]!r} has {len(hosts)} hosts"
            remedy = "make each rack a block of its own, or name its label with --labels"
            raise InputError(given, rule, remedy)


def _regular(base: Topology, racks: int, trays: int, rates: UplinkRates) -> Topology:
    """So many racks of so many trays."""
    rack, *inner = base.levels
    under = base.devices_under(1)
    if trays * TRAY % under:
        given = f"racks of {trays} trays"
        rule = f"level {inner[0].name} of {base.name[:40]} is made of {under} devices"
        raise InputError(given, rule, "name the hosts to take: --hosts FILE")
    levels = (replace(rack, size=racks, link=node_link(rack, rates)), *inner)
    part = trimmed(replace(base, levels=levels), {inner[0].name: trays * TRAY // under})
    # What a job did not get is not there: no device of its own idles.
    return replace(part, levels=tuple(replace(level, whole=0) for level in part.levels))


def _notes(racks: Mapping[str, Sequence[str]], each: int, source: str, what: str) -> list[str]:
    found = []
    if idle := [host for hosts in racks.values() for host in hosts[each:]]:
        found.append(
            f"{source}: racks are taken as alike, {each} hosts of each, the fewest that one has; "
            f"idle: {_listed(idle)}; --hosts FILE names others"
        )
    used = [host for hosts in racks.values() for host in hosts[:each]]
    found.append(
        f"{source}: {what}, and their hosts trays of {TRAY} GPUs, which the topology "
        f"does not name: export plans with --devices-per-host {TRAY} --hosts {_listed(used)}"
    )
    return found


def _listed(hosts: Sequence[str]) -> str:
    text = format_hostlist(hosts)
    return text if len(text) <= _SHOWN else "FILE, which names them in the order of the blocks"
