"""Deadlock where several blocks take from one counter: every outcome of every contest is tried.

Only contests branch.  Everything else is run first: it stays able to start whoever wins, so a
state in which nothing can start is reached with it done.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

from p2smt.schedules.graph import sequences_of
from p2smt.schedules.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from p2smt.schedules.index import Index
    from p2smt.schedules.progress import Local

MAX_STATES = 5_000
MAX_WORK = 20_000_000


def contested(index: Index) -> frozenset[str]:
    """Counters that steps take from in no certain order."""
    return frozenset(
        counter for counter, awaits in index.awaits.items() if len(sequences_of(index, awaits)) > 1
    )


def stuck_run(index: Index, local: Local, depth: int | None) -> Progress | None:
    """A run in which some step never gets its turn, or None if there is none.

    Raises:
        TimeoutError: too many outcomes to try them all.
    """
    progress = Progress(index, local, depth, contested(index))
    progress.run()
    todo, seen = [progress], {frozenset(progress.order)}
    while todo:
        state = todo.pop()
        nexts = [] if state.finished else list(_outcomes(state))
        if not state.finished and not nexts:
            return state
        for later in nexts:
            key = frozenset(later.order)
            if key not in seen:
                seen.add(key)
                todo.append(later)
        if len(seen) > MAX_STATES or len(seen) * len(index.schedule.steps) > MAX_WORK:
            raise TimeoutError
    return None


def _outcomes(state: Progress) -> Iterator[Progress]:
    """The state after each of the contests that can be decided now, run on from there."""
    for step in state.waiting():
        if step in state.arrived or _lacks_more(state, step):
            continue
        later = _copy(state)
        for waiting in later.blocked.values():
            waiting[:] = [other for other in waiting if other != step]
        later.do(step)
        later.run()
        yield later


def _lacks_more(state: Progress, step: int) -> bool:
    return replace(state, held=frozenset()).lacks(step) is not None


def _copy(state: Progress) -> Progress:
    """An independent copy; the schedule's tables are shared."""
    shared = {id(part): part for part in (state.index, state.local)}
    return deepcopy(state, dict(shared))
