"""A request of a plan as steps over groups of launched ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2smt.collectives.names import DIRECT, Collective, RequestKind
from p2smt.errors import InputError
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.parallelism.placement import IntArray
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.file_model import RequestModel
from p2smt.plans.rank_answer import rank_step_groups
from p2smt.programs.program import parse_instruction

StepOperation = Collective | RequestKind
"""What a step does: a collective, or all that the request asks for."""


@dataclass(frozen=True, slots=True)
class LaunchedStep:
    """A step: its text, what it does, and its groups of launched ranks.

    Members are in the order of the communicator that the plan counts on.  A reduce ends, and a
    broadcast begins, at the first rank of a group.
    """

    text: str
    operation: StepOperation
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class LaunchedRequest:
    """A request: its groups of launched ranks (group, member), and its steps.

    A send's groups are in the order in which they send; ``axes`` are indices.
    """

    model: RequestModel
    name: str
    axes: tuple[int, ...]
    groups: IntArray
    steps: tuple[LaunchedStep, ...]

    @property
    def size(self) -> int:
        """Ranks of a group."""
        return int(self.groups.shape[1])


def launched_requests(plan: PlacedPlan) -> tuple[LaunchedRequest, ...]:
    """The requests of a plan over its launched ranks.

    Raises:
        InputError: groups that are not those of the plan's devices, or instructions that do not
            parse.
    """
    names: set[str] = set()
    orders = _orders(plan)
    return tuple(_request(plan, number, orders, names) for number in range(len(plan.plan.requests)))


def _orders(plan: PlacedPlan) -> tuple[IntArray, IntArray]:
    """By device: what members of groups are ordered by, and the launched rank; -1: there is none.

    Ranks of a rank list on named hosts are ordered as in the plan, others by device
    (:func:`p2smt.plans.rank_answer.rank_step_groups`).
    """
    count = plan.problem.topology.devices
    launched = np.full(count, -1, dtype=np.int64)
    launched[[place.device for place in plan.places]] = [place.rank for place in plan.places]
    order = np.arange(count, dtype=np.int64)
    if isinstance(plan.where, RankList) and plan.problem.topology.hosts is not None:
        order[plan.where.rank_tensor().ravel()] = np.arange(len(plan.places))
    return order, launched


def _request(
    plan: PlacedPlan, number: int, orders: tuple[IntArray, IntArray], names: set[str]
) -> LaunchedRequest:
    model = plan.plan.requests[number]
    source = f"{plan.source}: request {number + 1}"
    request = plan.problem.requests[number]
    axes, rank_of = plan.problem.axis_indices(request), orders[1]
    if isinstance(plan.where, RankList):
        groups = rank_step_groups(plan.problem, request, plan.where)
    else:
        groups = plan.where.groups(axes)
    if groups.shape[1] > 1 and not model.steps:
        raise InputError(source, "has no steps", "verify the plan")
    steps = tuple(
        LaunchedStep(
            step.instruction if model.program else model.kind.value,
            _operation(model, step.instruction),
            _ranks(f"{source}, step {i}", model.kind, step.groups, orders),
        )
        for i, step in enumerate(model.steps, start=1)
    )
    return LaunchedRequest(model, _name(model, names), axes, rank_of[groups], steps)


def _name(model: RequestModel, names: set[str]) -> str:
    """A name for a function, another for each request."""
    plain = f"{model.kind.value}_{'_'.join(model.axes)}".replace("-", "_")
    name, count = plain, 1
    while name in names:
        count += 1
        name = f"{plain}_{count}"
    names.add(name)
    return name


def _operation(model: RequestModel, instruction: str) -> StepOperation:
    if model.kind not in DIRECT:
        return model.kind
    if model.program is None:
        return DIRECT[model.kind]
    return parse_instruction(instruction).collective


def _ranks(
    given: str, kind: RequestKind, groups: list[list[int]], orders: tuple[IntArray, IntArray]
) -> tuple[tuple[int, ...], ...]:
    """Groups of devices as launched ranks in their order, those of a send as they send.

    Each device is in one group at most, and has a rank.
    """
    order, rank_of = orders
    every = [device for group in groups for device in group]
    if not groups or any(len(group) < 2 for group in groups):
        raise InputError(given, "has a group of fewer than two devices", "verify the plan")
    if len(set(every)) != len(every):
        raise InputError(given, "has a device in two groups", "verify the plan")
    if max(every) >= len(rank_of) or (rank_of[every] < 0).any():
        raise InputError(given, "has a device that the plan has no rank on", "verify the plan")
    found = []
    for group in groups:
        members = np.array(group, dtype=np.int64)
        if kind is not RequestKind.SEND:
            members = members[np.argsort(order[members])]
        found.append(tuple(rank_of[members].tolist()))
    return tuple(found)
