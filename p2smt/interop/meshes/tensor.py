"""The launched rank at each coordinate of a mesh, and which launch makes it increase.

torch's ``new_group`` sorts the ranks of a group, whatever order it is given, so the member at
coordinate i of an axis must have the i-th least rank of its line.  Where it has not, a
``DeviceMesh`` computes with its own coordinates and communicates by torch's, and results are wrong
without an error.  That a tensor increases along every axis is what rules this out.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np

from p2smt.cluster.nodes.hostlist import format_hostlist
from p2smt.errors import InputError
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.numbering import launched_ranks
from p2smt.parallelism.placement import IntArray

_SHOWN = 1000
"""Characters of a list of hosts that a message holds whole."""


def increasing_ranks(plan: PlacedPlan) -> IntArray:
    """The launched ranks (shape = axis sizes), which increase along every axis.

    Raises:
        InputError: they do not; names the order of hosts that makes them so, if there is one.
    """
    tensor = launched_ranks(plan)
    for axis in range(tensor.ndim):
        falls = np.argwhere(np.diff(tensor, axis=axis) < 0)
        if len(falls):
            raise _refusal(plan, tensor, axis, tuple(int(i) for i in falls[0]))
    return tensor


def _refusal(plan: PlacedPlan, tensor: IntArray, axis: int, at: tuple[int, ...]) -> InputError:
    after = (*at[:axis], at[axis] + 1, *at[axis + 1 :])
    name = plan.problem.axes[axis].name
    given = f"{plan.source}: launched rank {tensor[after]} comes after {tensor[at]} along {name}"
    rule = "torch sorts the ranks of a group, so DTensor would be wrong without an error"
    order = rising_hosts(plan)
    if order is None:
        remedy = "no order of hosts in blocks mends it: launch the ranks as the plan has them"
        return InputError(given, rule, f"{remedy} (--to slurm or rankfile)")
    same = "--by-host does so: " if order == _by_first_rank(plan) else ""
    return InputError(given, rule, f"{same}start the hosts in the order {_listed(order)}")


def _listed(hosts: Sequence[str]) -> str:
    text = format_hostlist(hosts)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}.."


def rising_hosts(plan: PlacedPlan) -> tuple[str, ...] | None:
    """An order of hosts in which blocks of ranks increase along every axis; None: there is none.

    It is that of the hosts' first ranks in the plan where that will do, and near to it elsewhere.
    """
    number = {host: i for i, host in enumerate(_by_first_rank(plan))}
    by_device = {place.device: place for place in plan.places}
    places = [by_device[device] for device in plan.where.rank_tensor().ravel().tolist()]
    sizes = plan.problem.axis_sizes
    at = np.array([number[place.host] for place in places], dtype=np.int64).reshape(sizes)
    inside = np.array([place.local_rank for place in places], dtype=np.int64).reshape(sizes)
    before: set[tuple[int, int]] = set()
    for axis in range(len(sizes)):
        one, other = (np.delete(at, end, axis=axis).ravel() for end in (-1, 0))
        same = one == other
        if (np.diff(inside, axis=axis).ravel()[same] < 0).any():
            return None
        pairs = np.unique(np.stack([one[~same], other[~same]], axis=1), axis=0)
        before |= set(map(tuple, pairs.tolist()))
    order = _sorted(len(number), before)
    hosts = list(number)
    return None if order is None else tuple(hosts[i] for i in order)


def _by_first_rank(plan: PlacedPlan) -> tuple[str, ...]:
    """The hosts by their first rank in the plan, however ranks are launched."""
    host = {place.device: place.host for place in plan.places}
    ranks = plan.where.rank_tensor().ravel().tolist()
    return tuple(dict.fromkeys(host[device] for device in ranks))


def _sorted(count: int, before: set[tuple[int, int]]) -> list[int] | None:
    """0 .. count-1 with each pair in its order, least numbers first; None: a cycle."""
    after: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for one, other in before:
        after[one].append(other)
        waits[other] += 1
    ready = [number for number in range(count) if not waits[number]]
    found: list[int] = []
    while ready:
        found.append(heapq.heappop(ready))
        for other in after[found[-1]]:
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, other)
    return found if len(found) == count else None


def axis_order(plan: PlacedPlan) -> tuple[int, ...] | None:
    """The axes (indices, outermost first) over which launched ranks are row-major; None: over none.

    Axes of size 1, which may stand anywhere, come where they are in the plan.
    """
    tensor = launched_ranks(plan)
    strides = [
        int(np.take(tensor, 1, axis=i).flat[0] - tensor.flat[0]) if size > 1 else 0
        for i, size in enumerate(tensor.shape)
    ]
    several = [i for i, size in enumerate(tensor.shape) if size > 1]
    order = sorted(several, key=lambda i: -strides[i])
    if order == several:
        order = list(range(tensor.ndim))
    else:
        order += [i for i in range(tensor.ndim) if i not in several]
    sizes = [tensor.shape[i] for i in order]
    wanted = np.arange(tensor.size, dtype=np.int64).reshape(sizes)
    return tuple(order) if (tensor.transpose(order) == wanted).all() else None
