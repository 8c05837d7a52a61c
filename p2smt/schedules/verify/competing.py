"""Deadlock where several blocks take from one counter: every outcome of every contest is tried.

Only contests branch.  Everything else is run first: it stays able to start whoever wins, so a
state in which nothing can start is reached with it done.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from p2smt.schedules.order.happens_before import sequences_of
from p2smt.schedules.verify.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from p2smt.schedules.index import Index
    from p2smt.schedules.verify.progress import LocalOrder

MAX_STATES = 5_000


class TooManyOutcomes(Exception):
    """Competing waits have more outcomes than could be tried; says whether it was their number
    or the time.  Never leaves the checker."""


def contested(index: Index) -> frozenset[str]:
    """Counters that steps take from in no certain order."""
    return frozenset(
        counter for counter, awaits in index.awaits.items() if len(sequences_of(index, awaits)) > 1
    )


def stuck_run(
    index: Index, local: LocalOrder, depth: int | None, time_limit_s: float | None
) -> Progress | None:
    """A run in which some step never gets its turn, or None if there is none.

    Raises:
        TooManyOutcomes: they could not all be tried, by number or in time.
    """
    end = inf if time_limit_s is None else monotonic() + time_limit_s
    progress = Progress(index, local, depth, contested(index))
    progress.run()
    todo, seen = [progress], {_done(progress)}
    while todo:
        state = todo.pop()
        nexts = [] if state.finished else list(_outcomes(state))
        if not state.finished and not nexts:
            return state
        for later in nexts:
            key = _done(later)
            if key not in seen:
                seen.add(key)
                todo.append(later)
        if len(seen) > MAX_STATES:
            raise TooManyOutcomes(f"more than {MAX_STATES} outcomes of competing waits")
        if monotonic() > end:
            raise TooManyOutcomes(
                "the time limit came before all outcomes of competing waits were tried"
            )
    return None


def _done(state: Progress) -> tuple[frozenset[int], frozenset[int]]:
    """What tells states apart: steps done, and steps that wait at a barrier."""
    return frozenset(state.order), frozenset(state.arrived)


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
    return replace(
        state,
        order=state.order.copy(),
        missing=state.missing.copy(),
        tokens=state.tokens.copy(),
        blocked=defaultdict(list, {what: steps.copy() for what, steps in state.blocked.items()}),
        arrived=state.arrived.copy(),
        ready=state.ready.copy(),
    )
