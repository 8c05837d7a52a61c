"""Programs by sets: per device a dictionary from row to the set of its contributors.

Written from the conventions alone; slow and obvious.  Imports types only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p2smt.collectives.names import Collective, RequestKind
from p2smt.programs.semantics import Step, ViolationKind

AR, RS, AG, RED, BC = Collective
K = ViolationKind
Rows = dict[int, frozenset[int]]


@dataclass
class Literal:
    """States of all devices, changed one collective at a time."""

    kind: RequestKind
    held: list[Rows]

    @staticmethod
    def start(kind: RequestKind, k: int) -> Literal:
        everyone = frozenset(range(k))
        if kind is RequestKind.ALL_GATHER:
            return Literal(kind, [{d: everyone} for d in range(k)])
        return Literal(kind, [dict.fromkeys(range(k), frozenset([d])) for d in range(k)])

    def broken(self, collective: Collective, group: Sequence[int]) -> set[ViolationKind]:
        """All rules that a collective breaks in one group."""
        members = [self.held[d] for d in group]
        held = [set(m) for m in members]
        if collective is BC:
            return set() if all(_inside(m, members[0]) for m in members[1:]) else {K.NOT_CONTAINED}
        if collective is AG:
            return {
                *([K.NO_ROWS] if not all(held) else []),
                *([K.COUNTS_DIFFER] if len({len(h) for h in held}) > 1 else []),
                *([K.ROWS_OVERLAP] if sum(map(len, held)) > len(set().union(*held)) else []),
            }
        found = {K.ROWS_DIFFER} if any(h != held[0] for h in held) else set()
        if not held[0]:
            found.add(K.NO_ROWS)
        for row in set.intersection(*held):
            if sum(len(m[row]) for m in members) > len(
                frozenset().union(*(m[row] for m in members))
            ):
                found.add(K.DOUBLED)
        if collective is RS and len(held[0]) % len(group):
            found.add(K.NOT_DIVISIBLE)
        return found

    def write(self, collective: Collective, group: Sequence[int]) -> None:
        """The effect of a collective whose rules hold in the group."""
        if collective is BC:
            union = self.held[group[0]]
        else:
            rows = sorted({row for d in group for row in self.held[d]})
            parts = {row: [self.held[d].get(row, frozenset()) for d in group] for row in rows}
            union = {row: frozenset().union(*found) for row, found in parts.items()}
        for i, d in enumerate(group):
            kept = list(union)
            if collective is RED:
                kept = kept if i == 0 else []
            elif collective is RS:
                run_length = len(kept) // len(group)
                kept = kept[i * run_length : (i + 1) * run_length]
            self.held[d] = {row: union[row] for row in kept}

    def broken_by(self, step: Step) -> set[ViolationKind]:
        """All rules that a step breaks in some group."""
        groups = step.groups.tolist()
        return {kind for group in groups for kind in self.broken(step.collective, group)}

    def take(self, step: Step) -> None:
        """The effect of a step whose rules hold."""
        for group in step.groups.tolist():
            self.write(step.collective, group)

    def at_goal(self) -> bool:
        k = len(self.held)
        if any(len(parts) != k for rows in self.held for parts in rows.values()):
            return False
        if self.kind is RequestKind.REDUCE_SCATTER:
            return sorted(row for rows in self.held for row in rows) == list(range(k)) and all(
                len(rows) == 1 for rows in self.held
            )
        return all(len(rows) == k for rows in self.held)

    def payload(self, collective: Collective, groups: Sequence[Sequence[int]]) -> int:
        times = len(groups[0]) if collective is AG else 1
        return times * max(len(self.held[group[0]]) for group in groups)


def _inside(less: Rows, more: Rows) -> bool:
    contained = all(parts <= more.get(row, frozenset()) for row, parts in less.items())
    return contained and less != more


def literal_run(
    kind: RequestKind, k: int, steps: Sequence[Step]
) -> tuple[tuple[int, set[ViolationKind]] | None, list[int], Literal]:
    """(step and the rules broken there, or None), payloads of the steps, and the last states."""
    model, payloads = Literal.start(kind, k), list[int]()
    for number, one in enumerate(steps, start=1):
        if model.at_goal():
            return (number, {K.AFTER_GOAL}), payloads, model
        if broken := model.broken_by(one):
            return (number, broken), payloads, model
        payloads.append(model.payload(one.collective, one.groups.tolist()))
        model.take(one)
    return None if model.at_goal() else (len(steps), {K.GOAL_MISSED}), payloads, model
