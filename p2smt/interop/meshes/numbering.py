"""Which number a launcher gives each rank of a plan.

A launcher that takes any rank to any host (``srun --distribution=arbitrary``, a rankfile) can
number them as the plan does.  One that starts a block of ranks on each host (torchrun,
``mpirun -N``) cannot in general: there launched rank i * g + d is device d of the i-th host, g
being the ranks of a host (:func:`p2smt.interop.launchers.places.by_host` takes hosts by their
first rank).  And a framework that lays its own order of axes over the ranks wants them numbered in
that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2smt.cluster.nodes.host_file import read_hosts
from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.parallelism.placement import IntArray


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
