"""Groups of symmetries to try, from the largest of use down to none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p2smt.problems.schedule import ScheduleSymmetry
from p2smt.result import StopWatch
from p2smt.search.schedule.groups.ladder import LadderMemory, ladder
from p2smt.search.schedule.synthesis.pairs import too_many_pairs
from p2smt.search.schedule.synthesis.question import SynthesisSetting


@dataclass(frozen=True, slots=True)
class GroupRung:
    """A group by its order, and its generators as symmetries of a question's chunks."""

    order: int
    symmetries: tuple[ScheduleSymmetry, ...] = ()


NO_SYMMETRY = GroupRung(1)


def rungs(
    setting: SynthesisSetting,
    chunks: int,
    watch: StopWatch | None = None,
    memory: LadderMemory | None = None,
) -> Iterator[GroupRung]:
    """The groups, the one without symmetries last; it alone if symmetry is not wanted.

    They move the edges and chunks of ``setting.copying``.  Where every search would be too large
    no group is made.  ``memory``: of other sizes of the same question.
    """
    if not setting.symmetry or too_many_pairs(setting, chunks):
        yield NO_SYMMETRY
        return
    fabric, collective = setting.copying
    for group, symmetries in ladder(fabric, collective, chunks, setting.root, watch, memory):
        yield GroupRung(group.order, symmetries)
