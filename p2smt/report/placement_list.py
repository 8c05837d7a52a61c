"""A list of placements for people and for ``--json``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from p2smt.parallelism.placement import ParallelismAxis, Placement
from p2smt.plans.restrictions import conflict_text
from p2smt.report.screen import fitted, full_width, room
from p2smt.search.conflict import PlacementList, rule_text
from p2smt.units import counted

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
    found: PlacementList,
    axes: Sequence[ParallelismAxis],
    levels: Sequence[str],
    *,
    details: bool = False,
) -> list[str]:
    """What there is in all, and why there is none; then a line per matrix.

    Without ``details`` as many as fit on a screen.
    """
    asked = ", ".join(f"{axis.name}={axis.size}" for axis in axes)
    sizes = zip(levels, found.problem.levels, strict=True)
    on = ", ".join(f"{name}={size}" for name, size in sizes)
    head = [f"{found.status.value}: {counted(len(found.matrices), 'placement')} of {asked} on {on}"]
    if texts := _conflict(found, axes, levels):
        head.append(conflict_text(texts, "rule"))
    head += [f"note: {note}" for note in found.notes]
    matrices = [Placement(matrix).text() for matrix in found.matrices]
    if details:
        return [*head, *matrices]
    head = full_width(head)
    return [*head, *fitted(matrices, room((), head), "placements")]


def _conflict(
    found: PlacementList, axes: Sequence[ParallelismAxis], levels: Sequence[str]
) -> list[str]:
    """The rules that exclude each other, as options take them."""
    return [rule_text(rule, [axis.name for axis in axes], levels) for rule in found.conflict]
