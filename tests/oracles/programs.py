"""Brute force for reduction programs: every reachable state, on the real factors, by the book.

A device's state is a tuple of k rows, a row the frozenset of the devices whose contribution
it holds (P2, state matrices).  Nothing here is shared with the encodings or the checker, and
nothing is clever: groups come from coordinates, effects from the definition of each collective.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from p2smt.collectives.demand import Chunks, Demand, Givers
from p2smt.collectives.names import Collective
from p2smt.problems.placement import ProgramProblem
from p2smt.programs.program import Grouping

Row = frozenset[int]
Device = tuple[Row, ...]
State = tuple[Device, ...]
Program = tuple[int, ...]
EMPTY: Row = frozenset()


@dataclass(frozen=True)
class Step:
    """An instruction with its payload rows and the state after it."""

    instruction: int
    rows: int
    after: State


def initial(demand: Demand, k: int) -> State:
    """Of the chunks that a device starts with, the contributions that it starts with."""

    def device(d: int) -> Device:
        rows = range(k) if demand.start.chunks is Chunks.EVERY else [d]
        givers = range(k) if demand.start.givers is Givers.EVERY else [d]
        return tuple(frozenset(givers) if r in rows else EMPTY for r in range(k))

    return tuple(device(d) for d in range(k))


def is_goal(demand: Demand, state: State) -> bool:
    """All ones; where it is one row each, a full one on each device, a different one on each."""
    everyone = frozenset(range(len(state)))
    if demand.goal.chunks is Chunks.EVERY:
        return all(row == everyone for device in state for row in device)
    held = [[r for r, row in enumerate(device) if row] for device in state]
    if any(len(rows) != 1 for rows in held):
        return False
    full = all(device[rows[0]] == everyone for device, rows in zip(state, held, strict=True))
    return full and len({rows[0] for rows in held}) == len(state)


def device_groups(factors: tuple[int, ...], grouping: Grouping) -> list[list[int]]:
    """Members of each group: devices alike in every coordinate but outer to inner - 1."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for device, at in enumerate(itertools.product(*map(range, factors))):
        if not grouping.master or not any(at[grouping.inner :]):
            groups[at[: grouping.outer] + at[grouping.inner :]].append(device)
    return list(groups.values())


def nonempty(device: Device) -> list[int]:
    """The non-empty rows."""
    return [r for r, row in enumerate(device) if row]


def union(members: list[Device]) -> Device:
    """Row by row, what any member holds."""
    return tuple(frozenset().union(*rows) for rows in zip(*members, strict=True))


def only(device: Device, rows: list[int]) -> Device:
    """The device with these rows, the others empty."""
    return tuple(row if r in rows else EMPTY for r, row in enumerate(device))


def can_reduce(members: list[Device]) -> bool:
    """All members have the same rows, at least one; contributors pairwise disjoint per row."""
    rows = nonempty(members[0])
    if not rows or any(nonempty(m) != rows for m in members):
        return False
    parts = [sum(len(m[r]) for m in members) for r in rows]
    return parts == [len(frozenset().union(*(m[r] for m in members))) for r in rows]


def all_reduce(members: list[Device]) -> list[Device] | None:
    """All get the union."""
    return [union(members)] * len(members) if can_reduce(members) else None


def reduce_scatter(members: list[Device]) -> list[Device] | None:
    """Member i keeps the i-th run of the rows, whose number divides by the group size."""
    rows, n = nonempty(members[0]), len(members)
    if not can_reduce(members) or len(rows) % n:
        return None
    run, whole = len(rows) // n, union(members)
    return [only(whole, rows[i * run : (i + 1) * run]) for i in range(n)]


def all_gather(members: list[Device]) -> list[Device] | None:
    """Rows pairwise disjoint, the same positive number each; all get the union."""
    held = [nonempty(m) for m in members]
    sizes = {len(rows) for rows in held}
    disjoint = len(set().union(*held)) == sum(map(len, held))
    return [union(members)] * len(members) if disjoint and len(sizes) == 1 and held[0] else None


def reduce(members: list[Device]) -> list[Device] | None:
    """The first gets the union, the others become empty."""
    whole = union(members)
    return [whole] + [only(whole, [])] * (len(members) - 1) if can_reduce(members) else None


def broadcast(members: list[Device]) -> list[Device] | None:
    """The first member's state strictly contains every other's; all get it."""
    first = members[0]
    inside = all(b <= a for m in members[1:] for a, b in zip(first, m, strict=True))
    return [first] * len(members) if inside and all(m != first for m in members[1:]) else None


