"""What is asked of a redistribution, and what the answer is."""

from __future__ import annotations

from dataclasses import dataclass, field

from p2smt.arrays.array_type import ArrayType
from p2smt.arrays.ends import Ends, check_same_array, ends_of, orders_left_out
from p2smt.arrays.memory import MemoryLimit
from p2smt.cluster.topology import Topology
from p2smt.errors import InputError
from p2smt.plans.redistribution.plan import RedistributionPlan
from p2smt.result import SearchLimits, SolveStats, Status
from p2smt.search.redistribution.cuts import Cuts, splits_of
from p2smt.search.redistribution.least import LeastCaps
from p2smt.units import format_bytes

MAX_STEPS = 64


@dataclass(frozen=True, slots=True)
class RedistributionQuestion:
    """From ``source`` to ``target`` on a topology, under a cap.

    ``memory_bytes`` bounds input, output and pack buffer of every step (with ``keep_source`` the
    source beside them); None: every state is at most the larger of source and destination.
    ``max_steps``: compare plans of at most so many steps; None: of any length, where that can be
    proved.
    """

    source: ArrayType
    target: ArrayType
    topology: Topology
    memory_bytes: int | None = None
    keep_source: bool = False
    max_steps: int | None = None
    cuts: Cuts = Cuts.PRIMES
    limits: SearchLimits = field(default_factory=SearchLimits)

    def __post_init__(self) -> None:
        if self.max_steps is not None and not 1 <= self.max_steps <= MAX_STEPS:
            raise InputError(f"{self.max_steps} steps", f"must be 1 to {MAX_STEPS}")
        check_same_array(self.source, self.target)
        _check_devices(self.source, self.topology)

    def ends(self) -> tuple[Ends, ...]:
        """Source and destination on common digits, for each order of the primes.

        Raises:
            InputError: the types have no common digits.
        """
        splits = splits_of(self.cuts, self.topology, self.source.mesh)
        return ends_of(self.source, self.target, splits)

    def orders_left_out(self) -> int:
        """How many orders of the primes :meth:`ends` leaves out."""
        splits = splits_of(self.cuts, self.topology, self.source.mesh)
        return orders_left_out(self.source, self.target, splits)

    def memory(self, ends: Ends) -> MemoryLimit:
        """The cap.

        Raises:
            InputError: it is below source or destination.
        """
        if self.memory_bytes is None:
            return MemoryLimit(ends.states_limit_bytes, keep_source=self.keep_source)
        for name, state in (("source", ends.source), ("destination", ends.target)):
            needed = ends.frame.local_bytes(state)
            if self.memory_bytes < needed:
                rule = f"is below the {name}'s {format_bytes(needed)} on a device"
                remedy = f"give at least {needed}B"
                raise InputError(f"memory {format_bytes(self.memory_bytes)}", rule, remedy)
        return MemoryLimit(self.memory_bytes, of_steps=True, keep_source=self.keep_source)


def _check_devices(kind: ArrayType, topology: Topology) -> None:
    """Raise InputError unless the mesh lies on all devices of the topology."""
    given = f"a mesh of {kind.mesh.size} devices"
    if topology.installed < topology.devices:
        rule = f"{topology.name} has hosts at {topology.installed} of {topology.devices} places"
        raise InputError(given, rule, "give a topology whose places all have hosts")
    if kind.mesh.size != topology.devices:
        rule = f"{topology.name} has {topology.devices}"
        remedy = "give as many, or another number of nodes (NAME:N), or --use"
        raise InputError(given, rule, remedy)
    if max(kind.mesh.devices) >= topology.devices:
        rule = f"devices are numbered 0 to {topology.devices - 1}"
        raise InputError(f"device {max(kind.mesh.devices)}", rule, "name each of these once")


@dataclass(frozen=True, slots=True)
class RedistributionAnswer:
    """The outcome of a search: a plan, or why there is none.

    ``least``: of an infeasible question, the least caps that some plan meets.
    ``bound_s``: no plan under the cap is faster.
    ``orders_left_out``: of the axes' primes; nothing is proved of plans on these.
    ``interrupted``: by the user; the plan is the best until then.
    """

    question: RedistributionQuestion
    memory: MemoryLimit
    status: Status
    plan: RedistributionPlan | None
    bound_s: float
    physical_bound_s: float
    stats: SolveStats
    least: LeastCaps = field(default_factory=LeastCaps)
    orders_left_out: int = 0
    interrupted: bool = False
