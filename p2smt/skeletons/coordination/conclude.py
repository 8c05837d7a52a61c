"""What the state of a search proves, and how far it has come."""

from __future__ import annotations

from collections.abc import Sequence

from p2smt.result import OUT_OF_TIME, Status, StopWatch
from p2smt.skeletons.coordination.state import SearchState
from p2smt.skeletons.cube import Cube
from p2smt.skeletons.outcome import SearchOutcome, SearchProgress
from p2smt.skeletons.space import Skeleton

INTERRUPTED = "it was interrupted"


def concluded(
    state: SearchState, skeleton: Skeleton, interrupted: bool, deaths: int, watch: StopWatch
) -> SearchOutcome:
    """The outcome that follows from what was closed and found."""
    status = status_of(state, skeleton)
    lists = skeleton is Skeleton.ENUMERATE
    return SearchOutcome(
        status,
        state.best.members,
        state.bound(),
        state.counts(),
        state.count() if lists else None,
        state.digest() if lists else None,
        state.open_cubes(),
        state.unknown_cubes(),
        interrupted,
        "" if status.settled else _reason(state, interrupted),
        state.splits,
        deaths,
        watch.elapsed_s(),
        state.given_up(),
    )


def status_of(state: SearchState, skeleton: Skeleton) -> Status:
    """A proof only if no cube is left that could say otherwise."""
    found, blocked = bool(state.best.members), state.blocked()
    match skeleton:
        case Skeleton.ENUMERATE:
            return Status.TRUNCATED if blocked else Status.COMPLETE
        case Skeleton.DECIDE if found:
            return Status.OPTIMAL
        case _ if not blocked:
            return Status.OPTIMAL if found else Status.INFEASIBLE
        case _:
            return Status.FEASIBLE if found else Status.UNKNOWN


def progress_of(state: SearchState, workers: int, watch: StopWatch) -> SearchProgress:
    """How far a search has come, now."""
    best, bound = state.best.members[:1], state.bound()
    incumbent = best[0] if best else None
    open_cubes = len(state.frontier.bounds)
    gap = None
    if incumbent is not None and bound is not None:
        gap = (incumbent.value - bound) / (abs(incumbent.value) or 1)
    return SearchProgress(
        open_cubes,
        len(state.frontier.away),
        state.counts(),
        incumbent,
        bound,
        gap,
        state.count(),
        workers,
        watch.elapsed_s(),
        _to_go_s(state, open_cubes, workers),
    )


def _to_go_s(state: SearchState, open_cubes: int, workers: int) -> float | None:
    if not open_cubes:
        return 0.0
    if not state.worked or not workers:
        return None
    return open_cubes * state.busy_s / state.worked / workers


def _reason(state: SearchState, interrupted: bool) -> str:
    if interrupted:
        return INTERRUPTED
    if state.open_cubes():
        return OUT_OF_TIME
    count = len(state.unknown_cubes()) - len(state.given_up())
    other = f"{_cubes(count)} closed without a proof" if count else ""
    return "; ".join(filter(None, (given_up_words(state.given_up()), other)))


def given_up_words(given_up: Sequence[tuple[Cube, int]]) -> str:
    """Which cubes were given up, in words; "": none was."""
    deaths = sum(many for _, many in given_up)
    return f"{_cubes(len(given_up))} given up after {deaths} deaths of workers" if given_up else ""


def _cubes(count: int) -> str:
    return f"{count:,} {'cube was' if count == 1 else 'cubes were'}"
