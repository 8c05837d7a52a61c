"""The facts of a node as levels: the node with its network cards, and what is inside."""

from __future__ import annotations

from p2smt.cluster.topology import Level, Link, LinkKind, Piece
from p2smt.errors import InputError
from p2smt.interop.clusters.facts import Facts, InsideFacts
from p2smt.interop.clusters.nodes.buses import bus_levels
from p2smt.interop.clusters.nodes.cards import node_link
from p2smt.interop.clusters.nodes.facts import InnerLevels, NodeFacts, Told
from p2smt.interop.clusters.nodes.linked import (
    LATENCY_S,
    check_alike,
    island_levels,
    islands,
)
from p2smt.interop.clusters.nodes.models import (
    GpuModel,
    device_of,
    gpu_model,
    model_of_links,
    same_count,
)

NOTHING_TOLD = Told()
DEFAULT_LIBRARY = "nccl-2.30"


def facts_of_node(node: NodeFacts, told: Told = NOTHING_TOLD) -> Facts:
    """What a file of a node tells, as levels.

    Raises:
        InputError: its GPUs are not alike, or what it leaves open must be told.
    """
    lost = list(node.lost)
    model = _model(node, told, lost)
    _check_links(node, model)
    inner = _inner(node, model, lost)
    outer = node_link(node, told)
    library = model.library if model else "rccl" if node.amd else DEFAULT_LIBRARY
    inside = InsideFacts(
        (Level("node", 1, outer.link), *inner),
        link_known=outer.known,
        library=library,
        device=device_of(model) if model and (told.gpu or node.gpus[0].model) else None,
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
    named = sorted({gpu.model for gpu in node.gpus})
    if told.gpu:
        lost += [
            f"it has {name}, not {told.gpu} as told" for name in named if name not in ("", told.gpu)
        ]
        return gpu_model(told.gpu)
    if len(named) > 1:
        shown = " and ".join(name or "others" for name in named[:3])
        raise InputError(f"{node.source}: {shown}", "GPUs of a node must be alike", "give --gpu")
    if named[0]:
        return gpu_model(named[0])
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
    lost.append(
        f"which GPU it is is not told: by its links {name} is assumed, "
        f"{model.link_bytes_per_s / 1e9:g} GB/s a link{also}; --gpu names another"
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
    check_alike(node, groups)
    inner = island_levels(node, groups[0], model)
    if len(groups) == 1:
        return inner
    size = len(groups[0])
    if any(island_levels(node, group, model) != inner for group in groups):
        rule = "differ in the links inside: GPUs of a node must be alike"
        raise InputError(f"{node.source}: groups of linked GPUs", rule)
    if [i for group in groups for i in group] != list(range(len(node.gpus))):
        left = "groups of linked GPUs are not numbered one after the other: links are left out"
        found = _on_buses(node, model, 1)
        return InnerLevels(found.levels, (left, *found.lost))
    outer = _on_buses(node, model, size)
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
    filled = f"PCIe is not told: {rate / 1e9:.3g} GB/s, that of {model.name if model else ''}"
    return InnerLevels(found.levels, (*found.lost, filled))


def _unlinked(node: NodeFacts, model: GpuModel | None) -> InnerLevels:
    """A source that does not tell links: those of the model, on the board that it comes on."""
    if model is None:
        raise _ask(node, "tells neither which GPUs it has nor their NVLinks")
    if not model.on_board:
        return _on_buses(node, model, 1)
    size, rate = len(node.gpus), model.link_bytes_per_s
    meshed = model.fabric == "xgmi"
    if not meshed:
        rate *= model.links
    kind = LinkKind.FULL_MESH if meshed else LinkKind.SWITCH
    link = Link(kind, (Piece("simple", LATENCY_S, rate),), fabric=model.fabric)
    how = "a link between every two" if meshed else f"{model.links} links each, to switches"
    filled = f"links between its GPUs are not told: those of {model.name} are filled in, {how}"
    return InnerLevels((Level("gpu", size, link),), (filled,))


def _ask(node: NodeFacts, rule: str) -> InputError:
    return InputError(
        f"{node.source}: {len(node.gpus)} GPUs",
        rule,
        f"name them with --gpu, such as --gpu {'mi300x' if node.amd else 'h100'}, or give --node "
        "with a preset instead of this file",
    )
