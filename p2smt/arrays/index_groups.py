"""Who is in a group of a redistribution step, and which chunk is whose, by digits of positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from p2smt.arrays.frame import Frame
from p2smt.arrays.index_maps import digit_values, ranked
from p2smt.arrays.steps import ArrayStep
from p2smt.parallelism.placement import IntArray


@dataclass(frozen=True, slots=True)
class GroupMembers:
    """The groups of a step: ``members[g, m]`` are devices, ``values[digit][m]`` their digits."""

    members: IntArray
    values: dict[int, IntArray]
    sizes: tuple[int, ...]
    everyone: dict[int, IntArray]

    @staticmethod
    def of(frame: Frame, step: ArrayStep) -> GroupMembers:
        """Devices whose mesh positions differ in the moved digits only."""
        at = digit_values(frame.sizes)
        moved = step.moved
        devices = ranked(frame.orders[step.before.order])
        rest = [digit for digit in range(len(frame.sizes)) if digit not in moved]
        order = np.lexsort([at[digit] for digit in reversed([*rest, *moved])])
        members = devices[order].reshape(-1, frame.ways(moved))
        first = order[: members.shape[1]]
        everyone = {}
        for digit in moved:
            everyone[digit] = np.empty(len(devices), dtype=np.int64)
            everyone[digit][devices] = at[digit]
        return GroupMembers(members, {d: at[d][first] for d in moved}, frame.sizes, everyone)

    @property
    def size(self) -> int:
        return int(self.members.shape[1])

    def number(self, digits: Sequence[int]) -> IntArray:
        """Of each member its digits as one number, the first most significant."""
        return self._of(digits, self.values, self.size)

    def own(self, digits: Sequence[int]) -> IntArray:
        """The same of each device."""
        return self._of(digits, self.everyone, self.members.size)

    def tiled(self, digits: Sequence[int]) -> IntArray:
        """The same of the members of all groups, one group after the other."""
        return np.tile(self.number(digits), len(self.members))

    def _of(self, digits: Sequence[int], values: dict[int, IntArray], count: int) -> IntArray:
        found = np.zeros(count, dtype=np.int64)
        for digit in digits:
            found = found * self.sizes[digit] + values[digit]
        return found
