"""Wrong output chunks, named by what is wrong with them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from p2smt.collectives.contract import Contribution
from p2smt.schedules.model import Buffer, Span
from p2smt.schedules.verify.report import Kind, Violation, times
from p2smt.schedules.verify.values import wrong_goals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from p2smt.collectives.contract import Goal
    from p2smt.schedules.multisets import Part
    from p2smt.schedules.verify.values import DataState


def wrong_values(state: DataState, order: tuple[int, ...] = ()) -> Iterator[Violation]:
    """One violation for every goal that a run does not meet; ``order`` is kept with each."""
    for goal, got in wrong_goals(state):
        kind, what = classify(goal, got, _untouched(state, goal))
        text = f"o[{goal.chunk}] of rank {goal.rank} {what}"
        yield Violation(kind, text, (), goal.rank, goal.chunk, order)


def _untouched(state: DataState, goal: Goal) -> bool:
    """Whether no step of the schedule writes the chunk of a goal."""
    memory = state.index.memory
    cell = memory.output_cell(goal.rank, goal.chunk)
    spans = (span for step in state.index.schedule.steps for span in step.writes)
    return not any(span.rank == goal.rank and cell in memory.cells(span) for span in spans)


def classify(goal: Goal, got: Mapping[Part, int], untouched: bool) -> tuple[Kind, str]:
    """The kind of violation, and in words what the chunk holds instead of its goal."""
    wanted: Counter[Part] = Counter(goal.parts)
    undefined = [part for part in got if isinstance(part, str)]
    extra = {part: n for part, n in got.items() if n > wanted[part] and part not in undefined}
    missing = [part for part in wanted if got.get(part, 0) < wanted[part]]
    if untouched and undefined:
        return Kind.MISSING, f"is never written; it lacks {_names(missing)}"
    if undefined == [str(Span(goal.rank, Buffer.OUTPUT, goal.chunk, 1))]:
        return Kind.UNINITIALISED, "is read before anything was written there"
    if undefined:
        return (
            Kind.UNINITIALISED,
            f"contains {undefined[0]}, read before anything was written there",
        )
    if untouched:
        return Kind.STALE, f"still holds what was there at the start; it lacks {_names(missing)}"
    return _sums(wanted, extra, missing)


def _sums(
    wanted: Mapping[Part, int], extra: Mapping[Part, int], missing: list[Part]
) -> tuple[Kind, str]:
    doubled = [part for part in extra if wanted[part]]
    lacking = f", and lacks {_names(missing)}" if missing else ""
    if doubled:
        return Kind.DOUBLED, f"contains {_names(doubled, extra)}{lacking}"
    if extra:
        return Kind.FOREIGN, f"contains {_names(list(extra))}, which is not part of it{lacking}"
    return Kind.MISSING, f"lacks {_names(missing)}"


def _names(parts: list[Part], counts: Mapping[Part, int] | None = None, most: int = 4) -> str:
    shown = sorted(parts, key=lambda p: p if isinstance(p, Contribution) else (-1, -1))[:most]
    words = [f"{part} {times(counts[part])}" if counts else str(part) for part in shown]
    more = f" and {len(parts) - most} more" if len(parts) > most else ""
    return ", ".join(words) + more
