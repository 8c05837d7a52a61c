"""What is shown of other planners beside a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from p2smt.arrays.steps import ArrayStep


class ComparedPlanner(Protocol):
    """What another planner does; without seconds it has no plan of the six steps."""

    @property
    def name(self) -> str: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def peak_bytes(self) -> int | None: ...
    @property
    def peak_step_bytes(self) -> int | None: ...
    @property
    def over_cap(self) -> bool: ...
    @property
    def steps(self) -> Sequence[ArrayStep]: ...
    @property
    def note(self) -> str: ...
