"""Plans of two matrices, of attention and of experts, as two plans of one matrix each.

Requests name the matrix that their axes are rows of.  The two sides have nothing in common but the
cluster and the pipeline, so a plan is right if both are, and takes their sum.  The parts of a split
are such a plan, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from p2smt.errors import InputError
from p2smt.parallelism.folded import (
    PIPELINE,
    PP_OUTERMOST,
    WITH_COPIES,
    FoldedPlacement,
    with_copies,
)
from p2smt.parallelism.placement import Matrix, Placement
from p2smt.parallelism.rank_list import RankList
from p2smt.plans.file_model import AnyPlan, AxisModel, PlanModel, Restriction, SplitModel
from p2smt.plans.problem import located
from p2smt.plans.training.file_model import (
    ATTENTION,
    EXPERTS,
    ExpertRanksBlock,
    PlacementBlock,
    TrainingBlock,
)
from p2smt.result import Status


@dataclass(frozen=True, slots=True)
class PlanSide:
    """The requests along the axes of one matrix, as a plan of their own.

    ``name``: of the matrix; empty where the plan has one.  ``numbers``: the place of each request
    in the plan, from 0.
    """

    name: str
    plan: AnyPlan
    numbers: tuple[int, ...]


def plan_sides(plan: AnyPlan, source: str) -> tuple[PlanSide, ...]:
    """The plan by its matrices: itself if it has one, else its requests of each, attention first.

    Experts that send nothing have no side.

    Raises:
        InputError: the matrices are no consistent pair, that of attention is not the plan's, or
            the objective is not the sum; names ``source``.
    """
    block = plan.training if isinstance(plan, PlanModel) else None
    if not isinstance(plan, PlanModel) or block is None or block.placement is None:
        return (PlanSide("", plan, tuple(range(len(plan.requests)))),)
    where = f"{source}: training.placement"
    if plan.objective != "sum":
        rule = "must be sum where a plan has two matrices"
        raise InputError(f"{source}: objective {plan.objective}", rule)
    if isinstance(block.placement, ExpertRanksBlock):
        with located(where):
            attention, experts = _listed_sides(plan, block, block.placement.expert_ranks)
        return (attention, experts) if experts.numbers else (attention,)
    with located(where):
        attention_rows, expert_rows = sides_of_block(block)
    mine = several(*attention_rows)
    given = [list(row) for row in mine[1]]
    if plan.matrix != given or [(axis.name, axis.size) for axis in plan.axes] != mine[0]:
        raise InputError(f"{where}.attention", "is not the plan's matrix on its axes")
    axes, matrix = several(*expert_rows)
    ranks = Placement(matrix).rank_tensor().ravel().tolist()
    attention = _side(plan, ATTENTION, mine[0], given, plan.ranks)
    experts = _side(plan, EXPERTS, axes, [list(row) for row in matrix], ranks)
    return (attention, experts) if experts.numbers else (attention,)


def _listed_sides(
    plan: PlanModel, block: TrainingBlock, ranks: list[int]
) -> tuple[PlanSide, PlanSide]:
    """Both sides of a plan that lists the devices of ranks, on named hosts.

    Raises:
        InputError: experts are not on the devices of attention stage by stage and pipeline by
            pipeline, or the plan has a matrix.
    """
    if plan.matrix is not None:
        raise InputError("expert_ranks", "is for plans that list ranks", "give both matrices")
    names, sizes = expert_axes(block)
    RankList(tuple(ranks), sizes)
    if sorted(ranks) != sorted(plan.ranks):
        raise InputError("expert_ranks", "must hold the devices of the plan's ranks, each once")
    stages = [[*zip(*_parts(some, sizes[0]), strict=True)] for some in (plan.ranks, ranks)]
    if sorted(stages[0]) != sorted(stages[1]):
        rule = "must have the stages and pipelines of the plan's ranks"
        raise InputError("expert_ranks", rule)
    axes = [(name, size) for name, size in zip(names, sizes, strict=True) if size > 1]
    mine = [(axis.name, axis.size) for axis in plan.axes]
    return (
        _side(plan, ATTENTION, mine, None, plan.ranks),
        _side(plan, EXPERTS, axes, None, ranks),
    )


def _parts(ranks: Sequence[int], many: int) -> list[Sequence[int]]:
    each = len(ranks) // many
    return [ranks[at : at + each] for at in range(0, many * each, each)]


def expert_axes(block: TrainingBlock) -> tuple[Sequence[str], tuple[int, ...]]:
    """Names and sizes of the axes of experts.

    Raises:
        InputError: ep and etp do not divide what is of a stage.
    """
    one = block.strategy
    stage, each = one.tp * one.cp * one.dp, one.ep * one.etp * one.dp_replicate
    if stage % each:
        rule = f"must divide the {stage} devices of a stage"
        raise InputError(f"experts and copies over {each} devices", rule)
    if one.dp_replicate == 1:
        return PP_OUTERMOST.experts, (one.pp, stage // each, one.ep, one.etp)
    return WITH_COPIES.experts, (one.pp, one.dp_replicate, stage // each, one.ep, one.etp)


def attention_of(plan: AnyPlan, source: str) -> AnyPlan:
    """The plan of attention's matrix, by which ranks lie; a plan of one matrix itself.

    Raises:
        InputError: as :func:`plan_sides`.
    """
    return plan_sides(plan, source)[0].plan


def side_with(plan: AnyPlan, request: int, source: str) -> tuple[AnyPlan, int]:
    """The plan of the matrix that a request is along, and the request's place in it, from 0.

    Raises:
        InputError: as :func:`plan_sides`.
    """
    sides = plan_sides(plan, source)
    found = next(side for side in sides if request in side.numbers)
    return found.plan, found.numbers.index(request)


def folded_placement(block: PlacementBlock) -> FoldedPlacement:
    """The pair of matrices in a block.

    Raises:
        InputError: they are none, or no consistent pair.
    """
    attention, experts = (
        Placement(tuple(map(tuple, rows))) for rows in (block.attention, block.experts)
    )
    return FoldedPlacement(attention, experts)


def sides_of_block(
    block: TrainingBlock,
) -> tuple[tuple[Sequence[str], Placement], tuple[Sequence[str], Placement]]:
    """Both matrices of a training, each with the names of its rows.

    Where shards have copies, the row of data parallelism is divided into these and the shards.

    Raises:
        InputError: there are none, they are no consistent pair, or no rows divide so.
    """
    if not isinstance(block.placement, PlacementBlock):
        raise InputError("a training", "has no matrix of experts")
    pair, copies = folded_placement(block.placement), block.strategy.dp_replicate
    if copies == 1:
        return (PP_OUTERMOST.attention, pair.attention), (PP_OUTERMOST.experts, pair.experts)
    attention, experts = (with_copies(one, copies) for one in (pair.attention, pair.experts))
    return (WITH_COPIES.attention, attention), (WITH_COPIES.experts, experts)


def several(names: Sequence[str], placement: Placement) -> tuple[list[tuple[str, int]], Matrix]:
    """The axes of several devices with their sizes, and their rows."""
    rows = zip(names, placement.axis_sizes, placement.matrix, strict=True)
    kept = [(name, size, row) for name, size, row in rows if size > 1]
    return [(name, size) for name, size, _ in kept], tuple(row for _, _, row in kept)


def _side(
    plan: PlanModel,
    name: str,
    axes: list[tuple[str, int]],
    matrix: list[list[int]] | None,
    ranks: list[int],
) -> PlanSide:
    """The requests on one matrix, with what the numbers of the whole plan are of them alone."""
    host_of = dict(zip(plan.ranks, plan.hosts or (), strict=False))
    numbers = tuple(n for n, one in enumerate(plan.requests) if one.matrix == name)
    requests = [plan.requests[n] for n in numbers]
    proved = all(one.status is Status.OPTIMAL for one in requests)
    update: dict[str, Any] = {
        "axes": [AxisModel(name=axis, size=size) for axis, size in axes],
        "matrix": matrix,
        "ranks": ranks,
        "hosts": plan.hosts if plan.hosts is None else [host_of.get(one, "") for one in ranks],
        "requests": requests,
        "restrictions": [one for one in plan.restrictions if _concerns(one, name)],
        "objective_s": _total(requests, lambda one: one.seconds),
        "bound_s": _total(requests, lambda one: one.bound_s),
        "physical_bound_s": _total(requests, lambda one: one.physical_bound_s),
        "status": Status.OPTIMAL if proved else Status.FEASIBLE,
        "peak_bytes": max((one.peak_bytes for one in requests), default=0),
        "basis": plan.basis
        if any(one.kind.has_programs for one in requests)
        else plan.basis and [],
        "training": None,
        "range_s": None,
        "range_basis": None,
    }
    return PlanSide(name, plan.model_copy(update=update), numbers)


def _concerns(restriction: Restriction, name: str) -> bool:
    """Whether a restriction is on that matrix: what is on no axis of experts is on attention's."""
    axis = getattr(restriction, "axis", None)
    if axis is None:
        return True
    own = {*PP_OUTERMOST.experts[1:], *WITH_COPIES.experts[1:]}
    return axis in {PIPELINE, *own} if name == EXPERTS else axis not in own


