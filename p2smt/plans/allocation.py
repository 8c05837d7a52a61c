"""What an answer on named hosts says besides where ranks lie and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.parallelism.placement import Matrix


@dataclass(frozen=True, slots=True)
class Allocation:
    """An answer on the hosts that a job got.

    ``listed`` are the hosts as they were given, ``idle`` those of them that have no rank.
    ``inside`` is the parallelism matrix inside each node: rows are the axes, columns the levels
    inside nodes, outermost first.  ``with_programs_s`` is the objective with the best programs
    found on the same ranks, instead of one collective per request (None: none is faster, or none
    was looked for).
    """

    listed: tuple[str, ...]
    idle: tuple[str, ...]
    inside: Matrix
    with_programs_s: float | None = None
