"""What programs compute, by counting: per rank and row how often each contribution is in it.

Unlike the semantics this knows no conventions: a contribution may be added twice, a broadcast
may overwrite what its root lacks, steps may follow the goal.  Only what no collective could be
called on is refused.  Imports types only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.collectives.names import Collective, RequestKind
from p2smt.runtime.job import JobStep

Rows = dict[int, Counter[int]]


@dataclass
class Counts:
    """The rows of each rank of one reduction group."""

    kind: RequestKind
    held: list[Rows]

    @staticmethod
    def start(kind: RequestKind, ranks: int) -> Counts:
        if kind is RequestKind.ALL_GATHER:
            return Counts(kind, [{rank: Counter([rank])} for rank in range(ranks)])
        return Counts(
            kind, [{row: Counter([rank]) for row in range(ranks)} for rank in range(ranks)]
        )

    def copy(self) -> Counts:
        """The same rows, to be changed apart."""
        return Counts(self.kind, list(self.held))

    def key(self) -> str:
        """A text that differs where the rows do."""
        return repr(
            [sorted((r, sorted(c.items())) for r, c in member.items()) for member in self.held]
        )

    def take(self, step: JobStep) -> bool:
        """Change the rows by a step; False: some group cannot call the collective."""
        assert isinstance(step.operation, Collective)
        return all(self._take(step.operation, group) for group in step.groups)

    def _take(self, collective: Collective, group: Sequence[int]) -> bool:
        members = [self.held[rank] for rank in group]
        rows = [sorted(member) for member in members]
        if not rows[0]:
            return False
        if collective is Collective.BROADCAST:
            after = [{**member, **members[0]} for member in members]
        elif collective is Collective.ALL_GATHER:
            merged = {row: member[row] for member in members for row in member}
            if len({len(own) for own in rows}) > 1 or len(merged) != sum(map(len, rows)):
                return False
            after = [merged] * len(group)
        else:
            if any(own != rows[0] for own in rows):
                return False
            kept = self._kept(collective, rows[0], len(group))
            if kept is None:
                return False
            sums = {row: sum((m[row] for m in members), Counter[int]()) for row in rows[0]}
            after = [{row: sums[row] for row in own} for own in kept]
        for rank, state in zip(group, after, strict=True):
            self.held[rank] = state  # shared, never changed in place
        return True

    @staticmethod
    def _kept(collective: Collective, rows: list[int], members: int) -> list[list[int]] | None:
        if collective is Collective.ALL_REDUCE:
            return [rows] * members
        if collective is Collective.REDUCE:
            return [rows] + [[]] * (members - 1)
        each, rest = divmod(len(rows), members)
        return None if rest else [rows[i * each : (i + 1) * each] for i in range(members)]

    def right(self) -> bool:
        """Whether every rank ends with what was asked for."""
        ranks = len(self.held)
        if self.kind is RequestKind.ALL_GATHER:
            goal = {row: Counter([row]) for row in range(ranks)}
            return all(member == goal for member in self.held)
        full = Counter(range(ranks))
        if any(counts != full for member in self.held for counts in member.values()):
            return False
        if self.kind is RequestKind.REDUCE_SCATTER:
            held = sorted(row for member in self.held for row in member)
            return held == list(range(ranks)) and all(len(member) == 1 for member in self.held)
        return all(len(member) == ranks for member in self.held)


def computes(kind: RequestKind, ranks: int, steps: Sequence[JobStep]) -> bool | None:
    """Whether a program computes what was asked for; None: it cannot be carried out."""
    counts = Counts.start(kind, ranks)
    if not all(counts.take(step) for step in steps):
        return None
    return counts.right()
