"""Why an output chunk is wrong: the step that went wrong, and the way of each contribution.

The culprit is looked for where the damage first shows: the first sum that holds a contribution
twice, the step that overwrote one before it was passed on, the read of a chunk nobody had written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

from p2smt.collectives.contract import Contribution
from p2smt.schedules.verify.provenance import trace_values
from p2smt.schedules.verify.report import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from p2smt.collectives.contract import Goal
    from p2smt.schedules.index import Index
    from p2smt.schedules.multisets import Part
    from p2smt.schedules.verify.provenance import Addend, Provenance, StepChunk
    from p2smt.schedules.verify.report import Violation

# Steps of a contribution's way that are shown at each of its ends.
_SHOWN = 5


def explained(
    index: Index, order: Sequence[int], violations: Sequence[Violation]
) -> tuple[Violation, ...]:
    """The violations with culprits and ways, the one that shows first in the run first."""
    provenance = trace_values(index, order)
    goals = {(goal.rank, goal.chunk): goal for goal in index.schedule.contract.goals}
    when = {step: k for k, step in enumerate(order)}
    found = [
        _explained(provenance, goals[v.rank, v.chunk], v)
        for v in violations
        if v.rank is not None and v.chunk is not None
    ]
    return tuple(sorted(found, key=lambda v: when.get(v.steps[0], -1) if v.steps else len(when)))


def depends_on(
    index: Index, order: Sequence[int], violation: Violation, cells: Collection[int]
) -> bool:
    """Whether any of these cells has to do with what a wrong chunk holds after a run."""
    if violation.rank is None or violation.chunk is None:
        return False
    provenance = trace_values(index, order)
    cell = index.memory.output_cell(violation.rank, violation.chunk)
    read = (
        addend.cell
        for chunk in _cone(provenance, provenance.last.get(cell))
        for addend in provenance.addends[chunk]
    )
    return cell in cells or any(source in cells for source in read if source is not None)


def _explained(provenance: Provenance, goal: Goal, violation: Violation) -> Violation:
    root = provenance.last.get(provenance.state.index.memory.output_cell(goal.rank, goal.chunk))
    chunks = list(_cone(provenance, root))
    wanted: Counter[Part] = Counter(goal.parts)
    match violation.kind:
        case Kind.DOUBLED:
            return _doubled(provenance, chunks, wanted, violation)
        case Kind.UNINITIALISED:
            return _undefined(provenance, chunks, violation)
        case Kind.MISSING:
            return _missing(provenance, root, wanted, violation)
        case _:
            return _written_by(provenance, root, violation)


def _cone(provenance: Provenance, root: StepChunk | None) -> Iterator[StepChunk]:
    """What a chunk's value was made from, addends before what adds them."""
    done: set[StepChunk] = set()
    todo: list[tuple[StepChunk, bool]] = [(root, False)] if root else []
    while todo:
        chunk, finished = todo.pop()
        if finished:
            yield chunk
        elif chunk not in done:
            done.add(chunk)
            todo.append((chunk, True))
            todo += [(a.origin, False) for a in provenance.addends[chunk] if a.origin]


def _doubled(
    provenance: Provenance, chunks: list[StepChunk], wanted: Counter[Part], violation: Violation
) -> Violation:
    """The first sum in which a contribution comes together with itself."""
    for chunk in chunks:
        for part in provenance.parts(provenance.values[chunk]):
            addends = [a for a in provenance.addends[chunk] if provenance.contains(a.value, part)]
            if len(addends) > 1 and wanted[part]:
                return _joined(provenance, chunk, part, addends, violation)
    return violation


def _joined(
    provenance: Provenance,
    chunk: StepChunk,
    part: Part,
    addends: list[Addend],
    violation: Violation,
) -> Violation:
    steps = provenance.state.index.schedule.steps
    step = steps[chunk.step]
    both = " and ".join(_addend(provenance, addend) for addend in addends[:2])
    meant = _meant(provenance, addends)
    text = f"{violation.message}: {step} adds {both}, and both hold {part}{meant}"
    ways = [f"{part} by way of {_way(provenance, addend, part)}" for addend in addends]
    culprits = (chunk.step, *(a.origin.step for a in addends if a.origin))
    return replace(violation, message=text, steps=culprits, details=tuple(ways))


