"""Lowers programs to schedules.

A rank is a device in hierarchy order.  The payload of a request over k members has k rows; a row
has as many chunks as the even split of every all-reduce needs, once for each pipelined piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from p2smt.collectives.names import RequestKind
from p2smt.errors import InputError
from p2smt.programs.program import lower
from p2smt.schedules.lower.assemble import DEFAULT, Lowering, schedule_of_steps

if TYPE_CHECKING:
    from p2smt.parallelism.placement import IntArray
    from p2smt.programs.program import Hierarchy, Program
    from p2smt.schedules.lower.rows import RankGroup
    from p2smt.schedules.model import Schedule

MAX_RANKS = 1024


def lower_program(
    program: Program,
    hierarchy: Hierarchy,
    kind: RequestKind = RequestKind.ALL_REDUCE,
    how: Lowering = DEFAULT,
    groups: Sequence[RankGroup] | None = None,
) -> Schedule:
    """The schedule of a program in every reduction group.

    groups: reduction groups of ``hierarchy.size`` ranks that together are 0, 1, ..; None: one.

    Raises:
        InputError: unknown levels, members that hold different rows, or too large a schedule.
    """
    check_most_ranks(hierarchy.size * len(groups or [()]))
    own = np.array(groups or [tuple(range(hierarchy.size))], dtype=np.int64)
    steps = [
        (i.collective, _tuples(lower(own, hierarchy.factors, hierarchy.grouping(i))))
        for i in program.instructions
    ]
    return schedule_of_steps(str(program), kind, _tuples(own), steps, how)


def check_most_ranks(ranks: int) -> None:
    """Raise InputError if there are too many ranks for a schedule."""
    if ranks > MAX_RANKS:
        raise InputError(f"{ranks} ranks", f"schedules are made for at most {MAX_RANKS}")


def _tuples(groups: IntArray) -> list[RankGroup]:
    return [tuple(group) for group in groups.tolist()]
