"""Is a schedule right in every interleaving?  The checks in their order, and the verdict.

1. Structure: bounds, counts, peers, references, matching.  If broken, nothing more can be said.
2. Progress: every step gets its turn, with connections of the given depth.
3. Order: every pair of conflicting accesses is ordered by happens-before; then one run shows
   what every interleaving gives.
4. Where accesses are not ordered, the solver decides whether some interleaving is wrong.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from p2smt.schedules.accesses import find_races
from p2smt.schedules.deadlock import deadlock, longest_queue, smallest_depth, stuck
from p2smt.schedules.explain import explained
from p2smt.schedules.graph import edges_of
from p2smt.schedules.index import index_of
from p2smt.schedules.progress import local_order, run
from p2smt.schedules.report import Report, Verdict
from p2smt.schedules.structure import broken_steps, unmatched
from p2smt.schedules.values import run_values
from p2smt.schedules.wrong_values import wrong_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from p2smt.schedules.accesses import Race
    from p2smt.schedules.index import Index
    from p2smt.schedules.model import Schedule
    from p2smt.schedules.progress import Local

DEFAULT_DEPTH = 8
# Violations of one check that are reported; more of the same help nobody.
_MOST = 100


def verify(
    schedule: Schedule, fifo_depth: int = DEFAULT_DEPTH, time_limit_s: float = 60.0
) -> Report:
    """Checks a schedule for every interleaving.

    Args:
        fifo_depth: messages that a connection holds before its sender must wait.
        time_limit_s: for the solver; reached, the verdict is unknown, never a proof.
    """
    index = index_of(schedule)
    broken = tuple(islice(broken_steps(index), _MOST))
    if not broken:
        broken = tuple(islice(unmatched(index), _MOST))
    if broken:
        return Report(Verdict.INVALID, broken, schedule.warnings, fifo_depth)
    local = local_order(index)
    try:
        progress = stuck(index, local, fifo_depth)
    except TimeoutError:
        return _unknown(schedule, fifo_depth, "too many outcomes of competing waits")
    if progress is not None:
        depth = smallest_depth(index, local, longest_queue(index))
        found = (deadlock(index, progress),)
        return Report(Verdict.INVALID, found, schedule.warnings, fifo_depth, depth)
    return _data(index, local, fifo_depth, time_limit_s)


def _unknown(schedule: Schedule, depth: int, reason: str) -> Report:
    return Report(Verdict.UNKNOWN, (), schedule.warnings, depth, reason=reason)


def _data(index: Index, local: Local, depth: int, time_limit_s: float) -> Report:
    """The checks of a schedule in which every step gets its turn."""
    schedule = index.schedule
    order = tuple(run(index, local, depth).order)
    races = find_races(index, edges_of(index), order)
    warnings = list(schedule.warnings)
    if races and not (still := find_races(index, edges_of(index, depth), order)):
        warnings.append(
            f"right only while a connection holds at most {depth} messages: full connections "
            f"order what is done to {_cells(races)} cells"
        )
        races = still
    violations = tuple(islice(wrong_values(run_values(index, order), order * bool(races)), _MOST))
    smallest = smallest_depth(index, local, depth)
    if violations:
        violations = explained(index, order, violations)
        return Report(
            Verdict.INVALID, violations, tuple(warnings), depth, smallest, races=_cells(races)
        )
    if races:
        return _decided(index, races, order, depth, smallest, tuple(warnings), time_limit_s)
    return Report(Verdict.VALID, (), tuple(warnings), depth, smallest)


def _cells(races: Sequence[Race]) -> int:
    return len({race.cell for race in races})


def _decided(
    index: Index,
    races: Sequence[Race],
    order: Sequence[int],
    depth: int,
    smallest: int | None,
    warnings: tuple[str, ...],
    time_limit_s: float,
) -> Report:
    """A schedule with races that is right in one run: the solver looks for another."""
    first = races[0]
    reason = f"{index.memory.name(first.cell)} is accessed in no certain order"
    return Report(
        Verdict.UNKNOWN, (), warnings, depth, smallest, races=_cells(races), reason=reason
    )
