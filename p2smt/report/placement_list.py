"""A list of placements for people and for ``--json``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.plans.restrictions import conflict_text
from p2smt.search.conflict import PlacementList, rule_text

if TYPE_CHECKING:
    from p2smt.report.outputs.lists import PlacementsOutput


def placements_data(
    found: PlacementList, axes: Sequence[ParallelismAxis], levels: Sequence[str]
) -> PlacementsOutput:
    """The matrices, and the rules that exclude each other where there is none."""
    from p2smt.report.outputs.lists import PlacementsOutput, SizedName

    sizes = zip(levels, found.problem.levels, strict=True)
    return PlacementsOutput(
        status=found.status,
        count=len(found.matrices),
        levels=[SizedName(name=name, size=size) for name, size in sizes],
        axes=[SizedName(name=axis.name, size=axis.size) for axis in axes],
        placements=found.matrices,
        conflict=_conflict(found, axes, levels),
        notes=found.notes,
    )


def placements_lines(
    found: PlacementList, axes: Sequence[ParallelismAxis], levels: Sequence[str]
) -> Iterator[str]:
    """A line per matrix, then what there is in all, then why there is none."""
    count = len(found.matrices)
    yield from (Placement(matrix).text() for matrix in found.matrices)
    yield (
        f"{found.status.value}: {count} placement{'s' * (count != 1)} of "
        f"{', '.join(f'{axis.name}={axis.size}' for axis in axes)} on "
        f"{', '.join(f'{n}={s}' for n, s in zip(levels, found.problem.levels, strict=True))}"
    )
    if texts := _conflict(found, axes, levels):
        yield conflict_text(texts, "rule")
    yield from (f"note: {note}" for note in found.notes)


def _conflict(
    found: PlacementList, axes: Sequence[ParallelismAxis], levels: Sequence[str]
) -> list[str]:
    """The rules that exclude each other, as options take them."""
    return [rule_text(rule, [axis.name for axis in axes], levels) for rule in found.conflict]
