"""The fewest elements of which each of some sets has one."""

from __future__ import annotations

from collections.abc import Sequence


def least_hitting(sets: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """Fewest elements that meet every set, ascending; of several choices the first in order.

    The sets are not empty.  Tries one element more each time: there are few in what is asked here.
    """
    size = 0
    while (found := _within(sets, size)) is None:
        size += 1
    return tuple(sorted(found))


def _within(sets: Sequence[frozenset[int]], size: int) -> tuple[int, ...] | None:
    """At most so many elements that meet every set, or None."""
    if not sets:
        return ()
    if size == 0:
        return None
    smallest = min(sets, key=lambda one: len(one))
    for element in sorted(smallest):
        rest = _within([one for one in sets if element not in one], size - 1)
        if rest is not None:
            return (element, *rest)
    return None
