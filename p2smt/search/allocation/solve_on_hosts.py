"""The public function `solve_on_hosts`, and what it does where nobody stated a bandwidth.

Uplinks of unknown bandwidth are taken as non-blocking, so that every order of the hosts takes the
same time in bandwidth.  Then the matrix inside the nodes is the one of least time, and of its
orders the one that loads these uplinks least: that which still is best when they do block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p2smt.cluster.allocation import allocated, check_stated
from p2smt.cluster.topology import Topology
from p2smt.collectives.demand import plain_kind
from p2smt.parallelism.placement import FixedEntry
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.solution import Solution, rank_alternative
from p2smt.result import SAME, SearchLimits, Status, StopWatch
from p2smt.search.allocation.host_search import fastest_on_hosts
from p2smt.search.allocation.nearby import check_listed, with_near, with_sensitivity
from p2smt.search.joint import ProgressCallback
from p2smt.search.solve import as_named
from p2smt.solvers.ask import Solver

_SLOW = 2.0**-10
"""Part of a non-blocking uplink's bandwidth with which uplinks decide every time."""


def solve_on_hosts(
    problem: Problem,
    hosts: Sequence[str] | None = None,
    *,
    limits: SearchLimits | None = None,
    solver: Solver | str = Solver.CPSAT,
    programs: bool = True,
    sensitivity: bool = False,
    within: float | None = None,
    progress: ProgressCallback | None = None,
) -> Solution:
    """The matrix inside the nodes and the order of hosts outside of least time.

    Args:
        problem: axes and requests on a topology that names its hosts.
        hosts: those that the job got, in the order in which they are listed; None: all.  There may
            be more than the ranks fill: which of them stay idle is part of the answer.
        limits: wall-clock limit, seed and workers; a proved optimum depends on none of them.
            Without a limit a search ends after a minute (two of them where bandwidths are
            assumed); programs get a second at least.
        solver: ``cpsat`` or ``z3``.
        programs: also look for programs that are faster than one collective on the same ranks;
            none are sought where a bandwidth is assumed.
        sensitivity: solve again with each level's bandwidth 20 % off, and with the cost of calls
            50 % off if the topology names a library; each takes as long as the limits say.
        within: also list every order that takes at most so much longer than the best (0.05: five
            per cent): ``near`` of the allocation.
        progress: called with (best objective so far or None, proved bound), in seconds.

    The objective is that of one collective per request, device by device; bound and status speak
    of every matrix inside and every order.  Where bandwidths are assumed, ``optimal`` says of both
    that they are proved: the least time on uplinks that do not block, and with that matrix inside
    the nodes the least load of uplinks.

    Raises:
        InputError: the topology names no hosts or lacks one, there are too few of them, the
            ranks do not fill whole nodes, or a request is a dispatch; there are too many orders to
            list, or a bandwidth that times depend on is assumed.
        EncodingBug: an answer of the solver failed the independent check.
    """
    for request in problem.requests:
        plain_kind(request.kind, "is not placed on named hosts, whose order is searched")
    limits = limits or SearchLimits()
    known = problem.topology.hosts
    if sensitivity or within is not None:
        listed = known.names if hosts is None and known else tuple(hosts or ())
        given = replace(problem, topology=allocated(problem.topology, listed))
        check_stated(given.topology)
        if within is not None:
            check_listed(given, within)
    found = _solved(problem, hosts, limits, solver, programs, progress)
    if within is not None:
        found = with_near(found, within, limits)
    return with_sensitivity(found, problem, limits, solver) if sensitivity else found


def _solved(
    problem: Problem,
    hosts: Sequence[str] | None,
    limits: SearchLimits,
    solver: Solver | str,
    programs: bool,
    progress: ProgressCallback | None,
) -> Solution:
    """The answer alone."""
    known, watch = problem.topology.hosts, StopWatch.start(limits)
    stated = known is None or not known.assumed
    first = fastest_on_hosts(
        problem, hosts, limits, solver, programs=programs and stated, progress=progress
    )
    if known is None or stated or first.allocation is None or first.interrupted:
        return first
    slow = replace(problem, topology=_slowed(problem.topology, known.assumed))
    slow = replace(slow, rules=(*problem.rules, *_fixed(first, problem)))
    second = fastest_on_hosts(slow, hosts, watch.left(), solver)
    return _on_stated(problem, first, second)


def _slowed(topology: Topology, levels: Sequence[str]) -> Topology:
    for name in levels:
        topology = topology.with_bandwidth_factor(topology.names.index(name), _SLOW)
    return topology


def _fixed(found: Solution, problem: Problem) -> list[FixedEntry]:
    """Rules that fix the matrix inside the nodes."""
    inside = () if found.allocation is None else found.allocation.inside
    first = problem.topology.node_level + 1
    return [
        FixedEntry(i, first + j, entry)
        for i, row in enumerate(inside)
        for j, entry in enumerate(row)
    ]


def _on_stated(problem: Problem, first: Solution, second: Solution) -> Solution:
    """The order of the second at the costs of the first."""
    order, placed, known = second.best, second.allocation, first.allocation
    hosts = second.problem.topology.hosts
    if order is None or hosts is None or placed is None or known is None:
        return first
    named = as_named(problem)
    used = replace(named, topology=allocated(named.topology, hosts.names))
    answer = rank_alternative(used, RankList(order.ranks, used.axis_sizes))
    no_slower = answer.objective_s <= first.alternatives[0].objective_s * (1 + SAME)
    proved = no_slower and {first.status, second.status} == {Status.OPTIMAL}
    return replace(
        first,
        problem=used,
        alternatives=(answer,),
        status=Status.OPTIMAL if proved else Status.FEASIBLE,
        interrupted=second.interrupted,
        allocation=replace(placed, topology=known.topology),
    )
