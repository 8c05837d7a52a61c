"""A peer's moves of whole mesh axes, played on the states of a frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from p2smt.errors import InputError
from p2smt.resharding.endpoints import Ends
from p2smt.resharding.states import ArrayState
from p2smt.resharding.steps import KINDS, ArrayStep, StepKind


@dataclass(frozen=True, slots=True)
class AxisMove:
    """Mesh axes that a peer moves at once, as it says it.

    ``kind`` None: it does what none of the six steps does, which ``text`` says.  ``lost`` and
    ``gained`` are the dimensions that the axes leave and join, ``axes`` in the order of joining.
    """

    kind: StepKind | None
    axes: tuple[int, ...]
    lost: int | None
    gained: int | None
    text: str


@dataclass(frozen=True, slots=True)
class PeerPath:
    """A peer's steps from source to target; ``outside``: why they are not all of the six.

    ``steps`` ends before the first that is none.
    """

    steps: tuple[ArrayStep, ...]
    outside: str = ""


def replayed(ends: Ends, moves: Sequence[AxisMove]) -> PeerPath:
    """The moves as steps, each checked by its own rule, and that they end at the target."""
    found: list[ArrayStep] = []
    state = ends.source
    for move in moves:
        after = _after(ends, state, move)
        if move.kind is None:
            return PeerPath(tuple(found), f"{move.text} is none of the six steps")
        if after == state:
            continue  # axes of one device
        step = KINDS[move.kind](state, after)
        try:
            step.check(ends.frame)
        except InputError as error:
            return PeerPath(tuple(found), f"{move.text}: {error}")
        found.append(step)
        state = after
    outside = "" if state == ends.target else "it does not end in the type that was asked for"
    return PeerPath(tuple(found), outside)


def _after(ends: Ends, state: ArrayState, move: AxisMove) -> ArrayState:
    digits = [
        number
        for axis in move.axes
        for number, digit in enumerate(ends.frame.digits)
        if digit.axis == axis
    ]
    dims = [
        tuple(d for d in dim if number != move.lost or d not in digits)
        for number, dim in enumerate(state.dims)
    ]
    if move.gained is not None:
        dims[move.gained] = (*dims[move.gained], *digits)
    partial = state.partial
    if move.kind in (StepKind.REDUCE_SCATTER, StepKind.ALL_REDUCE):
        partial = tuple(d for d in partial if d not in digits)
    return ArrayState(tuple(dims), partial, state.order)


def first_inside(ends: Iterable[Ends], moves: Sequence[AxisMove]) -> tuple[Ends, PeerPath]:
    """The first ends in whose frame the moves are steps; else the last ones, with the reason."""
    found: tuple[Ends, PeerPath] | None = None
    for one in ends:
        found = one, replayed(one, moves)
        if not found[1].outside:
            break
    if found is None:
        raise ValueError("no ends are given")
    return found
