"""The facts of a node as levels: the node with its network cards, and what is inside."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from p2smt.cluster.file import load_topology, preset_names
from p2smt.cluster.topology import Level, Link, LinkKind, Piece
from p2smt.errors import InputError
from p2smt.interop.clusters.facts import Facts, InsideFacts
from p2smt.interop.clusters.nodes.gpu_models import (
    GpuModel,
    device_of,
    gpu_model,
    model_of_links,
    model_of_product,
    same_count,
)
from p2smt.interop.clusters.nodes.node_facts import BusPath, CardPort, InnerLevels, NodeFacts, Told
from p2smt.interop.clusters.nodes.unlike import islands, linked_alike, of_one_model
from p2smt.units import format_bandwidth, plain

NOTHING_TOLD = Told()
DEFAULT_LIBRARY = "nccl-2.30"


def facts_of_node(node: NodeFacts, told: Told = NOTHING_TOLD) -> Facts:
    """What a file of a node tells, as levels.

    Raises:
        InputError: its GPUs are not alike, or what it leaves open must be told.
    """
    lost = list(node.lost)
    node = of_one_model(node, told.gpu, lost)
    model = _model(node, told, lost)
    _check_links(node, model)
    node = linked_alike(node, lost)
    inner = _inner(node, model, lost)
    outer = node_link(node, told)
    library = model.library if model else "rccl" if node.amd else DEFAULT_LIBRARY
    inside = InsideFacts(
        (Level("node", 1, outer.link), *inner),
        link_known=outer.known,
        library=library,
        device=device_of(model) if model and (told.gpu or node.gpus[0].model) else None,
        cpu=node.cpu,
    )
    sentences = tuple(f"{node.source}: {sentence}" for sentence in (*lost, *outer.lost))
    return Facts(node.source, inside=inside, lost=sentences)


def _check_links(node: NodeFacts, model: GpuModel | None) -> None:
    """Refuse more links of a GPU to another, or to switches, than its model has."""
    most = max(*node.to_switch, *(count for row in node.pairs for count in row), 0)
    if model is not None and most > model.links:
        rule = f"has {most} links to another, and {model.name} has {model.links or 'none'}"
        raise InputError(f"{node.source}: a GPU", rule, "name the right GPU with --gpu")


def _model(node: NodeFacts, told: Told, lost: list[str]) -> GpuModel | None:
    """The GPUs' model: as told, as the source has it, or as the number of links shows."""
    if told.gpu:
        return gpu_model(told.gpu)
    if node.gpus[0].model:
        return gpu_model(node.gpus[0].model)
    if node.mentioned:
        model = gpu_model(model_of_product(node.mentioned))
        lost.append(
            f"the text names {node.mentioned[:60]}: {model.name} is taken; --gpu names another"
        )
        return model
    return None if node.amd else _assumed(node, lost)


def _assumed(node: NodeFacts, lost: list[str]) -> GpuModel | None:
    """By the links that each GPU has; None where they do not show it."""
    gpus = range(len(node.gpus))
    counts = {node.pairs[i][j] for i in gpus for j in gpus if i != j}
    sums = {sum(row) for row in node.pairs}
    name = ""
    if len(counts) == 1:
        name = model_of_links(counts.pop(), len(node.gpus))
    elif len(sums) == 1 and len(islands(node)) == 1:
        name = model_of_links(sums.pop(), 2) or {4: "p100"}.get(sum(node.pairs[0]), "")
    if not name:
        return None
    model = gpu_model(name)
    others = ", ".join(same_count(name))
    also = f" ({others}: as many links of another rate)" if others else ""
    called = node.gpus[0].called
    which = f"{called} is no GPU that p2smt knows" if called else "which GPU it is is not told"
    lost.append(
        f"{which}: by its links {name} is assumed, "
        f"{plain(model.link_bytes_per_s / 1e9, 6)} GB/s a link{also}; --gpu names another"
    )
    return model


def _inner(node: NodeFacts, model: GpuModel | None, lost: list[str]) -> tuple[Level, ...]:
    if len(node.gpus) == 1:
        return ()
    groups = islands(node)
    if not node.linked:
        found = _unlinked(node, model)
    elif len(groups) == len(node.gpus) and not any(node.to_switch):
        found = _on_buses(node, model, 1)
    else:
        found = _linked(node, groups, model)
    lost += found.lost
    return found.levels


