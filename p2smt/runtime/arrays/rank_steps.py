"""The steps of a redistribution as one rank sees them: its group, its shapes, where blocks go.

Members of a group are in the order of mesh positions, row-major over the moved digits, ascending;
never in the order of rank numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.resharding.redistribution_plan import RedistributionPlan
from p2smt.resharding.states import ArrayState, Frame, state_of
from p2smt.resharding.steps import ArrayStep, StepKind, peak_bytes, peak_step_bytes
from p2smt.resharding.types import ReduceOp
from p2smt.runtime.arrays.block_values import block_of, chunk_lengths, coordinates_of

Members = tuple[int, ...]
Digits = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankStep:
    """A step on one rank.

    ``members``: its group (empty where nothing is collective).  ``sizes``: of the moved digits,
    ascending; ``place``: the rank's values of them.  ``gained[i]`` and ``lost[i]`` are what
    dimension i has more or less afterwards, as indices into ``sizes``.  ``gained_lengths`` and
    ``lost_lengths``: of an uneven dimension, what each member has of it when it is cut (None:
    equal parts).  ``source``: of a permute, who sends to this rank; ``targets``: to whom it sends.
    """

    kind: StepKind
    members: Members
    sizes: tuple[int, ...]
    place: tuple[int, ...]
    gained: tuple[Digits, ...]
    lost: tuple[Digits, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    op: ReduceOp
    gained_lengths: tuple[int, ...] | None = None
    lost_lengths: tuple[int, ...] | None = None
    rank: int = 0
    source: int = 0
    targets: tuple[int, ...] = ()

    @property
    def index(self) -> int:
        """The rank's number in its group."""
        return self.members.index(self.rank)

    @property
    def uneven(self) -> bool:
        """Whether parts of some dimension differ in length."""
        return self.gained_lengths is not None or self.lost_lengths is not None


def rank_steps(
    frame: Frame, steps: Sequence[ArrayStep], sources: Sequence[Sequence[int]], rank: int
) -> tuple[RankStep, ...]:
    """The steps as a rank (device) sees them; ``sources[i][d]``: of permute i, who sends to d.

    ``sources`` has an entry per step, empty for those that are no permutes.

    Raises:
        InputError: a step breaks its rule, or a permute's sources are not one per device.
    """
    found = []
    for step, senders in zip(steps, sources, strict=True):
        step.check(frame)
        found.append(_rank_step(frame, step, tuple(senders), rank))
    return tuple(found)


def _rank_step(frame: Frame, step: ArrayStep, senders: tuple[int, ...], rank: int) -> RankStep:
    place = coordinates_of(frame, rank, step.before.order)
    before, after = (block_of(frame, state, rank).shape for state in (step.before, step.after))
    if step.kind is StepKind.PERMUTE:
        check_senders(frame, senders)
        targets = tuple(d for d, sender in enumerate(senders) if sender == rank and d != rank)
        shapes, none = (before, after), ((),) * len(before)
        return RankStep(
            *(step.kind, (), (), (), none, none, *shapes, frame.op),
            rank=rank,
            source=senders[rank],
            targets=targets,
        )
    moved = step.moved
    groups = (group for group in step.groups(frame) if rank in group)
    return RankStep(
        step.kind,
        next(groups, ()),
        tuple(frame.digits[digit].size for digit in moved),
        tuple(place[digit] for digit in moved),
        _indices(step.gained, moved),
        _indices(step.lost, moved),
        before,
        after,
        frame.op,
        _lengths(frame, step.gained, before),
        _lengths(frame, step.lost, after),
        rank,
    )


def check_senders(frame: Frame, senders: Sequence[int]) -> None:
    """Raise InputError unless there is a device for each device."""
    if len(senders) != frame.devices or not all(0 <= s < frame.devices for s in senders):
        rule = f"names {len(senders)} sources, each of the {frame.devices} devices needs one"
        raise InputError("step permute", rule)


def _indices(lists: Sequence[Sequence[int]], moved: Sequence[int]) -> tuple[Digits, ...]:
    return tuple(tuple(moved.index(digit) for digit in digits) for digits in lists)


def _lengths(frame: Frame, lists: Sequence[Digits], whole: Sequence[int]) -> tuple[int, ...] | None:
    """Lengths of the parts of the one dimension that is cut unevenly, whole where it is not cut."""
    for size, digits in zip(whole, lists, strict=True):
        ways = frame.ways(digits)
        if size % ways:
            return chunk_lengths(size, ways)
    return None