def _meant(provenance: Provenance, addends: list[Addend]) -> str:
    """What was probably meant, where a step that adds should not have."""
    if any(addend.cell is None for addend in addends):
        return "; it reduces where a plain receive was probably meant"
    for one, other in permutations(addends, 2):
        if one.origin and other in provenance.addends[one.origin]:
            return "; so the same data is added a second time"
    return "; it reduces where a copy was probably meant, or one of the two is old data"


def _addend(provenance: Provenance, addend: Addend) -> str:
    index = provenance.state.index
    maker = index.schedule.steps[addend.origin.step] if addend.origin else None
    if addend.cell is None:
        return f"the message from {maker}"
    name = index.memory.name(addend.cell)
    return f"{name} (written by {maker})" if maker else f"{name} (there from the start)"


def _way(provenance: Provenance, addend: Addend, part: Part) -> str:
    """The steps that a contribution went through before it got here, latest first."""
    steps, found = provenance.state.index.schedule.steps, []
    while addend.origin is not None:
        found.append(str(steps[addend.origin.step]))
        inside = provenance.addends[addend.origin]
        addend = next(a for a in inside if provenance.contains(a.value, part))
    if len(found) > 2 * _SHOWN:
        between = f"{len(found) - 2 * _SHOWN} more"
        found = [*found[:_SHOWN], between, *found[-_SHOWN:]]
    start = provenance.state.index.memory.name(addend.cell) if addend.cell is not None else "?"
    return " <- ".join([*found, f"{start} at the start"])


def _undefined(provenance: Provenance, chunks: list[StepChunk], violation: Violation) -> Violation:
    """The first read of a chunk that nobody had written."""
    for chunk in chunks:
        for addend in provenance.addends[chunk]:
            value = provenance.parts(addend.value)
            if addend.origin is None and any(isinstance(part, str) for part in value):
                step = provenance.state.index.schedule.steps[chunk.step]
                text = f"{violation.message}: {step} reads it"
                return replace(violation, message=text, steps=(chunk.step,))
    return violation


def _missing(
    provenance: Provenance, root: StepChunk | None, wanted: Counter[Part], violation: Violation
) -> Violation:
    """A step that overwrote what is missing, or who still holds it."""
    have = provenance.parts(provenance.values[root]) if root else {}
    part = min(p for p in wanted if have.get(p, 0) < wanted[p] and isinstance(p, Contribution))
    index = provenance.state.index
    for cell, old, chunk in provenance.overwritten:
        lost = provenance.contains(old, part) and not provenance.contains(
            provenance.values[chunk], part
        )
        if lost and not _passed_on(provenance, cell, chunk, part):
            step = index.schedule.steps[chunk.step]
            what = f"overwrites {index.memory.name(cell)}, which held {part}"
            text = f"{violation.message}: {step} {what}"
            return replace(violation, message=text, steps=(chunk.step,))
    return _written_by(provenance, root, violation, _holders(provenance, part))


def _passed_on(provenance: Provenance, cell: int, by: StepChunk, part: Part) -> bool:
    """Whether any step used what a cell held of a contribution before it was overwritten."""
    return any(
        addend.cell == cell and provenance.contains(addend.value, part)
        for chunk, addends in provenance.addends.items()
        if chunk != by
        for addend in addends
    )


def _holders(provenance: Provenance, part: Contribution) -> str:
    """In words, the ranks that hold a contribution at the end."""
    state = provenance.state
    starts = state.index.memory.starts
    ranks = [
        rank
        for rank in range(state.index.schedule.ranks)
        if any(
            value >= 0 and provenance.contains(value, part)
            for value in state.cells[starts[rank] : starts[rank + 1]]
        )
    ]
    shown = ", ".join(map(str, ranks[:8])) + (", .." if len(ranks) > 8 else "")
    return f"; at the end {part} is held by rank {shown}" if ranks else ""


def _written_by(
    provenance: Provenance, root: StepChunk | None, violation: Violation, more: str = ""
) -> Violation:
    if root is None:
        return replace(violation, message=violation.message + more)
    step = provenance.state.index.schedule.steps[root.step]
    text = f"{violation.message}: {step} wrote it last{more}"
    return replace(violation, message=text, steps=(root.step,))