def _linked(node: NodeFacts, groups: list[tuple[int, ...]], model: GpuModel | None) -> InnerLevels:
    """Groups of linked GPUs, and the buses that join them."""
    if model is None or not model.links:
        raise _ask(node, "does not tell which GPUs, so not how fast their links are")
    inner = island_levels(node, groups[0], model)
    if len(groups) == 1:
        return inner
    if any(island_levels(node, group, model) != inner for group in groups):
        rule = "differ in the links inside: GPUs of a node must be alike"
        raise InputError(f"{node.source}: groups of linked GPUs", rule, "name one with --node")
    outer = _on_buses(node, model, len(groups[0]))
    return InnerLevels((*outer.levels, *inner.levels), (*outer.lost, *inner.lost))


def _on_buses(node: NodeFacts, model: GpuModel | None, each: int) -> InnerLevels:
    told = [gpu.pcie_bytes_per_s for gpu in node.gpus]
    rates = [rate for rate in told if rate is not None]
    if not rates and model is None:
        raise _ask(node, "does not tell which GPUs, so not how fast their PCIe is")
    rate = min(rates) if rates else (model.pcie_bytes_per_s if model else 0.0)
    found = bus_levels(node, each, rate)
    if rates:
        return found
    filled = f"PCIe is not told: {plain(rate / 1e9)} GB/s, that of {model.name if model else ''}"
    return InnerLevels(found.levels, (*found.lost, filled))


def _unlinked(node: NodeFacts, model: GpuModel | None) -> InnerLevels:
    """A source that does not tell links: those of the model, on the board that it comes on."""
    if model is None:
        raise _ask(node, "tells neither which GPUs it has nor their NVLinks")
    size, rate = len(node.gpus), model.link_bytes_per_s
    if not model.on_board:
        return _on_buses(node, model, 1)
    if not joined(model.name, size):
        raise _not_joined(node, model)
    meshed = model.fabric == "xgmi"
    if not meshed:
        rate *= model.links
    kind = LinkKind.FULL_MESH if meshed else LinkKind.SWITCH
    link = Link(kind, (Piece("simple", LINKED_LATENCY_S, rate),), fabric=model.fabric)
    how = "a link between every two" if meshed else f"{model.links} links each, to switches"
    filled = f"links between its GPUs are not told: those of {model.name} are filled in, {how}"
    return InnerLevels((Level("gpu", size, link),), (filled,))


def joined(name: str, gpus: int) -> bool:
    """Whether it is certain how so many GPUs of a model in one node are joined."""
    model = gpu_model(name)
    return not model.on_board or gpus in model.boards


def _not_joined(node: NodeFacts, model: GpuModel) -> InputError:
    """GPUs of which boards differ: which of these it is must be told."""
    size = len(node.gpus)
    likely = [name for name in preset_names() if _has(name, size, model.fabric)]
    presets = f", or --node {' or '.join(likely)} instead of it" if likely else ""
    tool = "rocm-smi --showtopo" if node.amd else "nvidia-smi topo -m"
    rule = f"{model.fabric} joins them, but not always by switches: how is not told"
    return InputError(
        f"{node.source}: {size} GPUs {model.name}",
        rule.replace("by switches", "one by one") if node.amd else rule,
        f"give what {tool} prints on the node instead{presets}",
    )


def _has(preset: str, gpus: int, fabric: str) -> bool:
    """Whether a preset has nodes of so many GPUs that such links join."""
    found = load_topology(preset)
    inside = found.levels[found.node_level + 1 :]
    named = not preset.startswith("paper-") and found.node_level >= 0 and inside
    return bool(named) and inside[-1].link.fabric == fabric and _size(inside) == gpus


def _size(levels: Sequence[Level]) -> int:
    return math.prod(level.size for level in levels)


def _ask(node: NodeFacts, untold: str) -> InputError:
    called = node.gpus[0].called
    unknown = f"are {called}, which p2smt does not know: their links and PCIe neither"
    return InputError(
        f"{node.source}: {len(node.gpus)} GPUs",
        unknown if called else untold,
        f"name them with --gpu, such as --gpu {'mi300x' if node.amd else 'h100'}, or give --node "
        "with a preset instead of this file",
    )


# Levels of what PCIe joins: NUMA nodes, PCIe switches, and GPUs or groups of linked GPUs.
# A level is kept where its entities hold equally many GPUs, numbered one after the other; any other
# grouping is left out, and said to be.