def cut_dim(lists: Sequence[Digits]) -> int:
    """The one dimension that has digits in these lists."""
    return next(dim for dim, digits in enumerate(lists) if digits)


def cut_indices(step: RankStep) -> Iterator[tuple[int, int]]:
    """Of a slice, for each dimension that is cut: which dimension, and the rank's part of it."""
    for dim, digits in enumerate(step.gained):
        if digits:
            index = 0
            for digit in digits:
                index = index * step.sizes[digit] + step.place[digit]
            yield dim, index


def ways(step: RankStep, digits: Digits) -> int:
    """Parts into which these digits cut a dimension."""
    return math.prod(step.sizes[digit] for digit in digits)


# A planned redistribution as work for ranks: what each needs to know, without torch.


@dataclass(frozen=True, slots=True)
class ArrayJob:
    """Steps from ``start``, for as many ranks as the mesh has devices; rank r is device r.

    ``sources[i]``: of a permute, who sends to each device (other steps: empty).
    ``keep_source``: the source stays alive and as it was until the end.
    """

    frame: Frame
    start: ArrayState
    steps: tuple[ArrayStep, ...]
    sources: tuple[tuple[int, ...], ...]
    predicted_s: tuple[float, ...]
    keep_source: bool = False

    def __post_init__(self) -> None:
        state = self.start
        for number, (step, senders) in enumerate(zip(self.steps, self.sources, strict=True), 1):
            where = f"step {number}"
            if step.before != state:
                raise InputError(where, "does not begin where the step before it ends")
            step.check(self.frame)
            if step.kind is StepKind.PERMUTE:
                check_senders(self.frame, senders)
            state = step.after
        if set(self.frame.orders[0]) != set(range(self.frame.devices)):
            rule = f"to be run they must be the ranks 0 to {self.frame.devices - 1}"
            raise InputError(f"devices {list(self.frame.orders[0])[:20]}", rule)

    @property
    def ranks(self) -> int:
        """Ranks that it takes."""
        return self.frame.devices

    @property
    def end(self) -> ArrayState:
        """The state after the last step."""
        return self.steps[-1].after if self.steps else self.start

    @property
    def reduces(self) -> bool:
        """Whether some step adds contributions; else everything arrives bit for bit."""
        kinds = {step.kind for step in self.steps}
        return bool(kinds & {StepKind.REDUCE_SCATTER, StepKind.ALL_REDUCE})


def array_job(plan: RedistributionPlan) -> ArrayJob:
    """The job of a plan.

    Raises:
        InputError: its steps do not follow each other, break a rule, or end somewhere else.
    """
    end = state_of(
        plan.target.layout, plan.frame.digits, plan.frame.mesh, len(plan.frame.orders) - 1
    )
    if plan.states[-1] != end:
        raise InputError("the last step", "does not end in the destination's layout")
    return ArrayJob(
        plan.frame,
        plan.start,
        plan.array_steps,
        tuple(planned.sources for planned in plan.steps),
        tuple(planned.time.seconds for planned in plan.steps),
        plan.memory.keep_source,
    )


# What a redistribution needs of memory: on each real rank, and on the reference executor.


_COMPARED_BYTES = 64  # per element: numbers, bits, what is found and what is right, in 64 bits each
_REFERENCE_BYTES = 40


def predicted_bytes(job: ArrayJob) -> int:
    """Input, output and pack buffer of the dearest step, with the source where it is kept."""
    if not job.steps:
        return job.frame.local_bytes(job.start)
    return peak_step_bytes(job.frame, job.steps, job.keep_source)


def array_rank_bytes(job: ArrayJob) -> int:
    """About the memory that each rank needs: for the steps, and to compare the result."""
    return predicted_bytes(job) + 2 * _largest(job) * (
        _COMPARED_BYTES + job.frame.element.item_bytes
    )


def array_reference_bytes(job: ArrayJob) -> int:
    """About the memory that the reference executor needs for all ranks, in one process."""
    return job.ranks * _largest(job) * _REFERENCE_BYTES


def _largest(job: ArrayJob) -> int:
    """Elements of the largest local array."""
    states = [job.start, *(step.after for step in job.steps)]
    largest = peak_bytes(job.frame, states) // job.frame.element.item_bytes
    return max(1, math.ceil(largest))
