"""A planned redistribution: its steps with their times, what is proved, and within which limits."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.cluster.topology import Topology
from p2smt.collectives.names import RequestKind
from p2smt.cost.accuracy import PriceRange, most_in_node, summed
from p2smt.cost.step_time import StepTime
from p2smt.display import Displayed, told
from p2smt.plans.ranges import range_of_step
from p2smt.resharding.states import ArrayState, Frame
from p2smt.resharding.steps import ArrayStep, MemoryLimit, StepKind, peak_bytes, peak_step_bytes
from p2smt.resharding.types import ArrayType, layout_text
from p2smt.result import SearchLimits, SolveStats, Status


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step with its time.  ``sources[d]``: of a permute, the device that sends to device d."""

    step: ArrayStep
    time: StepTime
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class RedistributionPlan(Displayed):
    """The best steps found from source to destination.

    ``max_steps``: plans of at most so many steps were compared, of which it is one; None: of any
    length.
    ``bound_s``: no such plan is faster.  ``physical_bound_s``: nor does any way to move the data
    exist that is faster, by the links alone.  ``levels_only``: cuts were allowed at the factors of
    levels only.  ``status`` is OPTIMAL or FEASIBLE.
    """

    topology: Topology
    source: ArrayType
    target: ArrayType
    frame: Frame
    start: ArrayState
    steps: tuple[PlannedStep, ...]
    memory: MemoryLimit
    status: Status
    bound_s: float
    physical_bound_s: float
    max_steps: int | None
    levels_only: bool
    limits: SearchLimits
    stats: SolveStats

    def summary(self) -> str:
        """From what to what, status and time."""
        source, target = (layout_text(one.layout, one.mesh) for one in (self.source, self.target))
        return f"{source} to {target}: {told(self.status.value, self.objective_s)}"

    @property
    def objective_s(self) -> float:
        """Predicted seconds of all steps, one after the other."""
        return sum(planned.time.seconds for planned in self.steps)

    @property
    def step_ranges(self) -> tuple[PriceRange | None, ...]:
        """The range of each step's time; None: nothing is sent."""
        return tuple(_step_range(self.topology, self.frame, planned) for planned in self.steps)

    @property
    def within(self) -> PriceRange | None:
        """The range of all steps together; None: nothing is sent."""
        return summed([one for one in self.step_ranges if one is not None])

    @property
    def states(self) -> tuple[ArrayState, ...]:
        """The states that the array passes through, the first and the last among them."""
        return (self.start, *(planned.step.after for planned in self.steps))

    @property
    def array_steps(self) -> tuple[ArrayStep, ...]:
        """The steps without their times."""
        return tuple(planned.step for planned in self.steps)

    @property
    def peak_bytes(self) -> int:
        """The largest single state, local bytes."""
        return peak_bytes(self.frame, self.states)

    @property
    def peak_step_bytes(self) -> int:
        """Input, output and pack buffer of the dearest step (without steps: of the one state)."""
        steps = self.array_steps
        if not steps:
            return self.peak_bytes
        return peak_step_bytes(self.frame, steps, self.memory.keep_source)


def _step_range(topology: Topology, frame: Frame, planned: PlannedStep) -> PriceRange | None:
    """The range of a step, as of the collective that it is; of a permute, that of sends."""
    step = planned.step
    permutes = step.kind is StepKind.PERMUTE
    name = RequestKind.SEND.value if permutes else step.kind.value
    members = () if permutes else step.moved
    local = most_in_node(topology, frame.groups(members, step.before.order)) if members else 0
    return range_of_step(topology, name, planned.time, local)
