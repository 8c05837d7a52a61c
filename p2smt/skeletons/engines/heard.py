"""What a process that works for searches has heard of each: the newest cutoff, whether it ended."""

from __future__ import annotations

from dataclasses import dataclass

from p2smt.skeletons.cube import Member


@dataclass(frozen=True, slots=True)
class Heard:
    """The best cutoff that arrived, and whether the search has ended."""

    cutoff: Member | None = None
    stopped: bool = False

    def and_then(self, cutoff: Member | None, stopped: bool) -> Heard:
        """Both together: messages may overtake each other, so the better cutoff stays."""
        known = [member for member in (self.cutoff, cutoff) if member is not None]
        return Heard(min(known, default=None), self.stopped or stopped)


_NOTHING = Heard()
_HEARD: dict[str, Heard] = {}
"""By the search's name.  A thread writes and another reads: each does it in one step."""


def hear(search: str, cutoff: Member | None, stopped: bool) -> None:
    """A message of a search's coordinator."""
    _HEARD[search] = heard(search).and_then(cutoff, stopped)


def heard(search: str) -> Heard:
    """What is known of a search."""
    return _HEARD.get(search, _NOTHING)


def forget(search: str) -> None:
    """The search is over, and its name does not come again."""
    _HEARD.pop(search, None)
