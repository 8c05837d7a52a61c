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
    from p2smt.schedules.verify.provenance import Piece, Provenance, Source
    from p2smt.schedules.verify.report import Violation
    from p2smt.schedules.verify.values import Part

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
        source.cell
        for piece in _cone(provenance, provenance.last.get(cell))
        for source in provenance.sources[piece]
    )
    return cell in cells or any(source in cells for source in read if source is not None)


def _explained(provenance: Provenance, goal: Goal, violation: Violation) -> Violation:
    root = provenance.last.get(provenance.state.index.memory.output_cell(goal.rank, goal.chunk))
    pieces = list(_cone(provenance, root))
    wanted: Counter[Part] = Counter(goal.parts)
    match violation.kind:
        case Kind.DOUBLED:
            return _doubled(provenance, pieces, wanted, violation)
        case Kind.UNINITIALISED:
            return _undefined(provenance, pieces, violation)
        case Kind.MISSING:
            return _missing(provenance, root, wanted, violation)
        case _:
            return _written_by(provenance, root, violation)


def _cone(provenance: Provenance, root: Piece | None) -> Iterator[Piece]:
    """The pieces that a chunk's value was made from, sources before what uses them."""
    done: set[Piece] = set()
    todo: list[tuple[Piece, bool]] = [(root, False)] if root else []
    while todo:
        piece, finished = todo.pop()
        if finished:
            yield piece
        elif piece not in done:
            done.add(piece)
            todo.append((piece, True))
            todo += [(s.origin, False) for s in provenance.sources[piece] if s.origin]


def _doubled(
    provenance: Provenance, pieces: list[Piece], wanted: Counter[Part], violation: Violation
) -> Violation:
    """The first sum in which a contribution comes together with itself."""
    for piece in pieces:
        for part in provenance.state.table.found[provenance.values[piece]]:
            sources = [s for s in provenance.sources[piece] if provenance.contains(s.value, part)]
            if len(sources) > 1 and wanted[part]:
                return _joined(provenance, piece, part, sources, violation)
    return violation


def _joined(
    provenance: Provenance, piece: Piece, part: Part, sources: list[Source], violation: Violation
) -> Violation:
    steps = provenance.state.index.schedule.steps
    step = steps[piece.step]
    both = " and ".join(_source(provenance, source) for source in sources[:2])
    meant = _meant(provenance, sources)
    text = f"{violation.message}: {step} adds {both}, and both hold {part}{meant}"
    ways = [f"{part} by way of {_way(provenance, source, part)}" for source in sources]
    culprits = (piece.step, *(s.origin.step for s in sources if s.origin))
    return replace(violation, message=text, steps=culprits, details=tuple(ways))


def _meant(provenance: Provenance, sources: list[Source]) -> str:
    """What was probably meant, where a step that adds should not have."""
    if any(source.cell is None for source in sources):
        return "; it reduces where a plain receive was probably meant"
    for one, other in permutations(sources, 2):
        if one.origin and other in provenance.sources[one.origin]:
            return "; so the same data is added a second time"
    return "; it reduces where a copy was probably meant, or one of the two is old data"


def _source(provenance: Provenance, source: Source) -> str:
    index = provenance.state.index
    maker = index.schedule.steps[source.origin.step] if source.origin else None
    if source.cell is None:
        return f"the message from {maker}"
    name = index.memory.name(source.cell)
    return f"{name} (written by {maker})" if maker else f"{name} (there from the start)"


def _way(provenance: Provenance, source: Source, part: Part) -> str:
    """The steps that a contribution went through before it got here, latest first."""
    steps, found = provenance.state.index.schedule.steps, []
    while source.origin is not None:
        found.append(str(steps[source.origin.step]))
        inside = provenance.sources[source.origin]
        source = next(s for s in inside if provenance.contains(s.value, part))
    if len(found) > 2 * _SHOWN:
        between = f"{len(found) - 2 * _SHOWN} more"
        found = [*found[:_SHOWN], between, *found[-_SHOWN:]]
    start = provenance.state.index.memory.name(source.cell) if source.cell is not None else "?"
    return " <- ".join([*found, f"{start} at the start"])


def _undefined(provenance: Provenance, pieces: list[Piece], violation: Violation) -> Violation:
    """The first read of a chunk that nobody had written."""
    for piece in pieces:
        for source in provenance.sources[piece]:
            value = provenance.state.table.found[source.value]
            if source.origin is None and any(isinstance(part, str) for part in value):
                step = provenance.state.index.schedule.steps[piece.step]
                text = f"{violation.message}: {step} reads it"
                return replace(violation, message=text, steps=(piece.step,))
    return violation


def _missing(
    provenance: Provenance, root: Piece | None, wanted: Counter[Part], violation: Violation
) -> Violation:
    """A step that overwrote what is missing, or who still holds it."""
    have = provenance.state.table.found[provenance.values[root]] if root else {}
    part = min(p for p in wanted if have.get(p, 0) < wanted[p] and isinstance(p, Contribution))
    index = provenance.state.index
    for cell, old, piece in provenance.overwritten:
        lost = provenance.contains(old, part) and not provenance.contains(
            provenance.values[piece], part
        )
        if lost and not _passed_on(provenance, cell, piece, part):
            step = index.schedule.steps[piece.step]
            what = f"overwrites {index.memory.name(cell)}, which held {part}"
            text = f"{violation.message}: {step} {what}"
            return replace(violation, message=text, steps=(piece.step,))
    return _written_by(provenance, root, violation, _holders(provenance, part))


def _passed_on(provenance: Provenance, cell: int, by: Piece, part: Part) -> bool:
    """Whether any step used what a cell held of a contribution before it was overwritten."""
    return any(
        source.cell == cell and provenance.contains(source.value, part)
        for piece, sources in provenance.sources.items()
        if piece != by
        for source in sources
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
    provenance: Provenance, root: Piece | None, violation: Violation, more: str = ""
) -> Violation:
    if root is None:
        return replace(violation, message=violation.message + more)
    step = provenance.state.index.schedule.steps[root.step]
    text = f"{violation.message}: {step} wrote it last{more}"
    return replace(violation, message=text, steps=(root.step,))
