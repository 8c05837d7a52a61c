"""At best how fast data come into the entities of each level, and what the first byte costs."""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass

import numpy as np

from p2smt.cluster.topology import CALL_NAMES, Algorithm, Topology
from p2smt.cost.library.registry import library_of
from p2smt.cost.link_bounds import bare_links, entity_rates
from p2smt.cost.loads.routing import FloatArray


@dataclass(frozen=True, slots=True)
class EntryRates:
    """Bytes per second into each entity of each level, and the least seconds of a step by level.

    ``into[j][e]``: whatever comes into entity e of level j, comes over its uplinks or, at a ring,
    torus or full mesh, over the links from its siblings or the uplinks of what encloses it.
    ``least_s[j]``: any step of which a message leaves an entity of level j costs so much beside
    the time of its bytes.  ``reducing[j]``: switches there or further out reduce what passes.
    ``relayed``: data may pass devices that have no part in the array.
    """

    into: tuple[FloatArray, ...]
    least_s: tuple[float, ...]
    reducing: tuple[bool, ...]
    relayed: bool = False


def priced_rates(topology: Topology) -> EntryRates:
    """Rates that no step's price beats."""
    if not topology.library:
        return EntryRates(entity_rates(topology), _least_hops(topology), _reducing(topology))
    links = bare_links(topology, least=0.0)
    return EntryRates(entity_rates(links), _least_calls(topology), _reducing(links))


def hardware_rates(topology: Topology) -> EntryRates:
    """Rates that the links alone allow: nothing but bytes."""
    links = bare_links(topology)
    nothing = (0.0,) * len(topology.levels)
    return EntryRates(entity_rates(links), nothing, _reducing(links), relayed=True)


def _reducing(topology: Topology) -> tuple[bool, ...]:
    """By level; the algorithm must be one of the topology's."""
    known = Algorithm.IN_SWITCH in topology.known_algorithms
    here = (known and level.link.in_switch_members > 0 for level in topology.levels)
    return tuple(itertools.accumulate(here, operator.or_))


def _least_hops(topology: Topology) -> tuple[float, ...]:
    """A message that leaves an entity pays a hop there or further out, where levels have any."""
    found, least = [], np.inf
    for level in topology.levels:
        if level.size > 1:
            least = min(least, level.link.latency_s)
        found.append(0.0 if np.isinf(least) else least)
    return tuple(found)


def _least_calls(topology: Topology) -> tuple[float, ...]:
    """The cheapest call of the library, between nodes where the level joins them."""
    library, node = library_of(topology.library), topology.node_level
    measured = dict(topology.calls)
    call_s = min(measured.get(name, library.call_s(name)) for name in CALL_NAMES)
    across = library.across_s(topology.levels[node].link.fabric) if node >= 0 else 0.0
    return tuple(
        (call_s + (across if j <= node else 0.0)) * topology.call_factor
        for j in range(len(topology.levels))
    )
