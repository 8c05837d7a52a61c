"""The launched rank at each coordinate of a mesh, and which launch makes it increase.

torch's ``new_group`` sorts the ranks of a group, whatever order it is given, so the member at
coordinate i of an axis must have the i-th least rank of its line.  Where it has not, a
``DeviceMesh`` computes with its own coordinates and communicates by torch's, and results are wrong
without an error.  That a tensor increases along every axis is what rules this out.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2smt.cluster.hostlist import format_hostlist, read_hosts
from p2smt.errors import InputError, did_you_mean
from p2smt.interop.places import PlacedPlan
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


# Which processes of JAX a mesh of launched ranks is for.
# ``jax.devices()`` lists devices by process.  With a process for each device the t-th is launched
# rank t, wherever that runs; with one for each host, JAX's default, the t-th is device t % g of
# process t // g, g being the devices of a host.  Only ranks that are numbered so are in both the
# same; others get a mesh whose neighbours lie elsewhere than planned: right results, other times.


def process_notes(plan: PlacedPlan) -> tuple[str, ...]:
    """What to start where the ranks of a host are not one block in the order of its devices."""
    each = plan.per_host
    for place in plan.places:
        first = plan.places[place.rank - place.rank % each]
        if place.host != first.host or place.local_rank != place.rank % each:
            return (_note(plan, first.host),)
    return ()


def _note(plan: PlacedPlan, host: str) -> str:
    ranks = sorted((one.local_rank, one.rank) for one in plan.places if one.host == host)
    shown = ", ".join(str(rank) for _, rank in ranks[:4]) + (", .." if len(ranks) > 4 else "")
    return (
        f"devices 0, 1, .. of {host} are ranks {shown}, not one block in this order: start a "
        "process for each device, process_id being its rank (--to slurm or rankfile), or with a "
        "process for each host export with --by-host"
    )


# Which number a launcher gives each rank of a plan.
# A launcher that takes any rank to any host (``srun --distribution=arbitrary``, a rankfile) can
# number them as the plan does.  One that starts a block of ranks on each host (torchrun, ``mpirun
# -N``) cannot in general: there launched rank i * g + d is device d of the i-th host, g being the
# ranks of a host (:func:`p2smt.interop.places.by_host` takes hosts by their first rank).  And a
# framework that lays its own order of axes over the ranks wants them numbered in that.


def numbered(plan: PlacedPlan, text: str) -> PlacedPlan:
    """The plan with its ranks numbered as they are launched.

    text: axes by name, outermost first, such as ``pp,dp,tp``: ranks are row-major over them; else a
        file that names the hosts in the order in which they are started, a block on each.

    Raises:
        InputError: axes or hosts that are not those of the plan, or a file that cannot be read.
    """
    names = [axis.name for axis in plan.problem.axes]
    given = [name.strip() for name in text.split(",")]
    if set(given) & set(names):
        return by_axes(plan, given)
    return in_blocks(plan, read_hosts(text))


def by_axes(plan: PlacedPlan, order: Sequence[str]) -> PlacedPlan:
    """Ranks numbered row-major over the axes in another order, the first most significant."""
    names = [axis.name for axis in plan.problem.axes]
    if sorted(order) != sorted(names):
        rule = f"the axes of the plan are {','.join(names)}"
        raise InputError(f"--launched {','.join(order)[:80]}", rule, "name each of them once")
    ranks = np.arange(len(plan.places), dtype=np.int64).reshape(plan.problem.axis_sizes)
    return _reordered(plan, ranks.transpose([names.index(name) for name in order]).ravel())


def in_blocks(plan: PlacedPlan, hosts: Sequence[str]) -> PlacedPlan:
    """Ranks numbered host by host in this order, on each host by device."""
    check_order(plan, hosts)
    block = {host: number for number, host in enumerate(hosts)}
    at = np.array([block[place.host] for place in plan.places], dtype=np.int64)
    devices = np.array([place.local_rank for place in plan.places], dtype=np.int64)
    return _reordered(plan, np.lexsort((devices, at)))


def check_order(plan: PlacedPlan, hosts: Sequence[str]) -> None:
    """Whether these are the hosts of the plan, each once.

    Raises:
        InputError: they are not.
    """
    known = set(plan.hosts)
    for host, count in Counter(hosts).items():
        if host not in known:
            remedy = did_you_mean(host, plan.hosts) or f"it has {', '.join(plan.hosts[:3])}, .."
            raise InputError(f"host {host[:80]!r}", f"has no rank in {plan.source}", remedy)
        if count > 1:
            raise InputError(f"host {host[:80]!r}", "is named twice", "name each host once")
    given = set(hosts)
    if missing := [host for host in plan.hosts if host not in given]:
        rule = f"has ranks in {plan.source} and is not started"
        raise InputError(f"host {missing[0][:80]!r}", rule, "name every host of the plan")


def as_planned(plan: PlacedPlan) -> PlacedPlan:
    """The plan with its ranks numbered as it has them, however they are launched."""
    return _reordered(plan, launched_ranks(plan).ravel())


def launched_ranks(plan: PlacedPlan) -> IntArray:
    """The launched rank of each rank of the plan: shape = axis sizes."""
    ranks = plan.where.rank_tensor()
    devices = np.array([place.device for place in plan.places], dtype=np.int64)
    found = np.full(plan.problem.topology.devices, -1, dtype=np.int64)
    found[devices] = np.arange(len(devices))
    return np.asarray(found[ranks])


def _reordered(plan: PlacedPlan, order: IntArray) -> PlacedPlan:
    """The plan whose launched rank t is rank ``order[t]`` of this one."""
    places = [plan.places[rank] for rank in order.tolist()]
    found = tuple(replace(place, rank=rank) for rank, place in enumerate(places))
    return replace(plan, places=found)
