"""Levels of GPUs that NVLink or xGMI joins.

Switches, or a link between every two, are one level.  Where several groups of GPUs are linked
inside only, PCIe joins them.  An unequal mesh, such as that of a DGX-1, becomes two levels, as in
the preset dgx1-v100; what that loses is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from p2smt.cluster.topology import Level, Link, LinkKind, Piece
from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.facts import InnerLevels, NodeFacts
from p2smt.interop.clusters.nodes.models import GpuModel

LATENCY_S = 3.4e-6
"""Of a step, as NCCL has it for rings of the simple protocol (src/graph/tuning.cc)."""


def islands(node: NodeFacts) -> list[tuple[int, ...]]:
    """The GPUs that are linked with each other, directly or over others, by their least number."""
    if any(node.to_switch):
        return [tuple(range(len(node.gpus)))]
    found: list[tuple[int, ...]] = []
    left = set(range(len(node.gpus)))
    while left:
        todo, group = [min(left)], set[int]()
        while todo:
            one = todo.pop()
            group.add(one)
            todo += [j for j in left - group if node.pairs[one][j]]
        left -= group
        found.append(tuple(sorted(group)))
    return found


def check_alike(node: NodeFacts, groups: Sequence[tuple[int, ...]]) -> None:
    """Refuse GPUs of one node that are linked unlike each other.

    Raises:
        InputError: groups have different sizes, or one GPU has no link to the switches.
    """
    bare = [node.gpus[i].name for i, count in enumerate(node.to_switch) if not count]
    if any(node.to_switch) and bare:
        raise _unlike(node, bare, "no link to the NVSwitches, which others have")
    most = max(len(group) for group in groups)
    odd = [node.gpus[i].name for group in groups if len(group) < most for i in group]
    if odd:
        raise _unlike(node, odd, f"links to fewer GPUs than others, which have {most - 1}")


def _unlike(node: NodeFacts, names: list[str], what: str) -> InputError:
    shown = ", ".join(names[:4]) + (", .." if len(names) > 4 else "")
    rule = f"{'has' if len(names) == 1 else 'have'} {what}: GPUs of a node must be alike"
    return InputError(f"{node.source}: {shown}", rule, "repair the node, or name one with --node")


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
    return (Piece("simple", LATENCY_S, rate),)


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
        f"{across:.3g} link{'s' if across != 1 else ''} to any other, also where there is none"
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
