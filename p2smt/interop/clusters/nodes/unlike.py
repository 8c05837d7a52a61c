"""Nodes whose GPUs are not all alike: which of them, and in what order, are taken.

The GPUs of a topology are alike.  Where a node has a few that are not (a third card beside a linked
pair, one of another model), those that most are like are taken, and the others are named.  Levels
hold GPUs numbered one after the other, so linked GPUs are brought together.  What was taken is said
as the variable that makes a program see these GPUs in this order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, islice, permutations

from p2smt.errors import InputError
from p2smt.interop.clusters.nodes.gpu_models import gpu_model
from p2smt.interop.clusters.nodes.node_facts import Accelerator, BusPath, NodeFacts

_SHOWN = 4
MAX_TRIES = 50_000
"""Of bringing one group's GPUs into the order of another's."""
LinkedGpus = tuple[int, ...]
"""GPUs by number, that links join."""


def of_one_model(node: NodeFacts, told: str, lost: list[str]) -> NodeFacts:
    """The GPUs of the model that is told, or else of the one that most are.

    Raises:
        InputError: none can be of the model told, or as many are of another.
    """
    by_model: dict[str, list[int]] = defaultdict(list)
    for i, gpu in enumerate(node.gpus):
        by_model[gpu.model or gpu.called].append(i)
    if told:
        kept = [i for i, gpu in enumerate(node.gpus) if _may_be(gpu, told)]
        if not kept:
            gpu = node.gpus[0]
            named = f" ({gpu.model})" if gpu.model else ""
            given = f"{node.source}: --gpu {told}, and the file says {gpu.called}{named}"
            raise InputError(given, "contradict each other", "drop --gpu, or name that model")
    else:
        kept = max(by_model.values(), key=len)
        if sum(len(group) == len(kept) for group in by_model.values()) > 1:
            shown = " and ".join(name or "others" for name in list(by_model)[:3])
            raise InputError(
                f"{node.source}: {shown}", "GPUs of a node must be alike", "give --gpu"
            )
    if len(kept) == len(node.gpus):
        return node
    others = [gpu for i, gpu in enumerate(node.gpus) if i not in kept]
    what = f"{_named(others)} {_is(others)} {others[0].model or others[0].called}, unlike most"
    lost.append(f"{what}: left out; {_visible(node, kept)}")
    return node.only(kept)


def _may_be(gpu: Accelerator, model: str) -> bool:
    if gpu.chip:
        return gpu_model(model).chip == gpu.chip
    return gpu.model == model if gpu.model else True


def islands(node: NodeFacts) -> list[LinkedGpus]:
    """The GPUs that are linked with each other, directly or over others, by their least number."""
    if any(node.to_switch):
        return [tuple(range(len(node.gpus)))]
    found: list[LinkedGpus] = []
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


def linked_alike(node: NodeFacts, lost: list[str]) -> NodeFacts:
    """The GPUs that are linked as most are, linked ones one after the other."""
    kept = _alike(node, lost)
    if kept is None:
        return replace(node, pairs=((0,) * len(node.gpus),) * len(node.gpus))
    order = [i for group in _together(node, kept) for i in _as_first(node, kept[0], group)]
    if order == list(range(len(node.gpus))):
        return node
    left = [gpu for i, gpu in enumerate(node.gpus) if i not in order]
    said = f"{_named(left)} {_is(left)} not linked as most are: left out" if left else ""
    crossed = "GPUs that are near are not numbered one after the other: they are brought together"
    how = "; ".join(part for part in (said, crossed * (order != sorted(order))) if part)
    lost.append(f"{how}; {_visible(node, order)}")
    return node.only(order)


def _alike(node: NodeFacts, lost: list[str]) -> list[LinkedGpus] | None:
    """The groups of the kind that most GPUs are in; None: most have no links at all."""
    if any(node.to_switch):
        return [tuple(i for i, count in enumerate(node.to_switch) if count)]
    kinds: dict[object, list[LinkedGpus]] = defaultdict(list)
    for group in islands(node):
        kinds[_links(node, group)].append(group)
    most = max(kinds.values(), key=lambda groups: (len(groups) * len(groups[0]), len(groups[0])))
    linked = [node.gpus[i] for groups in kinds.values() for g in groups if len(g) > 1 for i in g]
    if len(most[0]) > 1 or not linked:
        return most
    lost.append(f"links of {_named(linked)} are left out: most GPUs have none")
    return None


def _as_first(node: NodeFacts, first: LinkedGpus, group: LinkedGpus) -> LinkedGpus:
    """The GPUs of a group in the order in which they are linked as those of the first one."""
    pairs = list(combinations(range(len(group)), 2))
    wanted = [node.pairs[first[i]][first[j]] for i, j in pairs]
    for order in islice(permutations(group), MAX_TRIES):
        if [node.pairs[order[i]][order[j]] for i, j in pairs] == wanted:
            return order
    return group


def _links(node: NodeFacts, group: LinkedGpus) -> tuple[tuple[int, ...], ...]:
    """The links inside a group, however its GPUs are numbered."""
    return tuple(sorted(tuple(sorted(node.pairs[i][j] for j in group)) for i in group))


def _together(node: NodeFacts, groups: list[LinkedGpus]) -> list[LinkedGpus]:
    """The groups, those that one NUMA node holds one after the other."""
    found: list[LinkedGpus] = []
    left = list(groups)
    while left:
        first = left[0]
        here = [group for group in left if group is first or _near(node, first, group)]
        found += here
        left = [group for group in left if group not in here]
    return found


def _near(node: NodeFacts, one: LinkedGpus, other: LinkedGpus) -> bool:
    ways = [node.near[i][j] for i in one for j in other]
    return any(way is not None and way <= BusPath.NODE for way in ways)


def _named(gpus: Sequence[Accelerator]) -> str:
    more = ", .." if len(gpus) > _SHOWN else ""
    return ", ".join(gpu.name for gpu in gpus[:_SHOWN]) + more


def _is(gpus: Sequence[Accelerator]) -> str:
    return "is" if len(gpus) == 1 else "are"


def _visible(node: NodeFacts, kept: Sequence[int]) -> str:
    """What makes a program see these GPUs in this order."""
    return f"{'HIP' if node.amd else 'CUDA'}_VISIBLE_DEVICES={','.join(map(str, kept))}"
