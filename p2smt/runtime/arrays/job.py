"""A planned redistribution as work for ranks: what each needs to know, without torch."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.arrays.frame import Frame, state_of
from p2smt.arrays.state import ArrayState
from p2smt.arrays.steps import ArrayStep, StepKind
from p2smt.errors import InputError
from p2smt.plans.redistribution.plan import RedistributionPlan
from p2smt.runtime.arrays.rank_steps import check_senders


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
