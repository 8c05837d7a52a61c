"""Rows of the payload as they lie in memory, for every member that a program tells apart.

The groups of a parallelism matrix all do the same, so the members of one are told apart, by their
place.  Those of a rank list need not: there every rank is told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.collectives.names import Collective, RequestKind
from p2smt.errors import InputError
from p2smt.interop.launchers.places import PlacedPlan
from p2smt.interop.meshes.numbering import launched_ranks
from p2smt.interop.meshes.programs.place import PlaceDigits, coordinates_along, digits_along
from p2smt.interop.meshes.programs.row_text import MemberListing, RowChoice, row_choice
from p2smt.interop.meshes.programs.rows import GroupRows
from p2smt.interop.meshes.programs.steps import LaunchedRequest, LaunchedStep, StepOperation
from p2smt.parallelism.placement import IntArray, Placement

LocalSteps = tuple[tuple[tuple[int, ...], ...], ...]
"""For each step the groups inside one reduction group, as numbers of its members."""
_PARTED = (Collective.REDUCE_SCATTER, Collective.ALL_GATHER)


@dataclass(frozen=True, slots=True)
class CodedStep:
    """A step; ``groups`` is the number of its groups among those of the plan.

    ``rows`` are those that a rank's call works on, in the order in which they are sent (all-gather:
    its result); ``own`` those that it keeps of them (reduce-scatter) or brings (all-gather).
    """

    text: str
    operation: StepOperation
    groups: int
    rows: RowChoice
    own: RowChoice | None = None


@dataclass(frozen=True, slots=True)
class MemberGroups:
    """The groups whose members are told apart: ``local`` steps and ``places`` (group, member)."""

    local: tuple[LocalSteps, ...]
    places: IntArray
    listing: MemberListing


def member_groups(plan: PlacedPlan, request: LaunchedRequest) -> tuple[PlaceDigits, MemberGroups]:
    """The groups of a request whose members are told apart, and the variables of the members.

    Raises:
        InputError: a step's groups are not inside the request's, or not alike where they must be.
    """
    places = np.argsort(np.argsort(request.groups, axis=1), axis=1)
    local = _local_steps(plan, request)
    alike = (places == places[0]).all() and all(one == local[0] for one in local)
    if isinstance(plan.where, Placement) and alike:
        digits = digits_along(plan, plan.where, request.axes)
        values = {digit.name: digit.values for digit in digits.digits}
        return digits, MemberGroups(
            local[:1], places[:1], MemberListing("place", places[0], values)
        )
    rank_of = np.argsort(launched_ranks(plan).ravel())
    ranks = rank_of[request.groups.ravel()]
    digits = coordinates_along(plan, request.axes, ranks)
    values = {digit.name: digit.values for digit in digits.digits}
    return digits, MemberGroups(local, places, MemberListing("rank", ranks, values))


def _local_steps(plan: PlacedPlan, request: LaunchedRequest) -> tuple[LocalSteps, ...]:
    """The steps of each group of the request, in numbers of its members."""
    count, size = request.groups.shape
    owner = np.empty(request.groups.size, dtype=np.int64)
    number = np.empty(request.groups.size, dtype=np.int64)
    owner[request.groups] = np.arange(count)[:, None]
    number[request.groups] = np.arange(size)[None]
    found: list[list[tuple[tuple[int, ...], ...]]] = [[] for _ in range(count)]
    for step in request.steps:
        inside = _inside(f"{plan.source}: {request.name}, {step.text}", step, owner, number, count)
        for steps, groups in zip(found, inside, strict=True):
            steps.append(tuple(sorted(groups)))
    return tuple(map(tuple, found))


def _inside(
    given: str, step: LaunchedStep, owner: IntArray, number: IntArray, count: int
) -> list[list[tuple[int, ...]]]:
    found: list[list[tuple[int, ...]]] = [[] for _ in range(count)]
    for group in step.groups:
        ranks = list(group)
        owners = owner[ranks]
        if (owners != owners[0]).any():
            raise InputError(given, "has a group that is in no group of the request", "verify it")
        found[int(owners[0])].append(tuple(number[ranks].tolist()))
    return found


class MemoryRows:
    """The rows of members as they lie in memory.

    They are numbered by the members' launched ranks, as torch and JAX number what they scatter and
    gather; unless all end with all of them, where any numbering will do.
    """

    def __init__(self, request: LaunchedRequest, groups: MemberGroups) -> None:
        self.groups = groups
        plain = request.model.kind is RequestKind.ALL_REDUCE
        size = groups.places.shape[1]
        self.row_of = np.tile(np.arange(size), (len(groups.places), 1)) if plain else groups.places

    def choice(self, rows: Sequence[IntArray | None]) -> RowChoice:
        """The rows of all members, group after group, as an expression."""
        return row_choice(rows, self.groups.listing)

    def step(
        self, step: LaunchedStep, parts: Sequence[Sequence[GroupRows]], listed: int
    ) -> CodedStep:
        """A step, of which each group of the request has its parts."""
        size = self.groups.places.shape[1]
        whole: list[IntArray | None] = [None] * self.groups.places.size
        own: list[IntArray | None] = [None] * len(whole)
        parted = step.operation in _PARTED
        for number, inside in enumerate(parts):
            for group in inside:
                sent, kept = self._sent(number, group, parted=parted)
                for member, part in zip(group.members, kept, strict=True):
                    whole[number * size + member], own[number * size + member] = sent, part
        kept_rows = self.choice(own) if parted else None
        return CodedStep(step.text, step.operation, listed, self.choice(whole), kept_rows)

    def _sent(
        self, number: int, group: GroupRows, *, parted: bool
    ) -> tuple[IntArray, list[IntArray]]:
        """What a group works on, by its members' launched ranks, and each member's part of it."""
        parts = [np.sort(self.row_of[number][part]) for part in group.parts]
        if not parted:
            return parts[0], parts
        places = self.groups.places[number][list(group.members)]
        return np.concatenate([parts[i] for i in np.argsort(places).tolist()]), parts