EFFECT: dict[Collective, Callable[[list[Device]], list[Device] | None]] = {
    Collective.ALL_REDUCE: all_reduce,
    Collective.REDUCE_SCATTER: reduce_scatter,
    Collective.ALL_GATHER: all_gather,
    Collective.REDUCE: reduce,
    Collective.BROADCAST: broadcast,
}


def apply(collective: Collective, groups: list[list[int]], state: State) -> State | None:
    """The state after one step on every group, or None where some group cannot take it."""
    after = list(state)
    for group in groups:
        members = EFFECT[collective]([state[d] for d in group])
        if members is None:
            return None
        for device, held in zip(group, members, strict=True):
            after[device] = held
    return tuple(after)


def payload_rows(collective: Collective, group: list[int], before: State, after: State) -> int:
    """Non-empty rows of a member before the step, after it for an all-gather."""
    moment = after if collective is Collective.ALL_GATHER else before
    return len(nonempty(moment[group[0]]))


class Oracle:
    """All programs of one request, side constraints left out."""

    def __init__(self, problem: ProgramProblem) -> None:
        self.problem = problem
        self.items = [
            (collective, device_groups(problem.factors, grouping))
            for collective, grouping in problem.instructions.items
            if isinstance(collective, Collective)
        ]
        self.start = initial(problem.demand, problem.rows)
        self.known: dict[State, list[Step]] = {}

    def steps(self, state: State) -> list[Step]:
        """Every step that is possible in a state; none at the goal."""
        if state not in self.known:
            goal = is_goal(self.problem.demand, state)
            self.known[state] = [] if goal else list(self._steps(state))
        return self.known[state]

    def _steps(self, state: State) -> Iterator[Step]:
        for number, (collective, groups) in enumerate(self.items):
            after = apply(collective, groups, state)
            if after is not None:
                rows = max(payload_rows(collective, g, state, after) for g in groups)
                yield Step(number, rows, after)

    def distances(self) -> dict[State, int]:
        """Least steps to the goal, of the states within ``max_length`` from which it is near."""
        layer, seen = {self.start}, {self.start}
        before: dict[State, set[State]] = defaultdict(set)
        for _ in range(self.problem.max_length):
            for state in layer:
                for step in self.steps(state):
                    before[step.after].add(state)
            layer = {step.after for state in layer for step in self.steps(state)} - seen
            seen |= layer
        found = {s: 0 for s in seen if is_goal(self.problem.demand, s)}
        near = set(found)
        for distance in range(1, self.problem.max_length + 1):
            near = {s for t in near for s in before[t]} - set(found)
            found.update(dict.fromkeys(near, distance))
        return found

    def programs(self) -> dict[Program, tuple[int, ...]]:
        """Every program up to ``max_length``, with the payload rows of each step."""
        need = self.distances()
        found: dict[Program, tuple[int, ...]] = {}

        def walk(state: State, program: Program, rows: tuple[int, ...], left: int) -> None:
            if is_goal(self.problem.demand, state):
                found[program] = rows
            for step in self.steps(state) if left else ():
                if need.get(step.after, math.inf) <= left - 1:
                    walk(step.after, (*program, step.instruction), (*rows, step.rows), left - 1)

        walk(self.start, (), (), self.problem.max_length)
        return found


def all_programs(problem: ProgramProblem) -> dict[Program, tuple[int, ...]]:
    """Every program of the request with its payload rows; side constraints and costs left out."""
    return Oracle(problem).programs()


def price(program: Program, rows: tuple[int, ...], costs: Mapping[tuple[int, int], int]) -> float:
    """Total cost in ticks, infinite where a pair is missing."""
    return sum(costs.get(pair, math.inf) for pair in zip(program, rows, strict=True))


def obeys(problem: ProgramProblem, program: Program) -> bool:
    """Whether a program obeys forbidden, limits and excluded."""
    within = all(
        sum(i in limit.instructions for i in program) <= limit.at_most for limit in problem.limits
    )
    return within and program not in problem.excluded and not problem.forbidden & set(program)


def ranked(problem: ProgramProblem) -> list[tuple[float, Program]]:
    """(total ticks, program) of every answer, best first; each step costs one without costs."""
    found = []
    for program, rows in all_programs(problem).items():
        costs = problem.costs
        ticks = len(program) if costs is None else price(program, rows, costs)
        limit = math.inf if problem.at_most is None else problem.at_most
        if obeys(problem, program) and ticks < math.inf and ticks <= limit:
            found.append((ticks, program))
    return sorted(found, key=lambda pair: (pair[0], len(pair[1]), pair[1]))