def _total(requests: Iterable[Any], value: Callable[[Any], float | None]) -> float | None:
    """The sum over an iteration; None where times are not told."""
    found = [(one.times, value(one)) for one in requests]
    if any(seconds is None for _, seconds in found):
        return None
    return math.fsum(times * (seconds or 0.0) for times, seconds in found)


# Plans of both sides as data, joined to one.


def joined(attention: dict[str, Any], experts: dict[str, Any] | None) -> dict[str, Any]:
    """The plan file of two matrices, of the plan file of each; None: experts send nothing.

    What lies along the pipeline is told once.
    """
    first = [one | {"matrix": ATTENTION} for one in attention["requests"]]
    if experts is None:
        return attention | {"requests": first}
    known = attention["restrictions"]
    more = [one for one in experts["restrictions"] if "axis" in one and one not in known]
    fixed = [one for one in known if "axis" in one]
    both = (attention, experts)
    return attention | {
        "restrictions": [*fixed, *more, *(one for one in known if "axis" not in one)],
        **{key: sum(one[key] for one in both) for key in _SUMMED},
        "status": _weaker(attention["status"], experts["status"]),
        "basis": list(dict.fromkeys([*attention["basis"], *experts["basis"]])),
        "peak_bytes": max(one["peak_bytes"] for one in both),
        "requests": [*first, *(one | {"matrix": EXPERTS} for one in experts["requests"])],
    }


_SUMMED = ("objective_s", "bound_s", "physical_bound_s")


def _weaker(one: str, other: str) -> str:
    optimal = Status.OPTIMAL.value
    return one if other == optimal else other


# The parts of a payload that go through several programs at once.


def part_bytes(payload_bytes: int, shares: Sequence[Fraction]) -> list[int]:
    """Whole bytes for parts, which add up to the payload."""
    ends = [int(payload_bytes * sum(shares[:n], Fraction(0))) for n in range(len(shares))]
    return [b - a for a, b in pairwise([*ends, payload_bytes])]


def parts_as_plan(plan: PlanModel, split: SplitModel) -> PlanModel:
    """The parts of a split as requests of a plan, one after the other: to be checked, or run."""
    parts = [part.request for part in split.parts]
    return plan.model_copy(
        update={
            "requests": parts,
            "objective": "sum",
            "objective_s": sum(part.times * (part.seconds or 0.0) for part in parts),
            "bound_s": 0.0,
            "physical_bound_s": sum(part.times * (part.physical_bound_s or 0.0) for part in parts),
            "status": Status.FEASIBLE,
            "basis": None,
            "peak_bytes": max(part.peak_bytes for part in parts),
            "splits": None,
        }
    )
