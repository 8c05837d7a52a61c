"""What the writers of launchers' and frameworks' files have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from p2smt.interop.places import PlacedPlan
    from p2smt.resharding.redistribution_plan import RedistributionPlan


@dataclass(frozen=True, slots=True)
class Exported:
    """The text of a file, and lines that say how it is used; these go to stderr."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Writer:
    """A format that a plan's ranks can be written in.

    name: what ``--to`` calls it.
    what: a line on what it writes and who reads that.
    ending: how such files are named, with the dot; empty where they have no usual ending.
    write: the file; takes the plan, and the path that the notes are to name.  InputError where
        the format cannot hold the plan.
    starts: whether it is for what starts ranks, which may number them host by host.
    """

    name: str
    what: str
    ending: str
    write: Callable[[PlacedPlan, str], Exported]
    starts: bool = False


@dataclass(frozen=True, slots=True)
class ArrayWriter:
    """A format that the plan of a redistribution can be written in.

    name, what: as of a :class:`Writer`.
    write: the file; takes the plan, and the name of its file.  InputError where the format cannot
        hold the plan.
    """

    name: str
    what: str
    write: Callable[[RedistributionPlan, str], Exported]
