"""One search on named hosts, at the bandwidths that the topology has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p2smt.cluster.nodes.allocation import allocated
from p2smt.errors import InputError
from p2smt.parallelism.rank_list import RankList
from p2smt.parallelism.request import Problem
from p2smt.plans.allocation import Allocation
from p2smt.plans.rank_answer import rank_alternative
from p2smt.plans.solution import SAME, Solution
from p2smt.result import SearchLimits, SolveStats, Status, StopWatch
from p2smt.search.allocation.grids import grids, nodes_needed
from p2smt.search.allocation.hunt import Hunt
from p2smt.search.allocation.orders import (
    LISTED,
    by_name,
    host_order,
    host_slots,
    order_cost,
    sorted_hosts,
)
from p2smt.search.allocation.programs import sorted_note, with_programs
from p2smt.search.joint import ProgressCallback
from p2smt.search.solve import as_named
from p2smt.solvers.solver import Solver, solver_of

PROGRAMS_S = 30.0
"""Seconds for programs where there is no limit."""
LEAST_S = 1.0
"""Seconds for programs where the search has used up its time."""


def fastest_on_hosts(
    problem: Problem,
    hosts: Sequence[str] | None,
    limits: SearchLimits,
    solver: Solver | str = Solver.CPSAT,
    *,
    programs: bool = False,
    progress: ProgressCallback | None = None,
) -> Solution:
    """As :func:`~p2smt.search.allocation.solve.solve_on_hosts`, whoever stated the bandwidths.

    Raises:
        InputError: as there.
        EncodingBug: as there.
    """
    chosen = solver_of(solver)
    watch = StopWatch.start(limits)
    problem, listed = _on_hosts(as_named(problem), hosts)
    named = (sorted_hosts(problem, listed), listed, by_name(listed))
    orders = [host_slots(problem, names) for names in named]
    hunt = Hunt(problem, orders, limits, chosen, progress)
    hunt.run()
    stats = SolveStats(chosen.value, watch.elapsed_s(), hunt.calls)
    found = replace(_solution(problem, listed, hunt, stats), limits=limits)
    return _with_programs(found, watch, chosen) if programs else found


def _on_hosts(problem: Problem, hosts: Sequence[str] | None) -> tuple[Problem, tuple[str, ...]]:
    """The problem on the hosts that are listed."""
    known = problem.topology.hosts
    listed = tuple(hosts) if hosts is not None else known.names if known else ()
    topology = allocated(problem.topology, listed)
    problem = replace(problem, topology=topology)
    needed = nodes_needed(problem)
    if needed > len(listed):
        rule = f"the ranks fill {needed} nodes"
        raise InputError(f"{len(listed)} hosts", rule, "name more hosts or change an axis")
    if not grids(problem):
        rule = "no matrix inside the nodes obeys the rules"
        raise InputError(f"axes {list(problem.axis_sizes)}", rule, "leave out a rule")
    return problem, listed


def _solution(problem: Problem, listed: tuple[str, ...], hunt: Hunt, stats: SolveStats) -> Solution:
    """The answer on the topology of the hosts that have ranks."""
    best = hunt.best
    if best is None:  # interrupted before the first order was costed
        raise KeyboardInterrupt
    names = [problem.topology.host_of(slot * _each(problem)) for slot in best.slots]
    idle = tuple(name for name in listed if name not in set(names))
    used = replace(problem, topology=allocated(problem.topology, names))
    ranks = best.grid.ranks(np.array(host_slots(used, names)))
    answer = rank_alternative(used, RankList(tuple(ranks.ravel().tolist()), used.axis_sizes))
    status = Status.OPTIMAL if hunt.proved else Status.FEASIBLE
    return Solution(
        used,
        status,
        (answer,),
        min(hunt.bound_s, answer.objective_s),
        0.0,
        Status.COMPLETE if hunt.proved else Status.TRUNCATED,
        stats,
        default=order_cost(problem, host_order(problem, listed), LISTED),
        interrupted=hunt.interrupted,
        allocation=Allocation(problem.topology, listed, idle, best.grid.inside),
    )


def _with_programs(found: Solution, watch: StopWatch, solver: Solver) -> Solution:
    """The answer with programs that are faster than one collective on the same ranks."""
    best, allocation = found.best, found.allocation
    if best is None or best.rank_list is None or allocation is None or found.interrupted:
        return found
    limit_s = PROGRAMS_S if watch.remaining_s() is None else max(LEAST_S, watch.remaining_s() or 0)
    limits = replace(found.limits, time_limit_s=limit_s)
    spent = StopWatch.start(limits)
    try:
        answer = with_programs(found.problem, best.rank_list, limits, solver)
        told = sorted_note(found, answer.objective_s, spent.left(), solver)
    except KeyboardInterrupt:
        return replace(found, interrupted=True)
    found = replace(found, notes=(*found.notes, *told))
    if answer.objective_s >= best.objective_s * (1 - SAME):
        return found
    return replace(
        found,
        alternatives=(replace(answer, objective_s=best.objective_s),),
        allocation=replace(allocation, with_programs_s=answer.objective_s),
    )


def _each(problem: Problem) -> int:
    return problem.topology.devices_under(problem.topology.node_level)
