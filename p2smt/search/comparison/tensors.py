"""Rank tensors (shape: axis sizes, entries: device ids) of orders that people write.

Ranks are *launched* host by host in the order of the hosts, and on each in the order of its
devices: launched rank v is device v % g of host v // g.  On a cluster whose nodes have no names it
is device v.  A mesh says for each coordinate which launched rank has it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from p2smt.errors import InputError
from p2smt.files.suggest import did_you_mean
from p2smt.parallelism.placement import IntArray, Placement
from p2smt.parallelism.request import Problem
from p2smt.search.allocation.grids import inner_sizes
from p2smt.search.allocation.orders import host_order, host_slots

MEGATRON = ("tp", "cp", "ep", "dp", "pp")
"""The dimensions of Megatron-LM; one that is no axis has size 1."""
MEGATRON_ORDER = "-".join(MEGATRON)
_ORDER = re.compile(r"[A-Za-z][A-Za-z0-9_]*(-[A-Za-z][A-Za-z0-9_]*)*")


def launch_devices(problem: Problem, hosts: Sequence[str] | None) -> IntArray:
    """The device of each launched rank; ``hosts``: in the order in which they are listed."""
    if hosts is not None:
        return host_order(problem, hosts).ravel()
    return np.arange(problem.topology.devices, dtype=np.int64)


def of_mesh(problem: Problem, mesh: IntArray, start: IntArray, source: str) -> IntArray:
    """Of a tensor of launched ranks, its dimensions being the axes; or of a flat list of them.

    Raises:
        InputError: another shape, or not each launched rank once.
    """
    sizes = problem.axis_sizes
    if mesh.ndim > 1 and mesh.shape != sizes:
        rule = f"the axes have sizes {list(sizes)}"
        raise InputError(f"{source} of shape {list(mesh.shape)}", rule, "order its dimensions so")
    if mesh.size != start.size or not np.array_equal(np.sort(mesh.ravel()), np.arange(start.size)):
        rule = f"must hold each launched rank 0..{start.size - 1} once"
        given = f"{source} with {mesh.size} entries"
        raise InputError(given, rule, _without(mesh, start.size))
    return np.asarray(start[mesh.reshape(sizes)])


def _without(mesh: IntArray, ranks: int) -> str:
    """What to do about entries that are not each rank once."""
    missing = np.setdiff1d(np.arange(ranks), mesh)
    if len(missing):
        return f"{missing[0]} is missing: ranks count from 0, host by host as they are launched"
    return "leave out what it holds beside them"


def of_matrix(problem: Problem, rows: Sequence[Sequence[int]], source: str) -> IntArray:
    """Of a parallelism matrix; it needs a regular cluster.

    Raises:
        InputError: the cluster is not regular, or sizes do not fit.
    """
    if problem.topology.uneven:
        rule = "a matrix needs a cluster whose switches hold equal numbers of hosts"
        raise InputError(source, rule, "give a rank list or a list of hosts")
    placement = Placement(tuple(map(tuple, rows)))
    placement.check(problem.topology.sizes, problem.axis_sizes)
    return placement.rank_tensor()


def is_axis_order(problem: Problem, text: str) -> bool:
    """Whether a text reads like an order of axes: words with dashes, one of them an axis."""
    names = {*problem.axis_names, *MEGATRON}
    words = text.split("-")
    return bool(_ORDER.fullmatch(text)) and not names.isdisjoint(words) and len(words) > 1


def of_axis_order(problem: Problem, text: str, start: IntArray) -> IntArray:
    """Of an order such as ``tp-cp-ep-dp-pp``: the first axis varies fastest over launched ranks.

    Raises:
        InputError: an axis is missing or named twice, or a word is none.
    """
    words = text.split("-")
    names, given = problem.axis_names, f"order {text[:80]!r}"
    if unknown := [word for word in words if word not in (*names, *MEGATRON)]:
        rule = f"{unknown[0][:40]!r} is no axis"
        known = f"the axes are {', '.join(names)}"
        remedy = did_you_mean(unknown[0], names)
        raise InputError(given, rule, f"{known}; {remedy}" if remedy else known)
    if len(set(words)) != len(words):
        raise InputError(given, "names an axis twice", "name each once")
    if missing := [name for name in names if name not in words]:
        raise InputError(given, f"lacks the axis {missing[0]}", "name each axis once")
    slowest_first = [names.index(word) for word in reversed(words) if word in names]
    shape = [problem.axis_sizes[i] for i in slowest_first]
    return start.reshape(shape).transpose(np.argsort(slowest_first))


def of_hosts(problem: Problem, names: Sequence[str], source: str) -> IntArray:
    """Of hosts in order, each with a node's ranks; or of the host of each rank.

    Raises:
        InputError: hosts that the topology lacks, too few, or with other numbers of ranks.
    """
    if problem.topology.hosts is None:
        rule = "its hosts cannot be found: the topology names none"
        raise InputError(source, rule, "give a rank list, or a topology that names hosts")
    count = Counter(names)
    if max(count.values()) == 1:
        return host_order(problem, names)
    ranks, each = math.prod(problem.axis_sizes), math.prod(inner_sizes(problem.topology))
    if len(names) != ranks or set(count.values()) != {each}:
        rule = f"must name each host once, or for each of {ranks} ranks, {each} times each host"
        remedy = "list the hosts, or a host for each rank as SLURM_HOSTFILE has"
        raise InputError(f"{source} with {len(names)} entries", rule, remedy)
    seen: Counter[str] = Counter()
    local = []
    for name in names:
        local.append(seen[name])
        seen[name] += 1
    devices = host_slots(problem, names) * each + np.array(local)
    return np.asarray(devices.reshape(problem.axis_sizes), dtype=np.int64)


def of_places(problem: Problem, places: Sequence[tuple[str, int]], source: str) -> IntArray:
    """Of the host and the device there of each rank.

    Raises:
        InputError: hosts that the topology lacks, or not each device of a host once.
    """
    if problem.topology.hosts is None:
        rule = "its hosts cannot be found: the topology names none"
        raise InputError(source, rule, "give a rank list, or a topology that names hosts")
    each = math.prod(inner_sizes(problem.topology))
    local = np.array([device for _, device in places], dtype=np.int64)
    if local.max() >= each:
        rule = f"has local rank {local.max()}, and a node {each} devices"
        raise InputError(source, rule, "count the devices of each host from 0")
    devices = host_slots(problem, [host for host, _ in places]) * each + local
    if len(devices) != math.prod(problem.axis_sizes) or len(np.unique(devices)) != len(devices):
        rule = f"must have {math.prod(problem.axis_sizes)} ranks, each on a device of its own"
        remedy = "it reads like what p2smt export --to csv writes"
        raise InputError(f"{source} with {len(devices)} ranks", rule, remedy)
    return devices.reshape(problem.axis_sizes)