PCIE_LATENCY_S = 5.7e-6
"""Of a step, as NCCL has it for rings over PCIe (src/graph/tuning.cc)."""
SOCKET_BYTES_PER_S = 16e9
"""Between NUMA nodes where nothing is told: what NCCL takes for AMD's CPUs (src/graph/topo.h)."""
_PCIE = "pcie"


def bus_levels(node: NodeFacts, each: int, pcie_bytes_per_s: float) -> InnerLevels:
    """The levels over units of ``each`` GPUs, the units themselves included.

    ``pcie_bytes_per_s``: of a GPU's own link.
    """
    units = len(node.gpus) // each
    near = [[_near(node, a, b, each) for b in range(units)] for a in range(units)]
    lost: list[str] = []
    numa = _grouped(near, BusPath.NODE, "NUMA nodes", lost)
    switch = _grouped(near, BusPath.PXB, "PCIe switches", lost)
    if not switch and units > 1 and _each_on_a_switch(node, near, each):
        switch = 1
    if numa and switch and numa % switch:
        lost.append("PCIe switches span NUMA nodes: the level of the switches is left out")
        switch = 0
    if units > 1 and all(way is None for i, row in enumerate(near) for way in row[:i]):
        numa = int(each > 1)
        how = "each group of linked ones is taken to be on its own" if numa else "one is taken"
        lost.append(f"on how many sockets GPUs are is not told: {how}")
    levels = []
    if numa:
        under = numa * each * pcie_bytes_per_s  # what lies below cannot send more
        levels.append(_level("numa", units // numa, min(_socket(node, lost), under)))
    if switch and switch != numa:
        over = (numa or units) // switch
        levels.append(_level("switch", over, _uplink(node, pcie_bytes_per_s)))
    name = "gpu" if each == 1 else "island"
    inner = switch or numa or units
    if inner > 1:
        levels.append(_level(name, inner, pcie_bytes_per_s, _facing(node, each)))
    return InnerLevels(tuple(level for level in levels if level.size > 1), tuple(lost))


def _each_on_a_switch(node: NodeFacts, near: Sequence[Sequence[BusPath | None]], each: int) -> bool:
    """Whether the GPUs of each unit share a PCIe switch with each other, and with no other unit."""
    inside = (node.near[i][j] for i in range(len(node.gpus)) for j in range(i - i % each, i))
    across = (way for a, row in enumerate(near) for way in row[:a])
    return (
        each > 1
        and all(way is not None and way <= BusPath.PXB for way in inside)
        and all(way is not None and way > BusPath.PXB for way in across)
    )


def _facing(node: NodeFacts, each: int) -> int:
    """How many GPUs of a unit have one of another on their own NUMA node: the fewest, evenly."""
    gpus = range(len(node.gpus))

    def faces(i: int) -> bool:
        others = (node.near[i][j] for j in gpus if j // each != i // each)
        return any(_within(way, BusPath.NODE) for way in others)

    counts = Counter(i // each for i in gpus if faces(i))
    fewest = min(counts[a] for a in range(len(gpus) // each))
    return next(ports for ports in range(max(1, fewest), 0, -1) if each % ports == 0)


def _level(name: str, size: int, rate: float, ports: int = 1) -> Level:
    pieces = (Piece("simple", PCIE_LATENCY_S, rate),)
    return Level(name, size, Link(LinkKind.SWITCH, pieces, ports=ports, fabric=_PCIE))


def _near(node: NodeFacts, one: int, other: int, each: int) -> BusPath | None:
    """What lies between the nearest GPUs of two units; None: the source does not tell.

    Units may span NUMA nodes: what one sends to another goes where the way is shortest.
    """
    found = [
        node.near[i][j]
        for i in range(one * each, (one + 1) * each)
        for j in range(other * each, (other + 1) * each)
    ]
    told = [near for near in found if near is not None]
    return min(told) if told else None


def _grouped(near: list[list[BusPath | None]], most: BusPath, what: str, lost: list[str]) -> int:
    """Units in each group within which no more than ``most`` lies; 0: they are no level."""
    units = len(near)
    groups = [
        frozenset(j for j in range(units) if j == i or _within(row[j], most))
        for i, row in enumerate(near)
    ]
    distinct = list(dict.fromkeys(groups))
    sizes = sorted({len(group) for group in distinct})
    if len(distinct) == 1 or (sizes[-1] == 1 and most < BusPath.NODE):
        return 0
    one_after_another = [unit for group in distinct for unit in sorted(group)]
    if sum(map(len, distinct)) != units or one_after_another != list(range(units)):
        lost.append(f"GPUs are not numbered by their {what}: that level is left out")
        return 0
    if any(a != b for a, b in pairwise(sizes)):
        shown = ", ".join(str(len(group)) for group in distinct[:8])
        lost.append(f"{what} hold {shown} GPUs: that level is left out, as they must be alike")
        return 0
    return sizes[0]


def _within(near: BusPath | None, most: BusPath) -> bool:
    return near is None or near <= most


def _socket(node: NodeFacts, lost: list[str]) -> float:
    rate = node.socket_bytes_per_s
    how = "as NCCL takes it to be for such CPUs" if rate else "NCCL's for AMD's CPUs"
    rate = rate or SOCKET_BYTES_PER_S
    lost.append(f"what joins NUMA nodes is not told: {plain(rate / 1e9, 6)} GB/s, {how}")
    return rate


def _uplink(node: NodeFacts, pcie_bytes_per_s: float) -> float:
    """What a PCIe switch has towards its CPU; as much as a GPU where that is not told."""
    told = [gpu.uplink_bytes_per_s for gpu in node.gpus]
    return min((rate for rate in told if rate is not None), default=pcie_bytes_per_s)


# The link of a node: its network cards.
# Cards near to some GPU (by PCIe bridges only) count; where no card is, all of the nearest kind do.
# Others serve storage and management, mostly, and are left out.


NETWORK_LATENCY_S = 14e-6
"""Of a step, as NCCL has it for rings over a network (src/graph/tuning.cc)."""
STAND_IN_BYTES_PER_S = 50e9
_FABRIC = "infiniband"


@dataclass(frozen=True, slots=True)
class NodeLink:
    """The link of a node; ``known``: whether its bandwidth is told, not a stand-in."""

    link: Link
    known: bool
    lost: tuple[str, ...]


def node_link(node: NodeFacts, told: Told) -> NodeLink:
    """The link that a node's network cards make.

    Raises:
        InputError: so many ports as told do not spread evenly over its GPUs.
    """
    lost: list[str] = []
    if told.nic_ports is None:
        kept = _kept(node, told, lost)
    else:
        _check_ports(node, told.nic_ports)
        kept = [CardPort("told", "told", told.nic_bytes_per_s)] * told.nic_ports
    lost += _other_ports(node, told)
    rate = told.nic_bytes_per_s or _rate(kept, lost)
    fabric = told.nic_fabric or _fabric(kept, lost)
    pieces = (Piece("simple", NETWORK_LATENCY_S, rate or STAND_IN_BYTES_PER_S),)
    link = Link(LinkKind.SWITCH, pieces, ports=max(1, len(kept)), fabric=fabric)
    return NodeLink(link, rate is not None, tuple(lost))


def _other_ports(node: NodeFacts, told: Told) -> list[str]:
    """What is said where the file tells of other cards than those that are taken."""
    found = _kept(node, NOTHING_TOLD, [])
    rate = _rate(found, []) if found else None
    count = told.nic_ports in (None, len(found))
    if not found or (count and told.nic_bytes_per_s in (None, rate or told.nic_bytes_per_s)):
        return []
    each = f" of {format_bandwidth(rate)}" if rate else ""
    ports = "port" if len(found) == 1 else "ports"
    return [f"the file has {len(found)} network card {ports}{each}: those of --nic are taken"]


def _kept(node: NodeFacts, told: Told, lost: list[str]) -> list[CardPort]:
    """The ports that the source tells of, and that count."""
    ports = _near_ports(node, lost)
    kept = _spread(ports, len(node.gpus), lost) if ports else []
    if not kept and told.nic_bytes_per_s:
        lost.append("network cards are not told: a node is given one port; --nic 8x400Gb/s has 8")
    elif not kept:
        lost.append("network cards are not told, so not what leaves the node; --nic 8x400Gb/s")
    elif any(port.bytes_per_s is None for port in kept) and not told.nic_bytes_per_s:
        what = "port is" if len(kept) == 1 else "ports is"
        lost.append(f"the rate of {len(kept)} network card {what} not told; --nic 400Gb/s")
    return kept


def _check_ports(node: NodeFacts, ports: int) -> None:
    gpus = len(node.gpus)
    if ports < 1 or not _even(ports, gpus):
        rule = f"must spread evenly over its {gpus} GPUs: one number must divide the other"
        raise InputError(f"{node.source}: {ports} network card ports", rule, "correct --nic")


def _near_ports(node: NodeFacts, lost: list[str]) -> list[CardPort]:
    """The ports that count."""
    count = len(node.gpus)
    nearest = []
    for j in range(count, count + len(node.ports)):
        ways = [node.near[i][j] for i in range(count)]
        nearest.append(min((near for near in ways if near is not None), default=BusPath.SYS))
    most = max(BusPath.PXB, min(nearest, default=BusPath.PXB))
    pairs = list(zip(node.ports, nearest, strict=True))
    if left := [port.name for port, near in pairs if near > most]:
        lost.append(f"network cards far from all GPUs are left out: {_named(left)}")
    return [port for port, near in pairs if near <= most]


def _spread(ports: list[CardPort], gpus: int, lost: list[str]) -> list[CardPort]:
    """As many of them as spread evenly over the GPUs: the fastest, where those do."""
    rates = [port.bytes_per_s or 0.0 for port in ports]
    fastest = [port for port, rate in zip(ports, rates, strict=True) if rate == max(rates)]
    if len(fastest) < len(ports) and _even(len(fastest), gpus):
        slower = [port.name for port in ports if port not in fastest]
        lost.append(f"slower network cards are left out: {_named(slower)}")
        return fastest
    most = next(n for n in range(len(ports), 0, -1) if _even(n, gpus))
    if most < len(ports):
        lost.append(
            f"{len(ports)} network card ports do not spread evenly over {gpus} GPUs: "
            f"{most} are counted"
        )
    return sorted(ports, key=lambda port: -(port.bytes_per_s or 0.0))[:most]


def _even(ports: int, gpus: int) -> bool:
    return ports % gpus == 0 or gpus % ports == 0


def _named(names: list[str]) -> str:
    return ", ".join(names[:4]) + (", .." if len(names) > 4 else "")


def _rate(ports: list[CardPort], lost: list[str]) -> float | None:
    """The rate of each port; the least where they differ."""
    told = [port.bytes_per_s for port in ports]
    rates = [rate for rate in told if rate]
    if not rates or len(rates) < len(told):
        return None
    least = min(rates)
    if max(rates) > least:
        lost.append(
            f"network card ports have {format_bandwidth(least)} to "
            f"{format_bandwidth(max(rates))}: all are given the least"
        )
    shared = _pcie_share(ports)
    if shared is not None and shared < least:
        lost.append(
            f"ports of {format_bandwidth(least)} share a PCIe link: "
            f"{format_bandwidth(shared)} each is counted"
        )
        return shared
    return least


def _pcie_share(ports: list[CardPort]) -> float | None:
    """The least that a card's PCIe link leaves to each of its ports; None: not told."""
    cards = defaultdict(list)
    for port in ports:
        cards[port.card].append(port.pcie_bytes_per_s)
    shares = [rates[0] / len(rates) for rates in cards.values() if rates[0] is not None]
    return min(shares, default=None)


def _fabric(ports: list[CardPort], lost: list[str]) -> str:
    """What most of them speak; InfiniBand where nothing is told."""
    told = Counter(port.fabric for port in ports if port.fabric)
    if told:
        return told.most_common(1)[0][0]
    if ports:
        lost.append(
            "the network of its cards is not told: InfiniBand is assumed; --nic-fabric roce"
        )
    return _FABRIC


# Levels of GPUs that NVLink or xGMI joins.
# Switches, or a link between every two, are one level.  Where several groups of GPUs are linked
# inside only, PCIe joins them.  An unequal mesh, such as that of a DGX-1, becomes two levels, as in
# the preset dgx1-v100; what that loses is said.


LINKED_LATENCY_S = 3.4e-6
"""Of a step, as NCCL has it for rings of the simple protocol (src/graph/tuning.cc)."""


def island_levels(node: NodeFacts, group: tuple[int, ...], model: GpuModel) -> InnerLevels:
    """The levels inside one group of linked GPUs."""
    size, rate = len(group), model.link_bytes_per_s
    if size == 1:
        return InnerLevels(())
    to_switch = [node.to_switch[i] for i in group]
    if any(to_switch):
        lost = _fewest("to the switches", to_switch)
        return InnerLevels((_switch(size, min(to_switch) * rate, model),), tuple(lost))
    counts = {node.pairs[i][j] for i, j in combinations(group, 2)}
    if len(counts) == 1:
        return InnerLevels((_uniform(size, counts.pop(), model),))
    return _unequal(node, group, model)


def _uniform(size: int, count: int, model: GpuModel) -> Level:
    """All pairs alike: more links than a GPU has can only be those to switches."""
    rate = count * model.link_bytes_per_s
    switched = count * (size - 1) > model.links or (size == 2 and count == model.links)
    if switched and model.fabric != "xgmi":
        return _switch(size, rate, model)
    return Level("gpu", size, Link(LinkKind.FULL_MESH, _pieces(rate), fabric=model.fabric))


def _switch(size: int, rate: float, model: GpuModel, name: str = "gpu", ports: int = 1) -> Level:
    link = Link(LinkKind.SWITCH, _pieces(rate), ports=ports, fabric=model.fabric)
    return Level(name, size, link)


def _pieces(rate: float) -> tuple[Piece, ...]:
    return (Piece("simple", LINKED_LATENCY_S, rate),)


def _unequal(node: NodeFacts, group: tuple[int, ...], model: GpuModel) -> InnerLevels:
    """A mesh whose pairs differ: parts that are linked completely, and what joins the parts."""
    counts = [[node.pairs[i][j] for j in group] for i in group]
    pairs = [counts[i][j] for i, j in combinations(range(len(group)), 2)]
    mesh = f"pairs of GPUs have {min(pairs)} to {max(pairs)} links"
    for size in (size for size in range(len(group) - 1, 1, -1) if len(group) % size == 0):
        if (found := _parts(counts, size)) is not None:
            return _two_levels(len(group), size, found, model, mesh)
    total = min(sum(row) for row in counts)
    lost = f"{mesh}: modelled as a switch with the {total} links of each GPU, too fast for a pair"
    return InnerLevels((_switch(len(group), total * model.link_bytes_per_s, model),), (lost,))


@dataclass(frozen=True, slots=True)
class _Parts:
    """Equal parts of a mesh: the links of each GPU inside its part, and to all others.

    ``alike``: whether all pairs inside a part have as many.
    """

    inside: tuple[int, ...]
    across: tuple[int, ...]
    alike: bool


def _parts(counts: list[list[int]], size: int) -> _Parts | None:
    """Parts of that size; None where one is not linked completely, or a GPU to no other part."""
    inside, across, pairs = [], [], set[int]()
    for i, row in enumerate(counts):
        first = i - i % size
        part = row[first : first + size]
        pairs |= {count for j, count in enumerate(part) if first + j != i}
        inside.append(sum(part))
        across.append(sum(row) - sum(part))
    if 0 in pairs or 0 in across:
        return None
    return _Parts(tuple(inside), tuple(across), len(pairs) == 1)


def _two_levels(gpus: int, size: int, found: _Parts, model: GpuModel, mesh: str) -> InnerLevels:
    inside, across = min(found.inside), sum(found.across) / len(found.across)
    rate, name = model.link_bytes_per_s, "half" if gpus == 2 * size else "part"
    inner = _uniform(size, inside // (size - 1), model) if found.alike else None
    levels = (
        _switch(gpus // size, across * rate, model, name, size),
        inner or _switch(size, inside * rate, model),
    )
    lost = [
        f"{mesh}: modelled as {gpus // size} parts of {size} GPUs; between parts a GPU has "
        f"{plain(across)} link{'s' if across != 1 else ''} to any other, also where there is none"
    ]
    if inner is None:
        lost.append(f"inside a part a pair may use all {inside} links of a GPU, too fast for it")
    lost += _fewest("inside their part", found.inside)
    if len(set(found.across)) > 1:
        span = f"{min(found.across)} to {max(found.across)}"
        lost.append(f"GPUs have {span} links to other parts: their mean is counted")
    return InnerLevels(levels, tuple(lost))


def _fewest(where: str, counts: Sequence[int]) -> list[str]:
    if len(set(counts)) == 1:
        return []
    return [f"GPUs have {min(counts)} to {max(counts)} links {where}: all are given the fewest"]
