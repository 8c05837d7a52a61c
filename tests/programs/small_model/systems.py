"""All instructions over some factors as a table of numbered states, by the semantics alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from p2smt.collectives.demand import demand_of
from p2smt.collectives.names import RequestKind
from p2smt.problems.placement import reduction_items
from p2smt.programs import semantics
from p2smt.programs.program import local_groups
from p2smt.programs.semantics import State, Step, Violation

DEAD = -1


@dataclass(eq=False)
class System:
    """All instructions over some factors, as a table of numbered states that grows."""

    kind: RequestKind
    factors: tuple[int, ...]
    states: list[State] = field(default_factory=list)
    goals: list[bool] = field(default_factory=list)
    ids: dict[bytes, int] = field(default_factory=dict)
    after: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        items = reduction_items(len(self.factors))
        self.steps = [Step(c, local_groups(self.factors, grouping)) for c, grouping in items]
        self.number(semantics.initial_state(demand_of(self.kind), math.prod(self.factors)))

    def number(self, state: State) -> int:
        key = state.tobytes()
        if key not in self.ids:
            self.ids[key] = len(self.states)
            self.states.append(state)
            self.goals.append(semantics.is_goal(demand_of(self.kind), state))
        return self.ids[key]

    def goal(self, at: int) -> bool:
        return at != DEAD and self.goals[at]

    def step(self, at: int, instruction: int) -> int:
        """The state after an instruction; DEAD where it is not allowed, or after the goal."""
        if at == DEAD or self.goals[at]:
            return DEAD
        if (at, instruction) not in self.after:
            state = self.states[at].copy()
            broken = isinstance(semantics.apply(state, self.steps[instruction], 1), Violation)
            self.after[at, instruction] = DEAD if broken else self.number(state)
        return self.after[at, instruction]


@cache
def system(kind: RequestKind, factors: tuple[int, ...]) -> System:
    """One table per system, shared by the tests."""
    return System(kind, factors)


def contents(one: System, at: int) -> npt.NDArray[np.bool_]:
    """What devices hold: [device, row, contribution], up to 64 devices."""
    words = one.states[at][:, :, 0]
    return np.asarray((words[:, :, None] >> np.arange(len(words), dtype=np.uint64)) & 1 == 1)
