"""The problem that a plan file answers, and where it puts the ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from p2smt.cluster.file_model import build_topology
from p2smt.cluster.nodes.allocation import allocated
from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.parallelism.rank_list import RankList, RankMap
from p2smt.parallelism.request import Problem, Request
from p2smt.plans.file_model import AnyPlan, PlanModel
from p2smt.plans.restrictions import restricted


def plan_problem(plan: AnyPlan, source: str) -> tuple[Problem, RankMap]:
    """The problem that was solved, and the plan's matrix or rank list, sizes checked.

    A plan of version 1 has its restrictions in words only: its problem has none but the usual
    length.

    Raises:
        InputError: names ``source``, and what does not fit.
    """
    topology = build_topology(plan.topology, source)
    with located(source):
        axes = tuple(ParallelismAxis(axis.name, axis.size) for axis in plan.axes)
        requests = tuple(Request(r.kind, tuple(r.axes), r.bytes, r.times) for r in plan.requests)
    names = [axis.name for axis in axes]
    more: dict[str, Any] = {}
    if isinstance(plan, PlanModel):
        more = restricted(plan.restrictions, names, topology.names, source)
    with located(source):
        problem = Problem(topology, axes, requests, plan.objective, **more)
        return problem, _mapped(plan, problem)


def allocation_problem(plan: AnyPlan, problem: Problem, source: str) -> Problem:
    """The problem on all the hosts that the job got, some of which the plan leaves idle.

    Raises:
        InputError: the plan is not on named hosts, or one of them is not among those.
    """
    if not isinstance(plan, PlanModel) or plan.allocation is None:
        return problem
    hosts = problem.topology.hosts
    if hosts is None or plan.matrix is not None:
        rule = "is for rank lists on named hosts"
        raise InputError(f"{source}: allocation", rule, "drop it")
    found = build_topology(plan.allocation, f"{source}: allocation")
    with located(f"{source}: allocation"):
        allocated(found, hosts.names)
    return replace(problem, topology=found)


def _mapped(plan: AnyPlan, problem: Problem) -> RankMap:
    if plan.matrix is None:
        if math.prod(problem.axis_sizes) != problem.topology.installed:
            rule = f"the topology has {problem.topology.installed}"
            raise InputError(f"axes of {math.prod(problem.axis_sizes)} devices", rule)
        ranks = RankList(tuple(plan.ranks), problem.axis_sizes)
        ranks.check(problem.topology)
        return ranks
    placement = Placement(tuple(tuple(row) for row in plan.matrix))
    placement.check(problem.topology.sizes, problem.axis_sizes)
    return placement


def check_send(problem: Problem, request: Request, where: RankMap, source: str) -> None:
    """What executes plans sends to the next device of a group, whose devices ascend.

    Raises:
        InputError: a rank list has a send go otherwise.
    """
    if request.kind is not RequestKind.SEND or not isinstance(where, RankList):
        return
    if (np.diff(where.lines(problem.axis_indices(request)), axis=1) < 0).any():
        rule = "its ranks do not ascend in the order of devices, which a send here follows"
        raise InputError(f"{source}: {request}", rule, "leave the request out")


@contextmanager
def located(source: str) -> Iterator[None]:
    """Puts the file's name before what is wrong, unless it stands there."""
    try:
        yield
    except InputError as error:
        if error.given.startswith(source):
            raise
        raise type(error)(f"{source}: {error.given}", error.rule, error.remedy) from None
