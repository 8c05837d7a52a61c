"""What a dispatch to the experts of a mixture takes: expected copies of tokens, level by level.

A group of p ranks spans D entities of a level, each with as many of the E experts.  A token that
goes to r experts, any r alike, misses an entity with probability C(E - E/D, r) / C(E, r).  It needs

    d = D (1 - C(E - E/D, r) / C(E, r))

of the entities on the average, and with node-limited routing at most as many as its groups lie in.
It enters each of them once, whatever it does further in: a rank, whose tokens have n bytes, loads
a level with n d (D - 1) / D, sent and received.  That is no more than r n (D - 1) / D, which an
all-to-all of a copy for each expert has.  The slowest level is what counts, at the rates of its
links that peers reach; to it come 20 us.  Combine takes as long, the other way round.

Between siblings that links of their own join (ring, torus, full mesh) pass also the copies of
tokens that came to one of them from further out, which an all-to-all sends to each one directly.

Source of the counting: the dispatch of DeepSeek-V3 (arXiv 2412.19437, section 3.2.2), which DeepEP
and HybridEP carry out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from p2smt.cluster.topology import Link, LinkKind, Topology
from p2smt.collectives.dispatch import Dispatch
from p2smt.collectives.names import RequestKind
from p2smt.cost.loads.level_use import Footprint, LevelUse
from p2smt.cost.step_time import StepCostModel, Way
from p2smt.parallelism.placement import FloatArray

START_S = 20e-6
"""What a dispatch takes whatever it sends: kernels, and exchanging who sends how much."""
FLEX = "flex"
"""The algorithm's name, as Megatron has it."""


def reached(entities: npt.ArrayLike, kind: Dispatch) -> FloatArray:
    """The entities that a token needs on the average, of so many with equal parts of the experts.

    ``entities`` has any shape, which the result has too; they need not be whole numbers.
    """
    spanned = np.asarray(entities, dtype=float)
    passed = np.arange(kind.active)
    others = kind.experts - kind.experts / spanned[..., None] - passed
    missed = np.prod(np.maximum(others, 0) / (kind.experts - passed), axis=-1)
    found = spanned * (1 - missed)
    inside = kind.groups / spanned  # groups of experts in an entity; below 1: entities in a group
    whole = (inside % 1 == 0) | (spanned % kind.groups == 0)
    most = kind.top_groups * np.maximum(1.0, spanned / kind.groups)
    return np.asarray(np.where(whole, np.minimum(found, most), found))


@lru_cache(maxsize=65_536)
def need_of(entities: float, kind: Dispatch) -> float:
    """The probability that a token needs one of so many entities."""
    return float(reached(entities, kind)) / entities


def held_bytes(kind: Dispatch, ranks: int, payload_bytes: int) -> int:
    """What the slowest of so many ranks holds: its tokens, and the copies for its experts."""
    return math.ceil(payload_bytes * (1 + kind.imbalance * float(reached(ranks, kind))))


def _rates(topology: Topology, link: Link) -> tuple[float, float]:
    """Bytes per second of a port (a link), and at most of a device over all links of a level."""
    name = RequestKind.ALL_TO_ALL.value
    part = link.efficiency_of(name) if topology.library else 1.0
    return link.nominal_bytes_per_s * part, part * (link.device_bandwidth_bytes_per_s or math.inf)


# The same on the groups of a footprint, whose members may lie unevenly.


def entered_loads(
    topology: Topology, level: int, kind: Dispatch, counts: Sequence[int], members: int
) -> FloatArray:
    """Seconds per byte of a rank's tokens on a switch's uplink at a level at least, for each count
    of a group's members under it: what they need of the tokens outside enters it."""
    link = topology.levels[level].link
    entered = [(members - q) * need_of(members / q, kind) for q in counts]
    return np.array(entered) * kind.imbalance / (_rates(topology, link)[0] * link.ports)


def dispatch_model(topology: Topology, footprint: Footprint, kind: Dispatch) -> StepCostModel:
    """The one way in which a dispatch runs.

    Where groups have unlike parts in the entities (on rank lists), loads are bounded from above.
    """
    by_level = [0.0] * len(topology.levels)
    worst: tuple[float, int | None, float] = (0.0, None, 0.0)
    for use in footprint.uses:
        rate, draw = _rates(topology, topology.levels[use.level].link)
        load, drawn = _loads(topology, footprint, use, kind)
        seconds = max(load / rate, drawn / draw)
        by_level[use.level] = seconds
        worst = max(worst, (seconds, use.level, load), key=lambda found: found[0])
    start_s = START_S * topology.call_factor
    return StepCostModel((Way(FLEX, "", 0, 0.0, *worst, tuple(by_level), start_s),))


def _loads(
    topology: Topology, footprint: Footprint, use: LevelUse, kind: Dispatch
) -> tuple[float, float]:
    """On the worst link of a level, and what a device draws there, per byte of its tokens."""
    members, inside = footprint.members, use.least_inside
    spanned = max(profile[use.level] for profile in footprint.profiles)

    def crossing(q: int) -> float:
        """Into the entity that has q of the members, or out of it, the rest lying evenly."""
        if q >= members:
            return 0.0
        entered = (members - q) * need_of(members / q, kind)
        others = (members - q) / (spanned - 1)
        return max(entered, q * (spanned - 1) * need_of(members / others, kind))

    if topology.levels[use.level].link.kind is LinkKind.SWITCH:
        load, drawn = use.port_load(crossing), crossing(inside) / inside
    else:
        parents = max(profile[use.level - 1] if use.level else 1 for profile in footprint.profiles)
        load = use.pairs * parents * need_of(members / inside, kind) / inside
        closed = use.closed_inside
        drawn = crossing(closed) / closed if closed else 0.0
    return kind.imbalance * load, kind.imbalance * drawn
