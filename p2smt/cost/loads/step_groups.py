"""The groups of one step, and what they send out of the entities of a level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import Topology
from p2smt.cost.loads.rings import node_order
from p2smt.cost.loads.routing import FloatArray
from p2smt.cost.loads.trees import GroupTrees, group_trees
from p2smt.parallelism.placement import IntArray


@dataclass(frozen=True, slots=True)
class StepGroups:
    """The groups of one size in a step, one a row.

    ``rows`` are sorted; ``ring`` is the order in which rings visit the members, ``chain`` that in
    which they are grouped for ``trees``.  ``weight`` is what an edge of a ring carries, over the
    same of the largest groups of the step: (p - 1)/p of the payload each.
    """

    rows: IntArray
    ring: IntArray
    chain: IntArray
    trees: GroupTrees
    weight: float

    @staticmethod
    def of(groups: IntArray, per_node: int, joins_nodes: bool, largest: int) -> StepGroups:
        """Groups in communicator order, in a step whose largest have so many members."""
        chain, members = node_order(groups, per_node, by_device=joins_nodes), groups.shape[1]
        weight = 1.0 if members == largest else (1 - 1 / members) / (1 - 1 / largest)
        ring, trees = chain if joins_nodes else groups, group_trees(chain, per_node)
        return StepGroups(np.sort(groups, axis=1), ring, chain, trees, weight)


def entity_of(topology: Topology, groups: IntArray, j: int) -> tuple[IntArray, IntArray]:
    """Per member: a number for its (group, entity of level j), and the members in there."""
    entity = groups // topology.devices_under(j)
    total = int(np.prod(topology.sizes[: j + 1]))
    key = entity + total * np.arange(len(groups))[:, None]
    _, where, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(where.reshape(groups.shape)), np.asarray(count)


def sent_by(topology: Topology, every: StepGroups, j: int, entities: int) -> tuple[FloatArray, ...]:
    """Per (group, entity): what leaves it by a ring, by a chain out and in, and by a tree.

    A ring leaves it once per cyclic run of its members.
    """
    where, _ = entity_of(topology, every.ring, j)
    apart = where != np.roll(where, -1, axis=1)
    runs = np.bincount(where[apart], minlength=entities)
    chain = apart[:, :-1]
    away = np.bincount(where[:, :-1][chain], minlength=entities)
    into = np.bincount(where[:, 1:][chain], minlength=entities)
    grouped, _ = entity_of(topology, every.chain, j)
    tree = every.trees.sent(grouped.ravel(), j > topology.node_level)
    both = runs * every.weight, away.astype(float), into.astype(float), tree
    return tuple(np.asarray(sent, dtype=np.float64) for sent in both)
