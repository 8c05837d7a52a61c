"""What is known of a scene with one payload and choice of algorithms."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """The single all-reduce, the best program and the best pipelined one; times in seconds.

    ``pipelined_s`` is the least over programs and numbers of chunks, ``bound_s`` what no program
    can beat on these links.
    """

    default_s: float
    best_s: float
    program: str
    pipelined_s: float
    chunks: int
    pipelined_program: str
    bound_s: float
