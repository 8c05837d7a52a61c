"""Rank groups as frameworks number them, written from what their sources mean.

Megatron-LM, ``parallel_state.py`` (d98e8a64): ``RankGenerator`` gives each axis of an order such as
tp-cp-ep-dp-pp, fastest first, a stride; attention leaves out ep, experts cp.  torchtitan,
``parallel_dims.py`` (b5bcd76): meshes are the ranks in order, row-major over their axes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

PP_LAST = "tp-cp-ep-dp-pp"
DP_LAST = "tp-cp-ep-pp-dp"
"""With ``--use-tp-pp-dp-mapping``."""

Groups = list[list[int]]


def megatron_groups(order: str, degrees: Mapping[str, int], along: str) -> Groups:
    """``get_ranks``: ranks that differ along these axes only, such as ``dp-cp``; sorted."""
    axes = [(name, degrees.get(name, 1)) for name in order.split("-")]
    found: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for rank in range(math.prod(size for _, size in axes)):
        left, others = rank, []
        for name, size in axes:
            left, digit = divmod(left, size)
            if name not in along.split("-"):
                others.append(digit)
        found[tuple(others)].append(rank)
    return sorted(found.values())


def megatron_refuses(order: str, attention: Mapping[str, int], experts: Mapping[str, int]) -> bool:
    """Whether one of the two assertions on the pipelines of attention and experts fails."""
    same_dp = attention.get("dp", 1) == experts.get("dp", 1)
    if not order.endswith("pp") and attention.get("pp", 1) > 1 and not same_dp:
        return True
    return megatron_groups(order, attention, "pp") != megatron_groups(order, experts, "pp")


def mesh_groups(mesh: Sequence[tuple[str, int]], along: Sequence[str]) -> Groups:
    """Groups along axes of a mesh, given with its sizes, the slowest first; sorted."""
    order = "-".join(name for name, _ in reversed(mesh))
    return megatron_groups(order, dict(mesh), "-".join(along))
